"""np.array of a buffer has another dtype where there was no memory to look at it

What a user sees: an array of int64, or of float64 where it is empty, made of one of int32, and no exception.
Cause: numpy/_core/src/multiarray/ctors.c:1393 (_array_from_array_like), which takes any exception, MemoryError too, for a buffer that cannot be had, and goes on with a sequence; since 48dbe8453d of 2019 at the latest.
Fix: let MemoryError pass.
Handlers: none is asked: the memory is Python's.
Property: runtime.buffer-out-of-memory
"""
import sys

import numpy as np

try:
    from _testcapi import remove_mem_hooks, set_nomemory
except ImportError:
    sys.exit("this Python comes without _testcapi")

buffer, seen = memoryview(np.zeros(3, "i4")), set()
for nth in range(40):
    set_nomemory(nth, nth + 1)  # one request of Python's is refused
    try:
        dtype = np.array(buffer).dtype
    except MemoryError:
        continue
    finally:
        remove_mem_hooks()
    seen.add(str(dtype))
print("dtypes of np.array(buffer), which is of int32:", sorted(seen))
