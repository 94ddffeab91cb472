"""__setstate__ with a list shorter than the shape crashes

What a user sees: a crash by a pickle that is damaged, in pure Python.
Cause: numpy/_core/src/multiarray/methods.c:1821 (_setlist_pkl), which takes items of the list by PyList_GET_ITEM as many as the shape has; since 8cb36a6208 of 2005.
Fix: compare the two lengths and raise ValueError.
Handlers: none is hurt.
Property: runtime.setstate-of-short-list
"""
import numpy as np

try:
    np.empty(0).__setstate__((1, (3000,), np.dtype("O"), False, [1]))
    print("no error", flush=True)
except (IndexError, ValueError) as error:
    print(type(error).__name__, flush=True)
