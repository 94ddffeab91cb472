"""An array of a date crashes where its dtype had no memory

What a user sees: a crash instead of MemoryError; ufuncs of an array and a date do the same.
Cause: numpy/_core/src/multiarray/dtypemeta.c (discover_datetime_and_timedelta_from_pyobject), which did not look whether it had the dtype of the scalar; since 28c8b39017 of 2020.
Fix: NumPy did in 2.5, by #31067 (a575a3bb27).
Handlers: none is asked: the memory is Python's.
Property: runtime.date-out-of-memory
State upstream: fixed in 2.5 by #31067
"""
import os
import sys

import numpy as np

try:
    from _testcapi import remove_mem_hooks, set_nomemory
except ImportError:
    sys.exit("this Python comes without _testcapi")

os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # another defect tells itself there
date, crashes = np.datetime64(3, "s"), 0
for nth in range(20):
    child = os.fork()
    if child == 0:
        set_nomemory(nth, nth + 1)  # one request of Python's is refused
        try:
            np.array(date)
        except MemoryError:
            pass
        finally:
            remove_mem_hooks()
        os._exit(0)
    crashes += os.waitpid(child, 0)[1] != 0
print("np.array(date), each request of Python's refused in turn:",
      "crashes" if crashes else "no crash", flush=True)
