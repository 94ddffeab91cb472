"""ndarray.resize leaves a shape of garbage where its lengths cannot be had

What a user sees: an array with more dimensions than it has lengths for, after a MemoryError.
Cause: numpy/_core/src/multiarray/shape.c:159, which sets the number of dimensions before PyDimMem_RENEW, and returns in between; since 8cb36a6208 of 2005.
Fix: ask first, then set both.
Handlers: free is told a size that is computed from the garbage: look the size up.
Not shown: where NumPy takes the lengths from libc, as 2.5 does, which this program does not refuse; the property does.
Property: runtime.resize-dimensions-refused
"""
import os
import sys

import numpy as np

try:
    import _testcapi  # the hook of CPython's own tests that refuses the nth allocation
except ImportError:
    sys.exit(print("this Python comes without _testcapi"))

shape, broken = (2,) * 11, []
for nth in range(8):
    array = np.arange(4000)
    _testcapi.set_nomemory(nth, nth + 1)
    try:
        array.resize(shape, refcheck=False)
    except MemoryError:
        pass
    _testcapi.remove_mem_hooks()
    if array.shape not in ((4000,), shape):
        broken.append(array)
print("shapes that are neither the old nor the new one:", len(broken) > 0, flush=True)
os._exit(0)  # before they are freed with a size that is wrong
