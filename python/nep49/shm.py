# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of the handler shm, which another process of the same user maps by name::

    with nep49.use("shm"):
        a = np.zeros((1000, 1000))
    name = nep49.shm.name_of(a)                       # here
    b = nep49.shm.attach(name, a.dtype, a.shape)      # there: the same bytes

The name lasts as long as the array and the process that made it; what another process has attached
by then, it keeps.  nep49_shm.h is the same for C.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import math
import os
import weakref
from typing import Any, Literal, Optional, Sequence, Union

import numpy as np

import nep49

_NAME_ROOM = 96


@functools.lru_cache(maxsize=None)
def _functions() -> ctypes.CDLL:
    """Those of the handler's object, whichever copy of it made the array."""
    library = ctypes.CDLL(nep49.load("shm").path, use_errno=True)
    library.shm_name.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    library.shm_attach.restype = ctypes.c_void_p
    library.shm_attach.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_size_t)]
    library.shm_detach.argtypes = [ctypes.c_void_p]
    library.shm_detach.restype = None
    return library


def name_of(array: np.ndarray) -> str:
    """The name by which another process attaches the array.

    Parameters
    ----------
    array : numpy.ndarray
        Made with the handler shm in force.

    Returns
    -------
    str
        A line of text, to be sent somehow.

    Raises
    ------
    ValueError
        It is a view, or its memory is not the handler shm's, or it is smaller than what that shares
        (``from_``, 64 KiB unless told).
    """
    name = ctypes.create_string_buffer(_NAME_ROOM)
    if (nep49.handler_of(array).name != "shm"
            or _functions().shm_name(array.ctypes.data, name, _NAME_ROOM) != 0):
        raise ValueError("the array is not a shared one: made with shm in force, of as many bytes "
                         "as shm shares, and no view")
    return name.value.decode()


def attach(name: str, dtype: Any = np.uint8, shape: Optional[Union[int, Sequence[int]]] = None,
           order: Literal["C", "F"] = "C") -> np.ndarray:
    """Another process's array, or one of this one, by its name: the same bytes.

    Parameters
    ----------
    name : str
        As `name_of` gave it.
    dtype : data type, optional
        That of the array; bytes unless told.
    shape : int or sequence of int, optional
        That of the array; all that there is, in one dimension, unless told.
    order : {'C', 'F'}, optional
        As `numpy.ndarray` takes it.

    Returns
    -------
    numpy.ndarray
        Writable.  Its memory stays while it, or a view of it, lives.

    Raises
    ------
    OSError
        FileNotFoundError: its array or its process is gone; PermissionError: it is another user's.
    ValueError
        It is not a name, or has not so many bytes.
    """
    size = ctypes.c_size_t()
    data = _functions().shm_attach(name.encode(), ctypes.byref(size))
    if not data:
        error = ctypes.get_errno()
        if error == errno.EINVAL:
            raise ValueError("%r is not the name of a shared array" % name)
        raise OSError(error, os.strerror(error), name)
    memory = (ctypes.c_char * size.value).from_address(data)
    weakref.finalize(memory, _functions().shm_detach, data).atexit = False
    itemsize = np.dtype(dtype).itemsize
    if shape is None:
        shape = size.value // max(itemsize, 1)
    wanted = itemsize * (math.prod(shape) if isinstance(shape, Sequence) else int(shape))
    if wanted > size.value:
        raise ValueError("%d bytes are shared by that name, and %d are asked for"
                         % (size.value, wanted))
    return np.ndarray(shape, dtype, memoryview(memory), order=order)
