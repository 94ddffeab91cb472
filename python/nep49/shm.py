# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of the handler shm, which another process of the same user maps by name::

    with nep49.use("shm"):
        a = np.zeros((1000, 1000))
    name = nep49.shm.name_of(a)                       # here
    b = nep49.shm.attach(name, a.dtype, a.shape)      # there: the same bytes

The name lasts as long as the array and the process that made it; what another process has attached
by then stays.  nep49_shm.h is the same for C.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import math
import operator
import os
import weakref
from typing import Any, Literal, Optional, Sequence, Union

import numpy as np

import nep49

__all__ = ["attach", "name_of"]
_NAME_ROOM = 96


def __dir__() -> list[str]:
    return __all__


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


def _refuse_pointers(dtype: np.dtype) -> None:
    if dtype.hasobject:
        raise TypeError("dtype %s has pointers in it, which mean nothing in another process"
                        % dtype)


def name_of(array: np.ndarray) -> str:
    """Returns the name by which another process attaches the array.

    Parameters
    ----------
    array : numpy.ndarray
        Made with the handler shm, or a contiguous view that begins where such an array does: one of
        another shape or dtype.

    Returns
    -------
    str
        A line of text, to be sent by any means.

    Raises
    ------
    TypeError
        It is not a numpy.ndarray, or its dtype has pointers in it, such as objects.
    ValueError
        Another handler made it, or it is a part of an array, or smaller than the handler shares
        (``from_``; default: 64 KiB).
    """
    owner = nep49._owner("name_of", array)
    _refuse_pointers(array.dtype)
    handler = nep49.handler_of(array)
    name = ctypes.create_string_buffer(_NAME_ROOM)
    if (owner is None or handler is None or handler.name != "shm"
            or owner.ctypes.data != array.ctypes.data or not array.flags.forc
            or _functions().shm_name(owner.ctypes.data, name, _NAME_ROOM) != 0):
        raise ValueError("the array is not a shared one: made with shm active, of at least from_ "
                         "bytes (default: 64K), and no part of another")
    return name.value.decode()


def attach(name: str, dtype: Any = np.uint8, shape: Optional[Union[int, Sequence[int]]] = None,
           order: Literal["C", "F"] = "C") -> np.ndarray:
    """Returns an array with the bytes that another process's array has, by its name.

    Parameters
    ----------
    name : str
        As `name_of` returned it, in another process or in this one.
    dtype : data type, optional
        That of the array; default: bytes.
    shape : int or sequence of int, optional
        That of the array; default: all that there is, in one dimension.
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
    TypeError
        The dtype has pointers in it, such as objects, or an argument is of the wrong type.
    ValueError
        It is not a name, or has fewer bytes than dtype and shape need, or a length is negative.
    """
    if not isinstance(name, str):
        raise TypeError("name is a str that name_of returned, not %s" % type(name).__name__)
    dtype = np.dtype(dtype)
    _refuse_pointers(dtype)
    if dtype.itemsize == 0:
        raise ValueError("dtype %s has no bytes" % dtype)
    lengths = None if shape is None else _lengths(shape)
    size = ctypes.c_size_t()
    data = None if "\0" in name else _functions().shm_attach(name.encode(errors="replace"),
                                                             ctypes.byref(size))
    if not data:
        error = errno.EINVAL if "\0" in name else ctypes.get_errno()
        if error == errno.EINVAL:
            raise ValueError("%r is not the name of a shared array" % name)
        raise OSError(error, os.strerror(error), name)
    memory = (ctypes.c_char * size.value).from_address(data)
    # at exit the handler itself lets go of what is left, for arrays may be used until then
    weakref.finalize(memory, _functions().shm_detach, data).atexit = False
    if lengths is None:
        lengths = (size.value // dtype.itemsize,)
    wanted = dtype.itemsize * math.prod(lengths)
    if wanted > size.value:
        raise ValueError("%d bytes are shared by that name, and %d are asked for"
                         % (size.value, wanted))
    return np.ndarray(lengths, dtype, memoryview(memory), order=order)


def _lengths(shape: Union[int, Sequence[int]]) -> tuple[int, ...]:
    try:
        lengths = tuple(map(operator.index, shape if np.iterable(shape) else (shape,)))
    except TypeError:
        raise TypeError("shape=%r is not an int or a sequence of ints" % (shape,)) from None
    if any(length < 0 for length in lengths):
        raise ValueError("shape=%r has a negative length" % (shape,))
    return lengths
