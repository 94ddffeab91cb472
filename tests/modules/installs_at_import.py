# SPDX-License-Identifier: BSD-3-Clause
"""A package that puts the handler of a shared object in force as it is imported, and uses modules
of the standard library that change signals.  The object is what INSTALLS_AT_IMPORT names."""

import ctypes
import os
import signal  # noqa: F401

import offers_ctypes

try:
    import readline  # noqa: F401
except ImportError:
    pass

get_handler = ctypes.CDLL(os.environ["INSTALLS_AT_IMPORT"]).nep49_get_handler
get_handler.restype = ctypes.c_void_p
get_handler.argtypes = [ctypes.POINTER(ctypes.c_char_p)]


def install():
    handler = get_handler(ctypes.c_char_p())
    offers_ctypes.set_handler(ctypes.pythonapi.PyCapsule_New(handler, offers_ctypes.NAME, None))


install()
