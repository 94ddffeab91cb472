# SPDX-License-Identifier: BSD-3-Clause
"""Memory of the handler in other hands: buffers, DLPack, ctypes, pickles, copies, processes."""

import copy
import ctypes
import importlib.util
import os
import pickle
import sys

import _conform
import numpy as np
from conform_support import (NUMPY, Filled, Handler, control, expect, expect_ordinary, handler_name,
                             in_threads, same)

SIZES = (1, 5000) if _conform.is_instrumented() else (1, 100, 5000, 200000)


def live(handler):
    return _conform.counts(handler.capsule)["live_blocks"]


# ---- lending


def bustle(handler, size):
    """Makes, fills, resizes and frees arrays of about that size, as a busy program does."""
    with handler.installed():
        for i in range(4 if size > 10000 else 15):
            array = np.empty(size, "u1")
            array[:] = 0xEE
            other = np.zeros(size + i % 3, "u1")
            array.resize(size + 1 + i, refcheck=False)
            array[:] = other[0]
            del array, other


def in_a_thread(function):
    in_threads(lambda meet: function())


def lend(what, make, read):
    """The consumer that make(array) returns shares the array's block, which read(consumer) gives as
    bytes, keeps it alive, and gives it back once: at its own end, wherever that is.

    What ends in another thread is made in one that has ended: without a GIL an object goes to the
    thread that made it to be freed, as long as there is that.
    """
    owner, other = Handler("owner"), Handler("other")
    with other.installed():
        witness = Filled(3000, 5)
    for number, size in enumerate(SIZES):
        where = "%s of %d bytes" % (what, size)
        _conform.step("NumPy lends %s" % where)
        holders, elsewhere = [], number % 2 == 0

        def begin():
            with owner.installed():
                holders.append(Filled(size, number))  # noqa: B023, it is called at once
            holders.insert(0, make(holders[0].array))  # noqa: B023

        in_a_thread(begin) if elsewhere else begin()
        filled = holders.pop()
        same(live(owner), 1, "the blocks while there is %s" % where)
        expect_bytes(read(holders[0]), filled.contents, where)
        filled.array[0] ^= 0xFF
        contents = filled.array.tobytes()
        expect_bytes(read(holders[0]), contents, "%s after a write to the array" % where)
        del filled
        same(live(owner), 1, "the blocks while %s is all that is left" % where)
        bustle(owner, size)
        bustle(other, size)
        same(live(owner), 1, "the blocks after others came and went beside %s" % where)
        expect_bytes(read(holders[0]), contents, "%s after others came and went" % where)
        with other.installed():
            in_a_thread(holders.clear) if elsewhere else holders.clear()
        same(live(owner), 0, "the blocks after the end of %s" % where)
        witness.check("in another array after the end of %s" % where)
    del witness
    owner.expect_settled()
    other.expect_settled()


def expect_bytes(seen, expected, what):
    if seen is None or seen == expected:
        return
    pairs = enumerate(zip(seen, expected))
    at = next((i for i, (a, b) in pairs if a != b), min(len(seen), len(expected)))
    _conform.fail("byte %d of %s to be %r" % (at, what, expected[at:][:1]), "%r" % seen[at:][:1])


def buffer():
    expect_ordinary()
    lend("a memoryview", memoryview, bytes)
    lend("a memoryview of a view", lambda array: memoryview(array[::-1])[::-1], bytes)
    lend("a PickleBuffer", pickle.PickleBuffer, lambda held: bytes(memoryview(held)))
    lend("np.frombuffer", lambda array: np.frombuffer(memoryview(array), "u1"), np.ndarray.tobytes)
    lend("np.ndarray(buffer=)", lambda a: np.ndarray(a.shape, "u1", buffer=a), np.ndarray.tobytes)


class Producer:
    """Hands its capsule on."""

    def __init__(self, array):
        self.capsule = array.__dlpack__()
        self.device = array.__dlpack_device__()

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return self.device


def dlpack():
    expect_ordinary()
    if NUMPY < (1, 22) or not hasattr(np.ndarray, "__dlpack__"):
        _conform.skip("this NumPy has no DLPack")
    from_dlpack = getattr(np, "from_dlpack", None) or np._from_dlpack
    lend("np.from_dlpack", from_dlpack, np.ndarray.tobytes)
    lend("an unused capsule", lambda array: array.__dlpack__(), lambda capsule: None)
    lend("a capsule handed on", lambda a: from_dlpack(Producer(a)), np.ndarray.tobytes)
    if from_dlpack(np.arange(3)).flags.writeable:  # what is not cannot be lent on
        lend("DLPack of DLPack", lambda a: from_dlpack(from_dlpack(a)), np.ndarray.tobytes)


class Holder:
    """Has memory to show, by one of NumPy's interfaces, and keeps it alive."""

    def __init__(self, array, interface):
        self.array = array
        setattr(self, interface, getattr(array, interface))


def array_interface():
    expect_ordinary()
    for interface in "__array_interface__", "__array_struct__":
        lend(interface, lambda array: np.asarray(Holder(array, interface)),  # noqa: B023
             np.ndarray.tobytes)
        owner, other = Handler("owner"), Handler("other")
        with owner.installed():
            filled = Filled(5000, 1)
        with other.installed():
            made = np.array(Holder(filled.array, interface))
        other.owns(made, "a copy by %s" % interface)
        del filled
        same(live(owner), 0, "the blocks of the original after a copy by %s" % interface)
        expect_bytes(made.tobytes(), _conform.pattern(5000, 1), "a copy by %s" % interface)
        del made
        owner.expect_settled()
        other.expect_settled()


def by_ctypes():
    expect_ordinary()
    lib, pointer = np.ctypeslib, ctypes.POINTER(ctypes.c_ubyte)
    lend("ctypes.data_as", lambda array: (array.ctypes.data_as(pointer), array.size),
         lambda pair: ctypes.string_at(*pair))
    lend("np.ctypeslib.as_ctypes", lib.as_ctypes, bytes)
    lend("from_buffer", lambda a: (ctypes.c_ubyte * a.size).from_buffer(a), bytes)
    lend("np.ctypeslib.as_array", lambda a: lib.as_array(lib.as_ctypes(a)), np.ndarray.tobytes)


def torch():
    expect_ordinary()
    if importlib.util.find_spec("torch") is None:
        _conform.skip("torch is not installed")
    import torch

    lend("torch.from_numpy", torch.from_numpy, lambda tensor: tensor.numpy().tobytes())
    lend("tensor.numpy()", lambda a: torch.from_numpy(a).numpy(), np.ndarray.tobytes)
    lend("torch.from_dlpack", torch.from_dlpack, lambda tensor: tensor.numpy().tobytes())
    lend("np.from_dlpack of a tensor", lambda array: np.from_dlpack(torch.from_numpy(array)),
         np.ndarray.tobytes)


# ---- copies


def root_of(array):
    """The array that owns its memory, or what else does."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array if array.base is None else array.base


def expect_own_copies(what, make):
    """What make(array) returns is the handler's in force, or memory of Python's; the original stays
    its owner's.  Each outlives the other once."""
    owner, other = Handler("owner"), Handler("other")
    for first in "original", "copy":
        for number, size in enumerate(SIZES):
            where = "%s of %d bytes" % (what, size)
            _conform.step("NumPy makes %s" % where)
            with owner.installed():
                filled = Filled(size, number)
            contents = filled.contents
            with other.installed():
                made = make(filled.array)
            root = root_of(made)
            if not isinstance(root, np.ndarray):
                same(live(other), 0, "the blocks of the active handler after %s" % where)
            else:
                same(handler_name(root), "other", "the handler of %s" % where)
                other.owns(root, "which is %s" % where)
            owner.owns(filled.array, "the original of %s" % where)
            if made.flags.writeable:
                made[0] ^= 0xFF
                expect_bytes(filled.array.tobytes(), contents, "the original of %s" % where)
                made[0] ^= 0xFF
            if first == "original":
                del filled
                bustle(owner, size)
                expect_bytes(made.tobytes(), contents, "%s after its original's end" % where)
                del made, root
            else:
                del made, root
                bustle(other, size)
                expect_bytes(filled.array.tobytes(), contents, "the original of %s" % where)
                del filled
            same((live(owner), live(other)), (0, 0), "the blocks after the end of %s" % where)
    owner.expect_settled()
    other.expect_settled()


def by_pickle():
    expect_ordinary()
    for protocol in 2, pickle.HIGHEST_PROTOCOL:
        expect_own_copies("a copy by pickle protocol %d" % protocol,
                          lambda array: pickle.loads(pickle.dumps(array, protocol)))  # noqa: B023
    lend("a pickle out of band", out_of_band, np.ndarray.tobytes)


def out_of_band(array):
    buffers = []
    data = pickle.dumps(array, 5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=buffers)


def by_copy():
    expect_ordinary()
    expect_own_copies("array.copy()", np.ndarray.copy)
    expect_own_copies("copy.copy", copy.copy)
    expect_own_copies("copy.deepcopy", copy.deepcopy)
    expect_own_copies("np.array", np.array)
    expect_own_copies("astype", lambda array: array.astype("u1"))
    owner, other = Handler("owner"), Handler("other")
    with owner.installed():
        inner = Filled(3000, 7)
        outer = np.array([inner.array, "x", [inner.array]], object)
    with other.installed():
        made = copy.deepcopy(outer)
    other.owns(made, "a deep copy")
    other.owns(made[0], "within a deep copy")
    same(made[0] is made[2][0], True, "what was one array within to be one in a deep copy")
    del inner, outer
    same(live(owner), 0, "the blocks of what a deep copy was made of")
    expect_bytes(made[0].tobytes(), _conform.pattern(3000, 7), "an array within a deep copy")
    del made
    owner.expect_settled()
    other.expect_settled()


# ---- processes


def expect_filled(arrays, what):
    """In a child, where nothing but an exception can tell of it."""
    for filled in arrays:
        pairs = enumerate(zip(filled.array.tobytes(), filled.contents))
        at = next((i for i, (a, b) in pairs if a != b), None)
        if at is not None:
            raise ValueError("byte %d of %s of %d bytes is not right"
                             % (at, what, filled.array.size))


def use_inherited(kept):
    """Uses what a forked child inherited, in every way."""
    expect_filled(kept, "an inherited array")
    made = [Filled(filled.array.size, 1) for filled in kept for _ in range(3)]
    crowd = [Filled(1000, number) for number in range(100)]
    expect_filled(kept + crowd, "an array, once a child has made others,")
    for filled in kept:
        filled.array[:] = 0x99
        filled.array.resize(filled.array.size * 2, refcheck=False)
    expect_filled(made, "a child's array")
    kept.clear()
    return made


def child(pipe, kept):
    try:
        pipe.send(use_inherited(kept))
    except ValueError as error:
        pipe.send(str(error))


def sent_by(context, function, what, *arguments):
    """What a child that calls function(pipe, *arguments) sends; it ends with status 0."""
    mine, its = context.Pipe(False)
    process = context.Process(target=function, args=(its, *arguments))
    process.start()
    its.close()
    try:
        found = mine.recv()
    except EOFError:
        found = None
    process.join()
    mine.close()
    expect(process.exitcode == 0, "%s to end with status 0" % what, "%d" % process.exitcode)
    expect(found is not None, "%s to send what it found" % what, "nothing")
    return found


def forked():
    import multiprocessing

    context = multiprocessing.get_context("fork")
    handler = Handler()
    with handler.installed():
        kept = [Filled(size, number) for number, size in enumerate(SIZES)]
        found = sent_by(context, child, "a forked child", kept)
        expect(not isinstance(found, str), "a forked child to work on its arrays", found)
        for filled in found:
            filled.check("in an array that a forked child sent")
        for filled in kept:
            filled.check("after a forked child wrote over its copy")
            filled.array.resize(filled.array.size + 5000, refcheck=False)
        del filled, found
        kept.clear()
    handler.expect_settled()


def spawned():
    """What travels is a pickle of an array; the child is Python alone, without NumPy and site, and
    without the Python beside it that multiprocessing keeps track of semaphores in, so that this
    takes the time of one start of Python and no more."""
    import multiprocessing
    from multiprocessing import resource_tracker, util
    from multiprocessing.connection import Connection

    if not sys.executable or not os.access(sys.executable, os.X_OK):
        _conform.skip("forked processes work; sys.executable, to spawn one, cannot be run")
    if hasattr(util, "_args_from_interpreter_flags"):  # an inner one, and faster with it
        flags = util._args_from_interpreter_flags()
        util._args_from_interpreter_flags = lambda: [*flags, "-S"]
    nobody = os.open(os.devnull, os.O_WRONLY)
    resource_tracker.getfd = lambda: nobody
    context = multiprocessing.get_context("spawn")
    handler = Handler()
    with handler.installed():
        filled = Filled(5000, 3)
        data = sent_by(context, Connection.send, "a spawned child", pickle.dumps(filled.array, 2))
        made = pickle.loads(data)
        expect_bytes(made.tobytes(), filled.contents, "an array that a spawned child sent back")
        filled.check("after a child was spawned")
        del filled, made
    handler.expect_settled()


def expect_to_grow():
    """As the arrays of parent and child do, without a child."""
    with control("without a fork"):
        with Handler().installed():
            for size in SIZES:
                for more in size, 5000:
                    filled = Filled(size, more)
                    filled.array.resize(size + more, refcheck=False)
                    filled.check("after a resize", size)


def processes():
    if _conform.is_instrumented():
        _conform.skip("multiprocessing alone takes seconds to import here")
    expect_to_grow()
    forked()
    spawned()
