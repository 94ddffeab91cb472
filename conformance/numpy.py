# SPDX-License-Identifier: BSD-3-Clause
"""Real arrays on the handler."""

import atexit
import gc
import sys
import threading
import tracemalloc

import _conform
import numpy as np
from conform_support import (DEFAULT_NAME, NUMPY, Filled, Handler, address_of, default_in_force,
                             expect, expect_in_force, handler_name, handler_version, same)


def use(rounds=1):
    """Calls each of the handler's functions, by arrays, and leaves nothing behind."""
    for i in range(rounds):
        array = np.zeros(10 + i)
        array.resize(1000 + i, refcheck=False)
        other = np.empty(100 + i)
        del array, other


def installs():
    default = _conform.get_handler()
    default_in_force("before anything was installed")
    handler = Handler()
    expect(handler.install() is default, "SetHandler to return the handler before it", "another")
    handler.in_force("after SetHandler")
    use()
    kept = np.arange(100)
    handler.in_force("after arrays were made, resized and freed")
    expect(handler.install() is handler.capsule,
           "SetHandler of the active handler to return that handler", "another handler")
    previous = _conform.set_handler(None)
    expect(previous is handler.capsule,
           "SetHandler(NULL) to return the handler that it replaces", "another handler")
    expect_in_force(default, DEFAULT_NAME, "after SetHandler(NULL)")
    same(handler_name(np.empty(10)), DEFAULT_NAME, "the handler of an array made after that")
    kept.resize(2000, refcheck=False)
    expect_in_force(default, DEFAULT_NAME, "after an array of the old handler was resized")
    del kept
    expect_in_force(default, DEFAULT_NAME, "after an array of the old handler was freed")
    expect(_conform.set_handler(default) is default, "the default handler to be one object", "two")
    handler.expect_settled()


# What reports of a handler, and what it has to say.
def expect_reported(what, report, expected):
    default = {"name": DEFAULT_NAME, "version": 1}[what]
    same(report(), default, "the %s of the active handler before SetHandler" % what)
    before = np.arange(10)
    handler = Handler()
    for rounds in range(3):
        when = "after %d arrays" % (rounds * 120)
        handler.install()
        same(report(), expected, "the %s of the active handler %s" % (what, when))
        made = np.arange(10.0)
        same(report(made), expected, "the %s of an array's handler %s" % (what, when))
        for view in made[2:5], made.reshape(2, 5), made.T, made.view(np.int64):
            same(report(view), None, "the %s of a view's handler %s" % (what, when))
            same(report(view.base), expected, "the %s of its base's handler %s" % (what, when))
        use(40)
    same(report(before), default, "the %s of an array's handler made before SetHandler" % what)
    _conform.set_handler(None)
    same(report(made), expected, "the %s of an array's handler after SetHandler(NULL)" % what)
    same(report(), default, "the %s of the active handler after SetHandler(NULL)" % what)


def name():
    expect_reported("name", handler_name, _conform.subject_name())


def version():
    expect_reported("version", handler_version, 1)


class Node:
    """Something that a garbage collection finds, and a reference count does not free."""

    def __init__(self, array):
        self.array = array
        self.itself = self


def array_keeps_its_handler():
    gc.disable()  # so that the cycle is still young when it is collected
    first, second = Handler("first"), Handler("second")
    by_default = Filled(50, 5)
    with first.installed():
        kept = [Filled(size, size) for size in (1, 24, 8000, 160000)]
        cycle = Node(np.ones(64))
    with second.installed():
        younger = [Filled(size, size) for size in (2, 25, 8001)]
        for filled in kept:
            survive_elsewhere(filled, first)
        set_state(kept.pop(1).array, first)
        for filled in younger:
            second.owns(filled.array, "beside arrays of the other")
            filled.check("beside arrays of the other")
        del cycle, filled, kept[1]
        gc.collect(0)
    with first.installed():
        kept.clear()
        while younger:
            younger.pop().check("after the other's arrays were freed")
        by_default.array.resize(70, refcheck=False)
        same(handler_name(by_default.array), DEFAULT_NAME, "the handler of a resized array")
        by_default.check("after its resize", 50)
        del by_default
    first.expect_settled()
    second.expect_settled()


def survive_elsewhere(filled, owner):
    """Resizes and copies an array while another handler is active."""
    size = len(filled.array)
    owner.owns(filled.array, "with another handler active")
    filled.check("with another handler active")
    for changed in 3 * size, size + 1, size:
        filled.array.resize(changed, refcheck=False)
        owner.owns(filled.array, "after a resize with another handler active")
        filled.check("after a resize with another handler active", size)
    copy = filled.array.copy()
    same(handler_name(copy), handler_name(), "the handler of a copy")


def set_state(array, owner):
    """__setstate__ gives the old block to its own handler, and takes one of that in force."""
    before = _conform.counts(owner.capsule)["live_blocks"]
    array.__setstate__((1, (4,), np.dtype("i8"), False, bytes(range(32))))
    after = _conform.counts(owner.capsule)["live_blocks"]
    same(before - after, 1, "the blocks that __setstate__ gave back to %s" % owner.name)
    same(handler_name(array), handler_name(), "the handler after __setstate__")
    same(array.tobytes(), bytes(range(32)), "the data after __setstate__")


# ---- dtypes

BUILT_IN = (
    *"?bBhHiIlLqQefdgFDG",
    *("M8[ns]", "m8[s]", "S1", "S7", "U1", "U5", "V1", "V3", "V16"),
    *(">i2", ">f8", ">c16", ">U2", ">M8[s]"),
)


def own_types():
    """Types that are made of others; `align` gives a record what its strictest field wants."""
    yield from map(np.dtype, BUILT_IN)
    yield np.dtype([("a", "i1"), ("b", "f8")])
    yield np.dtype([("a", "i1"), ("b", "g"), ("c", "S3")], align=True)
    yield np.dtype([("a", "i1", (3,)), ("b", [("c", "G")])], align=True)


def expect_aligned(array):
    what = "the array of %d %s" % (array.size, array.dtype)
    address, alignment = address_of(array), array.dtype.alignment
    expect(address % alignment == 0, "%s to be aligned to %d" % (what, alignment), hex(address))
    same(array.flags.aligned, True, "the flag ALIGNED of " + what)


def make_each(dtype):
    """Arrays of that type by each function, with contents; and the same contents as bytes."""
    for count in (3, 17) if _conform.is_instrumented() else (1, 2, 3, 17, 200):
        contents = _conform.pattern(count * dtype.itemsize, count)
        if dtype.char == "?":
            contents = bytes(byte & 1 for byte in contents)
        zeros = np.zeros(count, dtype)
        empty = np.empty(count, dtype)
        same(_conform.bytes_of(zeros), bytes(len(contents)), "np.zeros(%d, %s)" % (count, dtype))
        grown = np.empty(1, dtype)
        grown.resize(count, refcheck=False)
        for array in zeros, empty, grown:
            expect_aligned(array)
            array.view("u1")[:] = np.frombuffer(contents, "u1")
            yield array, contents


def dtypes():
    handler = Handler()
    with handler.installed():
        made = [pair for dtype in own_types() for pair in make_each(dtype)]
        for array, contents in made:
            expect(array.tobytes() == contents, "the array of %d %s to hold what was written"
                   % (array.size, array.dtype), "something else")
        del made, array, contents
        object_arrays()
        if NUMPY >= (2, 0):
            for count in 1, 3, 100:
                same(np.zeros(count, "T").tolist(), [""] * count, "np.zeros(%d, 'T')" % count)
                expect_aligned(np.zeros(count, "T"))
    handler.expect_settled()


class Thing:
    """Something that only an array refers to."""

    alive = 0

    def __init__(self):
        Thing.alive += 1
        self.itself = self

    def __del__(self):
        Thing.alive -= 1


def object_arrays():
    kept = []
    record = np.dtype([("a", "i4"), ("b", "O"), ("c", "O")])
    for count in 1, 2, 5, 64, 300:
        for dtype in np.dtype(object), record:
            dirty = [np.full(count * dtype.itemsize, 0xA5, np.uint8) for _ in range(4)]
            del dirty
            array = _conform.new_array(count, dtype)
            expect_aligned(array)
            expect(not any(_conform.bytes_of(array)),
                   "the new array of %d %s to be NULL pointers" % (count, dtype),
                   "0x%s" % _conform.bytes_of(array)[:16].hex())
            column = array["b"] if dtype.names else array
            column[:] = [Thing() for _ in range(count)]
            kept.append(array)
    same(Thing.alive, sum(len(array) for array in kept), "the objects that arrays refer to")
    gc.collect(0)
    kept.append(np.array([Thing() for _ in range(10)], object))
    kept[-1].resize(100, refcheck=False)
    gc.collect(0)
    for array in kept[:-1]:
        column = array["b"] if array.dtype.names else array
        expect(all(type(thing) is Thing and thing.itself is thing for thing in column),
               "an array of %d objects to refer to them after a collection" % len(array), "others")
    same(type(kept[-1][9]), Thing, "an object of a resized array after a collection")
    same(kept[-1][99], 0, "what an array of objects is filled up with")


# ---- tracemalloc

DOMAIN = 389047  # NPY_TRACE_DOMAIN; np.lib.tracemalloc_domain


def traced():
    """The sizes in NumPy's domain."""
    taken = tracemalloc.take_snapshot().filter_traces([tracemalloc.DomainFilter(True, DOMAIN)])
    return sorted(trace.size for trace in taken.traces)


def tracing():
    handler = Handler()
    with handler.installed():
        older = np.empty(10)
        tracemalloc.start(1)
        first = np.empty(1000, "u1")
        same(traced(), [1000], "the traces of np.empty(1000)")
        second = np.zeros((7, 11), "i2")
        same(traced(), [154, 1000], "the traces after np.zeros of 154 bytes")
        for size in 5000, 300000, 3, 1000:
            second.resize((size,), refcheck=False)
            same(traced(), sorted([1000, 2 * size]), "the traces after resize to %d" % (2 * size))
        third = np.fromiter(iter(range(100)), "i8")
        same(traced(), [800, 1000, 2000], "the traces after np.fromiter of 800 bytes")
        copies = [third.copy() for _ in range(50)]
        same(traced(), [800] * 51 + [1000, 2000], "the traces after 50 copies")
        view = first[1:]
        del first, copies
        same(traced(), [800, 1000, 2000], "the traces while a view is left of 1000 bytes")
        del view, second
        same(traced(), [800], "the traces after two more were freed")
        with np.errstate(all="ignore"):
            third.sort()
            third[::2].sort()
            del older, third
        same(traced(), [], "the traces after all were freed")
        tracemalloc.stop()
    handler.expect_settled()


def counted_once():
    handler = Handler()
    with handler.installed():
        tracemalloc.start(1)
        arrays = [np.empty(1 << 20, "u1")]  # the handler may set up tables
        before = tracemalloc.get_traced_memory()[0]
        arrays += [np.empty(1 << 20, "u1") for _ in range(8)]
        added = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        del arrays
    expect(added < 12 << 20, "8 arrays of 1 MiB to add less than 12 MiB to the traced memory",
           "%d MiB" % (added >> 20))


# ---- the end


def leave_arrays():
    """Arrays wherever they can be while the interpreter ends."""
    sizes = iter(range(1, 20000, 487))

    def filled():
        size = next(sizes)
        return Filled(size, size).array

    def suspended():
        array = filled()
        yield
        del array

    global global_array
    global_array = filled()
    sys.conform_array = filled()
    np.conform_arrays = [filled() for _ in range(5)]
    Node.array = filled()
    Node(filled()), Node(filled())
    waiting = suspended()
    next(waiting)
    sys.conform_waiting = waiting
    local = sys.conform_local = threading.local()
    local.array = filled()
    atexit.register(filled().resize, 30000, refcheck=False)
    for _ in range(3):
        _conform.make_immortal(filled())
