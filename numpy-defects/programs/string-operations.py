"""np.lexsort of a strided array of StringDType crashes, and so does byteswap

What a user sees: a crash, with all the memory that there is.
Cause: numpy/_core/src/multiarray/item_selection.c (PyArray_LexSort), which asked whether there was an exception without the GIL, as it lets go of that for strings; methods.c (PyArray_Byteswap), which called a function that StringDType does not have; since there is StringDType, by ced4336b96.
Fix: NumPy did in 2.5.2 by #32151 (e117b3ca4e), and in 2.5.5 by #33228.
Handlers: none is asked.
Property: runtime.string-operations
State upstream: fixed in 2.5.2 by #32151, and in 2.5.5 by #33228
"""
import os

import numpy as np

if not hasattr(np, "dtypes") or not hasattr(np.dtypes, "StringDType"):
    print("there is no StringDType", flush=True)
    os._exit(0)
array = np.array(["a string that is longer than others are", "two", "three" * 9] * 2, "T")
for words, function in {
    "np.lexsort((array[::2],))": lambda: np.lexsort((array[::2], array[::2])),
    "array.byteswap()": array.byteswap,
}.items():
    child = os.fork()
    if child == 0:
        try:
            function()
        except (TypeError, ValueError, RuntimeError):
            pass
        os._exit(0)
    print("%s: %s" % (words, "a crash" if os.waitpid(child, 0)[1] != 0 else "no crash"),
          flush=True)
