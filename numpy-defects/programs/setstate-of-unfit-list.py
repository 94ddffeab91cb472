"""__setstate__ with a list that does not fit the dtype loses the exception

What a user sees: SystemError, in pure Python, where an item of the list is no record; with an item of a list refused its memory likewise.
Cause: numpy/_core/src/multiarray/methods.c:1822 (_setlist_pkl), which does not look whether an item could be set; since 8cb36a6208 of 2005.
Fix: a look.
Handlers: none is hurt.
Property: runtime.setstate-of-unfit-list
"""
import numpy as np

array = np.zeros(1, [("x", "i4"), ("y", "O")])
try:
    array.__setstate__((1, (2,), array.dtype, False, [("no number", 1), (3, 4)]))
    print("no error", flush=True)
except (SystemError, TypeError, ValueError) as error:
    print(type(error).__name__, flush=True)
