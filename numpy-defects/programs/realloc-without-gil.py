"""realloc of a handler is called without the GIL, and nothing says so

What a user sees: a crash in a handler that takes the GIL for granted, as all other calls let it.
Cause: numpy/_core/src/multiarray/ctors.c:3568 and 3592 (array_from_text), which let go of the GIL and grow the array; since realloc is a handler's, by #17582 (84e0707afa).
Fix: take the GIL for that call, or a word in NEP 49.
Handlers: use nothing of Python in realloc without PyGILState_Ensure, and guard state by a lock.
Property: runtime.calls-with-gil
"""
import ctypes
import os
import sys
import warnings

if not sys.flags.dev_mode:  # where Python's allocators look whether they are called with the GIL
    os.execv(sys.executable, [sys.executable, "-X", "dev", *sys.argv])
from handler import CALLOC, FREE, MALLOC, NAME, REALLOC, P, Struct, new_capsule, np, set_handler

warnings.simplefilter("ignore")
pythons = (P * 5)()  # ctx and the four functions of PyMem_Malloc, which a handler has as well
ctypes.pythonapi.PyMem_GetAllocator(1, pythons)
kinds = MALLOC, CALLOC, REALLOC, FREE
own = Struct(b"pythons", 1, pythons[0], *[ctypes.cast(p, k) for p, k in zip(pythons[1:], kinds)])
set_handler(new_capsule(ctypes.addressof(own), NAME, None))
np.arange(10).resize(1000, refcheck=False)
print("ndarray.resize: no crash", flush=True)
np.fromstring("1 " * 9000, sep=" ")
print("np.fromstring: no crash", flush=True)
