"""Functions of a scaled float crash, a dtype of NumPy's own tests

What a user sees: a crash, with all the memory that there is; it takes a private function to have such a dtype.
Cause: numpy/_core/src/umath/_scaled_float_dtype.c:129 (sfloat_slots), which has no ensure_canonical and no nonzero, that other functions call without a look; since 13c313c107 of 2021.
Fix: let it have both.
Handlers: none is asked.
Property: runtime.scaled-float
"""
import os

import numpy as np

core = np._core if hasattr(np, "_core") else np.core
if not hasattr(core._multiarray_umath, "_get_sfloat_dtype"):
    print("there is no scaled float", flush=True)
    os._exit(0)
array = np.zeros(2, core._multiarray_umath._get_sfloat_dtype()(2.0))
for words, function in {
    "np.concatenate([array])": lambda: np.concatenate([array]),
    "np.nonzero(array)": lambda: np.nonzero(array),
    "array.argmax()": array.argmax,
}.items():
    child = os.fork()
    if child == 0:
        try:
            function()
        except (TypeError, ValueError):
            pass
        os._exit(0)
    print("%s: %s" % (words, "a crash" if os.waitpid(child, 0)[1] != 0 else "no crash"),
          flush=True)
