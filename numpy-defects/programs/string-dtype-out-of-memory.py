"""A copy of an array of StringDType crashes where its dtype has no memory

What a user sees: a crash instead of MemoryError, by whatever makes an array of that dtype.
Cause: numpy/_core/src/multiarray/stringdtype/dtype.c (stringdtype_finalize_descr), which wrote into the dtype that it made and did not look whether it had one; since there is StringDType, by ced4336b96.
Fix: NumPy did in 2.5.1, by #31846 (b091791af5).
Handlers: none is asked: the memory is Python's.
Property: runtime.string-dtype-out-of-memory
State upstream: fixed in 2.5.1 by #31846
"""
import os
import sys

import numpy as np

try:
    from _testcapi import remove_mem_hooks, set_nomemory
except ImportError:
    sys.exit("this Python comes without _testcapi")
if not hasattr(np, "dtypes") or not hasattr(np.dtypes, "StringDType"):
    print("there is no StringDType", flush=True)
    os._exit(0)

array, crashes = np.array(["one", "two"], np.dtypes.StringDType()), 0
for nth in range(20):
    child = os.fork()
    if child == 0:
        set_nomemory(nth, nth + 1)  # one request of Python's is refused
        try:
            array.copy()
        except MemoryError:
            pass
        finally:
            remove_mem_hooks()
        os._exit(0)
    crashes += os.WIFSIGNALED(os.waitpid(child, 0)[1])
print("array.copy(), each request of Python's refused in turn:",
      "crashes" if crashes else "no crash", flush=True)
