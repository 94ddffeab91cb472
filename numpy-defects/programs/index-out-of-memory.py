"""An array that is indexed by another crashes where Python has no memory for a buffer

What a user sees: a crash instead of MemoryError, where the index is of another type than np.intp or the values of another than the array.
Cause: numpy/_core/src/multiarray/mapping.c:1670 (array_subscript) and 2168 (array_assign_subscript), which take a negative number of NpyIter_Reset for a failure, which returns NPY_FAIL, 0; since 96dbf1bc73 of 2013.
Fix: take 0 for it.
Handlers: none is asked: the memory is Python's.
Property: runtime.index-out-of-memory
"""
import os
import sys

import numpy as np

try:
    from _testcapi import remove_mem_hooks, set_nomemory
except ImportError:
    sys.exit("this Python comes without _testcapi")

array, index, values = np.zeros(9, "i4"), np.array([0, 1], "i4"), np.array([1.0, 2.0])
for words, function in {
    "array[index]": lambda: array[index],
    "array[index] = values": lambda: array.__setitem__(index, values),
}.items():
    crashes = 0
    for nth in range(30):
        child = os.fork()
        if child == 0:
            set_nomemory(nth, nth + 1)  # one request of Python's is refused
            try:
                function()
            except Exception:
                pass
            finally:
                remove_mem_hooks()
            os._exit(0)
        crashes += os.WIFSIGNALED(os.waitpid(child, 0)[1])
    print("%s, each request of Python's refused in turn: %s"
          % (words, "crashes" if crashes else "no crash"), flush=True)
