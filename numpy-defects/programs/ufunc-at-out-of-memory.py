"""np.add.at writes past the array where it had no memory for a view

What a user sees: MemoryError, and memory behind the array that is overwritten, in pure Python.
Cause: numpy/_core/src/umath/ufunc_object.c:6270 (ufunc_at__slow_iter), which does not look whether it has the views that are its operands: where the one to be written to is NULL, an array of the operation's dtype is made in its place, and written through by the pointer into the other; since 3820cf33fc of 2013.
Fix: look.
Handlers: a block is written past; a red zone behind it tells.
Property: runtime.ufunc-at-out-of-memory
"""
import os
import sys

import numpy as np

try:
    from _testcapi import remove_mem_hooks, set_nomemory
except ImportError:
    sys.exit("this Python comes without _testcapi")

written = 0
for nth in range(60):
    child = os.fork()
    if child == 0:
        whole = np.zeros(9, "i1")
        array = whole[:1]
        set_nomemory(nth, nth + 1)  # one request of Python's is refused
        try:
            np.add.at(array, [0], 1.5)
        except Exception:
            pass
        finally:
            remove_mem_hooks()
        os._exit(int(whole[1:].any()))
    written += os.waitpid(child, 0)[1] != 0
print("np.add.at(whole[:1], [0], 1.5), each request of Python's refused in turn:",
      "the rest is written to" if written else "the rest stays as it is", flush=True)
