"""PyDataMem_SetHandler takes a handler without functions

What a user sees: a crash at the next array, far from the mistake.
Cause: numpy/_core/src/multiarray/alloc.c:539, which looks neither at the functions nor at the version; since #17582 (84e0707afa), which brought it.
Fix: refuse NULL and versions that are not known.
Handlers: initialise all four functions; the struct may grow with a version.
Property: runtime.set-handler-looks
"""
import ctypes

from handler import NAME, Struct, new_capsule, np, set_handler

nothing = Struct(b"nothing", 77)
try:
    set_handler(new_capsule(ctypes.addressof(nothing), NAME, None))
    print("a handler of version 77 without functions is taken", flush=True)
except ValueError:
    print("refused", flush=True)
np.empty(1)
print("no crash", flush=True)
