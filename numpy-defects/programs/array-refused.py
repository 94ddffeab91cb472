"""Some functions do not look whether they have an array

What a user sees: a crash instead of MemoryError.
Cause: numpy/_core/src/multiarray/scalartypes.c.src:4317 (a scalar that is indexed), since fa547b80f7 of 2008; textreading/rows.c:457 (loadtxt of nothing), since #26901 (9d7c8cb0f6), which uses the array of line 437 without a look; dtype_transfer.c:578, which returns NPY_FAIL, 0, since 9bf5bc64b7, where its callers take only a negative number for a failure, since 90f4b0838b (a copy of an array of a user's dtype).
Fix: look, and return -1.
Handlers: none is hurt.
Property: runtime.array-refused
"""
import os
import warnings

from handler import core, np, refuse

warnings.simplefilter("ignore")
rational = __import__(core.__name__ + "._rational_tests", fromlist=["rational"]).rational
rationals = np.array([rational(1, 2), rational(3, 4)])
for words, function in {
    "np.loadtxt([])": lambda: np.loadtxt([]),
    "np.int32(3)[...]": lambda: np.int32(3)[...],
    "a copy of rationals": rationals.copy,
}.items():
    for nth in 1, 2:
        child = os.fork()
        if child == 0:
            refuse(nth)
            try:
                function()
            except (MemoryError, SystemError):  # a free in Python loses the exception
                pass
            os._exit(0)
        crashed = os.waitpid(child, 0)[1] != 0
        print("%s, request %d refused: %s" % (words, nth, "crash" if crashed else "no crash"),
              flush=True)
