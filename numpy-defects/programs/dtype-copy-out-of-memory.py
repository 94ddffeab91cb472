"""A copy of a dtype that has no memory releases what it does not have

What a user sees: "Reference count error detected" on stderr, and, up to 2.4, a reference to np.datetime64 that is lost; a NumPy with assertions aborts.
Cause: numpy/_core/src/multiarray/descriptor.c:2037 and 2050 (PyArray_DescrNew), which drops the copy before it has taken its references; since eb40102ef7 of 2012.
Fix: take all of them first.
Handlers: none is asked: the memory is Python's, or libc's.
Property: runtime.dtype-copy-out-of-memory
"""
import os
import sys

import numpy as np

try:
    from _testcapi import remove_mem_hooks, set_nomemory
except ImportError:
    sys.exit("this Python comes without _testcapi")

os.dup2(1, 2)
date = np.datetime64(3, "s")
date.dtype
before = sys.getrefcount(np.datetime64)
for nth in range(20):
    set_nomemory(nth, nth + 1)  # one request is refused
    try:
        date.dtype
    except MemoryError:
        pass
    finally:
        remove_mem_hooks()
print("references to np.datetime64 that are lost:", before - sys.getrefcount(np.datetime64))
