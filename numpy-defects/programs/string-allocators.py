"""flat, put, np.place and np.fromiter of StringDType take one array's strings for another's

What a user sees: a crash, or strings of another array, with all the memory that there is.
Cause: numpy/_core/src/multiarray/iterators.c (iter_subscript), item_selection.c (PyArray_PutTo, PyArray_PutMask, PyArray_Choose), compiled_base.c (arr_place) and ctors.c (PyArray_FromIter), which packed strings by the dtype that they were given and not by the array's own; since there is StringDType, by ced4336b96.
Fix: NumPy did in 2.5, by #31609 (706b103518), and in 2.5.2, by #32012 (adf557d9a1).
Handlers: none is asked: these strings are in Python's memory.
Property: runtime.string-allocators
State upstream: fixed in 2.5 by #31609, and in 2.5.2 by #32012
"""
import os

import numpy as np

if not hasattr(np, "dtypes") or not hasattr(np.dtypes, "StringDType"):
    print("there is no StringDType", flush=True)
    os._exit(0)
texts = ["%d, which is longer than a small string is" % i for i in range(6)]


def flat():
    return np.array(texts, "T").flat[1:3].tolist() == texts[1:3]


def put():
    array = np.array(texts, "T")
    array.put([0], np.array(texts[5:], "T"))
    return array.tolist() == texts[5:] + texts[1:]


def place():
    array = np.array(texts, "T")
    np.place(array, [True] * 6, np.array(texts[::-1], "T"))
    return array.tolist() == texts[::-1]


def fromiter():
    dtype = np.array(texts, "T").dtype
    return np.fromiter(texts, dtype).tolist() == texts


for function in flat, put, place, fromiter:
    child = os.fork()
    if child == 0:
        try:
            os._exit(not function())
        except (MemoryError, SystemError):
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    print("%s: %s" % (function.__name__, "as it should be" if status == 0 else
                      "a crash" if os.WIFSIGNALED(status) else "other strings"), flush=True)
