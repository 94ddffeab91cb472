"""A strided sort of objects without memory crashes

What a user sees: a crash instead of MemoryError.  argsort, partition and argpartition do the same, and so do StringDType and records with objects.
Cause: numpy/_core/src/multiarray/item_selection.c:1420 and 1640, which clear a buffer at the end that may be NULL; since #23750 (e794f47859).
Fix: clear the buffer only where there is one.
Handlers: one that refuses a request for good reason brings the program down; none is hurt.
Property: runtime.object-sort-out-of-memory, runtime.string-sort-out-of-memory, runtime.sort-out-of-memory
"""
import resource

import numpy as np

array = np.arange(1 << 23).astype(object)  # array[::2] wants a buffer of 32 MiB
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 20), -1))
try:
    array[::2].sort()
    print("sorted", flush=True)
except MemoryError:
    print("MemoryError", flush=True)
