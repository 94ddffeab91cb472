"""np.array of two arrays of records is one of objects where a dtype had no memory

What a user sees: an array of another dtype, dtype=object, and no exception.  Two arrays of StringDType do the same.
Cause: numpy/_core/src/multiarray/array_coercion.c:713 (handle_promotion), which takes any exception, MemoryError too, for two dtypes that have none in common, and goes on with objects, since #16200 (5bd5847d85); since #19226 (a0c2e82673) records are promoted field by field; descriptor.c:515, where PyObject_IsInstance may say -1.
Fix: let MemoryError pass, as the function that finds sequences does.
Handlers: none is asked: the memory is Python's.
Property: runtime.promotion-out-of-memory
"""
import sys

import numpy as np

try:
    from _testcapi import remove_mem_hooks, set_nomemory
except ImportError:
    sys.exit("this Python comes without _testcapi")

records, seen = np.zeros(2, [("x", "i4")]), set()
for nth in range(40):
    set_nomemory(nth, nth + 1)  # one request of Python's is refused
    try:
        dtype = np.array([records, records]).dtype
    except MemoryError:
        continue
    finally:
        remove_mem_hooks()
    seen.add(str(dtype))
print("dtypes of np.array([records, records]):", sorted(seen))
