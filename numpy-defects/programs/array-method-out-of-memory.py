"""np.frompyfunc without memory crashes

What a user sees: a crash instead of MemoryError.  Whatever makes a ufunc, or a loop or a cast of one, does the same.
Cause: numpy/_core/src/multiarray/array_method.c:599 (boundarraymethod_dealloc), which looks into the method also where there was no memory for one; since a9a44e9ac5 of 2020.
Fix: a look.
Handlers: none is asked: the memory is Python's.
Property: runtime.array-method-out-of-memory
"""
import os
import sys

import numpy as np

try:
    from _testcapi import remove_mem_hooks, set_nomemory
except ImportError:
    sys.exit("this Python comes without _testcapi")

crashes = 0
for nth in range(30):
    child = os.fork()
    if child == 0:
        set_nomemory(nth, nth + 1)  # one request of Python's is refused
        try:
            np.frompyfunc(len, 1, 1)
        except MemoryError:
            pass
        finally:
            remove_mem_hooks()
        os._exit(0)
    crashes += os.waitpid(child, 0)[1] != 0
print("np.frompyfunc, each request of Python's refused in turn:",
      "crashes" if crashes else "no crash", flush=True)
