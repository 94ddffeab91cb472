"""A deep copy of objects crashes where copy.deepcopy cannot be had

What a user sees: a crash instead of an exception, in pure Python; it comes to that where Python has no memory for what is asked of the module.
Cause: numpy/_core/src/multiarray/methods.c:1773 (array_deepcopy), which releases deepcopy also where it is NULL; since #22753 (bfffb09bed).
Fix: Py_XDECREF there.
Handlers: none is asked here: the copy is made by then, and goes back.
Property: runtime.deepcopy-of-objects
"""
import copy

import numpy as np

array = np.array([None])
del copy.deepcopy
try:
    array.__deepcopy__({})
    print("no error", flush=True)
except AttributeError:
    print("AttributeError", flush=True)
