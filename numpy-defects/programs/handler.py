# SPDX-License-Identifier: BSD-3-Clause
"""A memory handler in Python: NumPy's default one, which may refuse a request and sees sizes."""

import atexit
import ctypes
import os
import sys

import numpy as np

core = np._core if hasattr(np, "_core") else np.core
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api = ctypes.cast(pointer(core._multiarray_umath._ARRAY_API, None),
                  ctypes.POINTER(ctypes.c_void_p))
set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(api[304])
get_handler = ctypes.PYFUNCTYPE(ctypes.py_object)(api[305])

NAME = b"mem_handler"  # a capsule keeps no copy of it
P, N = ctypes.c_void_p, ctypes.c_size_t


def struct(function):
    """PyDataMem_Handler, with functions of that kind."""
    class Struct(ctypes.Structure):
        _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("ctx", P),
                    ("malloc", function(P, P, N)), ("calloc", function(P, P, N, N)),
                    ("realloc", function(P, P, P, N)), ("free", function(None, P, P, N))]
    return Struct


# NumPy's is called with the GIL; ours takes it, as NumPy may call realloc without.
default = struct(ctypes.PYFUNCTYPE).from_address(pointer(get_handler(), NAME))
Struct = struct(ctypes.CFUNCTYPE)
MALLOC, CALLOC, REALLOC, FREE = (dict(Struct._fields_)[name]
                                 for name in ("malloc", "calloc", "realloc", "free"))
sizes, wrong, left = {}, [], [0]


def refuse(nth):
    """The nth request from now on gets NULL; 0: none."""
    left[0] = nth


def granted(size, ask):
    left[0] -= 1
    block = None if left[0] == 0 else ask()
    if block:
        sizes[block] = size
    return block


def free(ctx, block, size):
    asked = sizes.pop(block, size)
    if asked != size:
        wrong.append("free is told %d of a block of %d bytes" % (size, asked))
    default.free(ctx, block, size)


own = Struct(
    b"refusing", 1, None,
    MALLOC(lambda ctx, size: granted(size, lambda: default.malloc(ctx, size))),
    CALLOC(lambda ctx, n, size: granted(n * size, lambda: default.calloc(ctx, n, size))),
    REALLOC(lambda ctx, p, size: granted(size, lambda: default.realloc(ctx, p, size))),
    FREE(free))
set_handler(new_capsule(ctypes.addressof(own), NAME, None))


@atexit.register
def leave():
    """No array is to outlive Python, whose functions these are."""
    sys.stdout.flush()
    os._exit(0)
