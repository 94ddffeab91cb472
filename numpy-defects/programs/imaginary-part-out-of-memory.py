"""The imaginary part of a long np.bytes_ without memory crashes

What a user sees: a crash instead of MemoryError.  So does that of a date, where its dtype has none.
Cause: numpy/_core/src/multiarray/scalartypes.c.src:1966, which does not look whether it has the block; since 8cb36a6208 of 2005.
Fix: look, and raise MemoryError.
Handlers: none is asked here: the memory is NumPy's own.
Property: runtime.scalar-part-refused
"""
import resource

import numpy as np

scalar = np.bytes_(b"x" * (64 << 20))
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (16 << 20), -1))
try:
    print(len(scalar.imag), flush=True)
except MemoryError:
    print("MemoryError", flush=True)
