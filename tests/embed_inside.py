# SPDX-License-Identifier: BSD-3-Clause
"""What tests/embed_demo.py runs in embed_demo: each argument is an expression."""

import ctypes
import gc
import os
import sys
import threading
import time

import host
import numpy

sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "embed_demo"))
import demo  # noqa: E402

core = getattr(numpy, "_core", None) or numpy.core
kept, made, both = [], [None, None], threading.Barrier(2)


def swaps(rank):
    made[rank] = numpy.ones(5)
    both.wait()
    return [made[1 - rank]]


class Handler(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8)] + [
        (name, ctypes.c_void_p) for name in ("ctx", "malloc", "calloc", "realloc", "free")
    ]


def own_handler():
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    api = pointer(core._multiarray_umath._ARRAY_API, None)
    get_handler = ctypes.cast(api, ctypes.POINTER(ctypes.c_void_p))[305]
    capsule = ctypes.PYFUNCTYPE(ctypes.py_object)(get_handler)()
    return Handler.from_address(pointer(capsule, b"mem_handler"))


def strays(rank):
    """The first thread frees an array of the second one through its own handler."""
    made[rank] = numpy.ones(5)
    both.wait()
    if rank == 0:
        handler = own_handler()
        free = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
        free(handler.free)(handler.ctx, made[1].ctypes.data, 40)
    return []


def leaks(rank):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(numpy.ones(700)))
    return []


def keeps(array):
    kept.append(array)
    array *= 2
    return array


def holds():
    kept.append(numpy.ones(50))
    return kept[-1]


def fails():
    barrier = threading.Barrier(3)

    def work(rank):
        return 1 // (rank - 1) and barrier.wait()

    demo.threads("t", work, 3, abort=barrier.abort)


def plain_thread():
    """A thread of the script begins with NumPy's own handler."""
    thread = threading.Thread(target=lambda: kept.append(numpy.ones(9)))
    thread.start()
    thread.join()
    return host.owner(kept[-1].ctypes.data)


def growth(times):
    """The blocks of Python's memory that each repetition loses, of what is done here."""
    def borrow_nothing():
        try:
            host.borrow([])
        except TypeError:
            pass

    worst = 0
    for way in (lambda: host.lend(False), lambda: host.lend(True), borrow_nothing,
                lambda: host.sum(host.borrow(numpy.ones(9))), lambda: host.owner(1),
                lambda: host.sum(host.borrow(numpy.ones(9).__dlpack__())),
                lambda: host.counts("main")):
        way()
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(times):
            way()
        gc.collect()
        worst = max(worst, sys.getallocatedblocks() - before)
    return worst < times


def name():
    return ascii(core.multiarray.get_handler_name(numpy.ones(3)))


def forever():
    numpy.ones(5)
    while True:
        time.sleep(0.01)


for expression in sys.argv[1:]:
    print("==", expression)
    try:
        print(str(eval(expression))[:100])
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
