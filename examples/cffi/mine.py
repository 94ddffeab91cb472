"""Offers the handler that build.py compiles: mine.handler is what NumPy takes.

The functions are C's, and cffi only knows where the struct is.  One that cffi makes of Python's
(@ffi.callback, extern "Python") loses the exception that is pending, wherever NumPy frees while it
raises, and conform says so.
"""

import ctypes

from _mine import lib

NAME = b"mem_handler"  # a capsule keeps no copy of its name
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
handler = new_capsule(lib.address_of_handler(), NAME, None)
