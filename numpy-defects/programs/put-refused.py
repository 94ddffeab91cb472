"""put and putmask of a strided array crash where their copy is refused

What a user sees: a crash instead of MemoryError.
Cause: numpy/_core/src/multiarray/item_selection.c (PyArray_PutTo, PyArray_PutMask), which did not look whether they had the copy; since b772c977e5 of 2006.
Fix: a look; NumPy has one since 2.5, by #31615 (66f4fdf94d).
Handlers: none is hurt.
Property: runtime.put-refused
State upstream: fixed in 2.5 by #31615
"""
import os

from handler import np, refuse

for words, function in {
    "put": lambda array: array.put([0], 7),
    "np.putmask": lambda array: np.putmask(array, [True, False, True, False], 7),
}.items():
    array = np.arange(8)[::2]
    crashes = 0
    for nth in 1, 2, 3, 4:
        child = os.fork()
        if child == 0:
            refuse(nth)
            try:
                function(array)
            except (MemoryError, SystemError):  # a free in Python loses the exception
                pass
            os._exit(0)
        crashes += os.waitpid(child, 0)[1] != 0
    print("%s, each request refused in turn: %s" % (words, "crashes" if crashes else "no crash"),
          flush=True)
