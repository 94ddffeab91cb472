"""Offers the handler of a shared object to Python: mine.handler is what NumPy takes.

The functions have to be compiled.  One that ctypes makes of Python's loses the exception that is
pending, wherever NumPy frees while it raises, and conform says so.
"""

import ctypes
import os

library = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "libmine.so"))
struct = (ctypes.c_char * 168).in_dll(library, "nep49_handler")

NAME = b"mem_handler"  # a capsule keeps no copy of its name
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
handler = new_capsule(ctypes.addressof(struct), NAME, None)
