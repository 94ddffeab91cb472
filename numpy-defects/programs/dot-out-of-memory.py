"""np.dot of records crashes where Python has no memory for their dtype

What a user sees: a crash instead of an exception.  np.inner and np.correlate do the same.
Cause: numpy/_core/src/multiarray/multiarraymodule.c:1001 (PyArray_MatrixProduct2), and 906, 1342 and 1422, which do not look whether they have the canonical dtype; since #30931 (f15fbab1a2).  NumPy 1.26 and 2.0 crash by another, a cast of records to objects.
Fix: a look.
Handlers: none is asked: the memory is Python's.
Property: runtime.dot-out-of-memory
"""
import os
import sys

import numpy as np

try:
    from _testcapi import remove_mem_hooks, set_nomemory
except ImportError:
    sys.exit("this Python comes without _testcapi")

array = np.zeros(3, [("x", "i4"), ("y", "i4")])
for function in np.dot, np.inner, np.correlate:
    crashes = 0
    for nth in range(80):
        child = os.fork()
        if child == 0:
            set_nomemory(nth, nth + 1)  # one request of Python's is refused
            try:
                function(array, array)
            except Exception:
                pass
            finally:
                remove_mem_hooks()
            os._exit(0)
        crashes += os.WIFSIGNALED(os.waitpid(child, 0)[1])
    print("np.%s(array, array), each request of Python's refused in turn: %s"
          % (function.__name__, "crashes" if crashes else "no crash"), flush=True)
