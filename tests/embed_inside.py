# SPDX-License-Identifier: BSD-3-Clause
"""What tests/embed_demo.py has the embedding demo run: each argument is an expression."""

import atexit
import contextvars
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
kept = []


# ---- what is wrong in one thing ----


class Pool(demo.Pool):
    """Solves it right, and hands it in wrong."""

    def __init__(self):
        super().__init__(256, 3)

    def solve(self, rank):
        result = super().solve(rank)
        self.spoil(rank, self.field[256 * rank // 3 : 256 * (rank + 1) // 3])
        return result

    def spoil(self, rank, mine):
        pass


class Higher(Pool):
    def spoil(self, rank, mine):
        mine *= 1.5


class Row(Pool):
    def spoil(self, rank, mine):
        if rank == 2:
            mine[-1] = float("nan")


class Point(Pool):
    def spoil(self, rank, mine):
        if rank == 1:
            mine[3, 3] += 1


class Deaf(Pool):
    """Each strip is a pool of its own: nobody hears of the neighbours."""

    def __init__(self):
        super().__init__()

        class Nobody(list):
            def __getitem__(self, at):
                return [numpy.zeros((3, 1))] * 2

        self.strips = Nobody(self.strips)


class Fails(Pool):
    def solve(self, rank):
        return 1 // (rank - 1) and super().solve(rank)


made, both = [None, None], threading.Barrier(2)


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
    """The first thread frees an array of the other one's through its own handler."""
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


def holds():
    kept.append(numpy.ones(50))
    return kept[-1]


def keeps(array):
    kept.append(array)
    array *= 2
    return array


def copies(array):
    return numpy.multiply(array, 2, out=array).copy()


def script_thread():
    """A thread of the script's own begins with NumPy's handler."""
    results = []

    def live():
        try:
            results.append(host.live())
        except RuntimeError as error:
            results.append(error)

    thread = threading.Thread(target=live)
    thread.start()
    thread.join()
    return results[0]


# ---- what is right ----


def refused(function):
    """What an exception leaves behind."""
    try:
        function()
    except (TypeError, ZeroDivisionError):
        pass


WAYS = [
    lambda: host.lend("l", demo.doubled),
    lambda: host.lend("l", lambda capsule: demo.from_dlpack(demo.Tensor(capsule)), True),
    lambda: host.borrow("b", demo.made_here),
    lambda: host.borrow("b", demo.made_here, True),
    lambda: host.threads("t", lambda rank: [numpy.ones(3)], 2),
    lambda: refused(lambda: host.lend("l", list)),
    lambda: refused(lambda: host.borrow("b", list)),
    lambda: refused(lambda: host.threads("t", lambda rank: 1 // 0)),
]


def growth(times):
    """By how many objects Python's memory grows each time that something is done.  At first it
    grows by what Python keeps, to use it again, which is some hundred times more in one process
    than in another; what is lost each time is lost in all the rounds."""
    worst = 0
    for way in WAYS:
        least, before = 10**9, 0
        for _ in range(20):
            for _ in range(times):
                way()
            gc.collect()
            after = sys.getallocatedblocks()
            least, before = min(least, after - before), after
            if least < times / 2:
                break
        worst = max(worst, least)
    return round(worst / times)


def figures():
    big, less = numpy.empty(1000003, "u1"), numpy.empty(1000000, "u1")
    del big, less
    numpy.fromstring("", sep=" ")  # gives back another size than it asked for
    kept.append(numpy.empty(10, "u1"))
    kept[-1].resize(30, refcheck=False)


def stay_alive():
    """12816 bytes of arrays, which outlive the script by all the ways there are."""
    global view
    view = numpy.ones(100)[::2]
    loop = [numpy.ones(200)]
    loop.append(loop)
    sys.kept = numpy.ones(300)
    last = numpy.ones(400)
    atexit.register(lambda: last.resize(500, refcheck=False))
    numpy.kept = numpy.array([numpy.ones(600), None], object)


def shared():
    """Threads of the script's that have the main thread's handler."""
    words = " ".join(["1"] * 6000)

    def parse():
        for i in range(100):
            assert numpy.fromstring(words, sep=" ").sum() == 6000  # realloc without the GIL
            numpy.zeros(i).resize(2 * i, refcheck=False)

    for _ in range(4):
        threading.Thread(target=contextvars.copy_context().run, args=[parse]).start()


def name():
    return ascii(core.multiarray.get_handler_name(numpy.ones(3)))


# ---- what does not end ----


def forever():
    numpy.ones(5)
    while True:
        time.sleep(0.01)


def spins():
    stop = threading.Event()

    def spin(rank):
        while not stop.is_set():
            numpy.ones(5)
        return []

    host.threads("t", spin, abort=stop.set)


def sleeps():
    host.threads("t", lambda rank: time.sleep(60))


for expression in sys.argv[1:]:
    print("==", expression)
    try:
        print(str(eval(expression))[:100])
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
