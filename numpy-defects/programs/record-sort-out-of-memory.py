"""A sort of records without memory succeeds in the wrong order

What a user sees: wrong results, and no error.
Cause: numpy/_core/src/multiarray/arraytypes.c.src:3165 and 3178 (VOID_compare), which compare misaligned fields in two temporary blocks and call them equal where one is refused; since 440a2627ac of 2006.
Fix: an error that the sort sees when it ends, or buffers that are taken once before it.
Handlers: none is hurt.
Property: runtime.structured-sort-out-of-memory
"""
import resource

import numpy as np

array = np.zeros(6, [("x", "i1"), ("y", "U5000000")])  # y is misaligned, and 20 MB long
array["y"] = list("fdbeca")
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (25 << 20), -1))  # for one more block, not two
try:
    array.sort()
    print("sorted, no error")
except MemoryError:
    print("MemoryError")
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
print([y[:1] for y in array["y"].tolist()])
