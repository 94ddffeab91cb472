# SPDX-License-Identifier: BSD-3-Clause
"""A handler made with ctypes alone, offered in each of the ways that Python packages use.

Its functions are Python's, so they take the GIL by themselves, which is allowed, and are slow.
"""

import contextlib
import ctypes

import numpy

try:
    from numpy._core import _multiarray_umath as umath
except ImportError:
    from numpy.core import _multiarray_umath as umath

LIBC = ctypes.CDLL(None, use_errno=True)
SIZE, POINTER = ctypes.c_size_t, ctypes.c_void_p
LIBC.malloc.restype = LIBC.calloc.restype = LIBC.realloc.restype = POINTER
LIBC.malloc.argtypes = [SIZE]
LIBC.calloc.argtypes = [SIZE, SIZE]
LIBC.realloc.argtypes = [POINTER, SIZE]
LIBC.free.argtypes = [POINTER]

MALLOC = ctypes.CFUNCTYPE(POINTER, POINTER, SIZE)
CALLOC = ctypes.CFUNCTYPE(POINTER, POINTER, SIZE, SIZE)
REALLOC = ctypes.CFUNCTYPE(POINTER, POINTER, POINTER, SIZE)
FREE = ctypes.CFUNCTYPE(None, POINTER, POINTER, SIZE)


class Handler(ctypes.Structure):
    """PyDataMem_Handler, as numpy/ndarraytypes.h has it."""

    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("ctx", POINTER),
                ("malloc", MALLOC), ("calloc", CALLOC), ("realloc", REALLOC), ("free", FREE)]


HANDLER = Handler(
    b"offers_ctypes", 1, None,
    MALLOC(lambda ctx, size: LIBC.malloc(size)),
    CALLOC(lambda ctx, nelem, elsize: LIBC.calloc(nelem, elsize)),
    REALLOC(lambda ctx, p, size: LIBC.realloc(p, size)),
    FREE(lambda ctx, p, size: LIBC.free(p)),
)

ctypes.pythonapi.PyCapsule_New.restype = ctypes.py_object
ctypes.pythonapi.PyCapsule_New.argtypes = [POINTER, ctypes.c_char_p, POINTER]
ctypes.pythonapi.PyCapsule_GetPointer.restype = POINTER
ctypes.pythonapi.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

NAME = b"mem_handler"  # the capsule keeps no copy of it
capsule = ctypes.pythonapi.PyCapsule_New(ctypes.addressof(HANDLER), NAME, None)

# PyDataMem_SetHandler is entry 304 of NumPy's C-API table.
TABLE = ctypes.cast(ctypes.pythonapi.PyCapsule_GetPointer(umath._ARRAY_API, None),
                    ctypes.POINTER(POINTER))
set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(TABLE[304])


def make():
    return capsule


def install():
    return set_handler(capsule)


def install_quietly():
    set_handler(capsule)


@contextlib.contextmanager
def in_force():
    before = set_handler(capsule)
    try:
        yield
    finally:
        set_handler(before)


class Holder:
    the_handler = capsule


class Manager:
    def __enter__(self):
        self.before = set_handler(capsule)

    def __exit__(self, *exception):
        set_handler(self.before)


manager = Manager()
number = numpy.float64(3)


def raises():
    raise RuntimeError("not today")
