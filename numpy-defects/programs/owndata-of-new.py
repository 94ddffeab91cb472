"""Memory of PyDataMem_NEW that an array owns by OWNDATA does not go back where it came from

What a user sees: "munmap_chunk(): invalid pointer" under python -X dev.
Cause: numpy/_core/src/multiarray/alloc.c, whose PyDataMem_NEW asks PyMem_RawMalloc, while the end of an array that has OWNDATA and no handler calls free(); since #30846 (316f598b06).
Fix: free there what PyDataMem_NEW gives, or say in the documentation that the two do not go together, as [fixes/data-memory-page.py](../fixes/data-memory-page.py) does.
Handlers: none is asked.  Extensions: give such an array a capsule as its base.
Property: runtime.new-goes-with-owndata
"""
import ctypes
import os
import sys

if not sys.flags.dev_mode:
    os.execv(sys.executable, [sys.executable, "-X", "dev", *sys.argv])
from handler import api, np

new = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(api[288])
new_array = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.py_object, ctypes.c_int, ctypes.POINTER(ctypes.c_ssize_t),
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int,
    ctypes.c_void_p)(api[93])
array = new_array(np.ndarray, 1, (ctypes.c_ssize_t * 1)(80), 2, None, new(80), 0, 0x501, None)
flags = ctypes.c_int.from_address(id(array) + object.__basicsize__ + 48)
flags.value |= 4  # NPY_ARRAY_OWNDATA
print("owned:", array.flags.owndata, flush=True)
del array
print("deleted", flush=True)
