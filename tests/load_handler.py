# SPDX-License-Identifier: BSD-3-Clause
"""Loads and installs a handler with ctypes alone, for tests/handlers.py."""

import ctypes

# In the order of __multiarray_api.h, where it has not changed since 1.22.
SET_HANDLER = 304


class Refused(Exception):
    """The handler says that it cannot work here."""


def load(path):
    """The address of the PyDataMem_Handler in a shared object."""
    library = ctypes.CDLL(path)
    try:
        return ctypes.addressof(ctypes.c_char.in_dll(library, "nep49_handler"))
    except ValueError:
        pass
    why = ctypes.c_char_p(b"no reason")
    getter = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(("nep49_get_handler", library))
    handler = getter(ctypes.addressof(why))
    if not handler:
        raise Refused(why.value.decode(errors="replace"))
    return handler


class Handlers:
    """Installs a handler, or the default one, in this thread's context."""

    def __init__(self, path):
        import numpy
        core = getattr(numpy, "_core", None) or numpy.core
        api = ctypes.pythonapi
        api.PyCapsule_GetPointer.restype = ctypes.c_void_p
        api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        api.PyCapsule_New.restype = ctypes.py_object
        api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        table = api.PyCapsule_GetPointer(core._multiarray_umath._ARRAY_API, None)
        entry = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[SET_HANDLER]
        self.set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(entry)
        self.name = b"mem_handler"  # the capsule keeps a pointer to it
        self.capsule = api.PyCapsule_New(load(path), self.name, None)
        self.default = self.set_handler(self.capsule)
        self.set_handler(self.default)

    def install(self, ours):
        self.set_handler(self.capsule if ours else self.default)
