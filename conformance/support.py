# SPDX-License-Identifier: BSD-3-Clause
"""What the Python half of the battery is written in.

It is imported as conform_support before any other file of this folder.
"""

import contextlib
import sys
import threading

import _conform
import numpy as np

NUMPY = tuple(int(part) for part in np.__version__.split(".")[:2])
core = np._core if NUMPY >= (2, 0) else np.core
handler_version = core.multiarray.get_handler_version

DEFAULT_NAME = "default_allocator"  # what NumPy calls its own


# Instead of a name that is no UTF-8, which abi.name-utf8 and numpy.name test.
UNREADABLE = "a name that cannot be read"


def handler_name(*array):
    try:
        return core.multiarray.get_handler_name(*array)
    except UnicodeDecodeError:
        return UNREADABLE


def subject_name():
    try:
        return _conform.subject_name()
    except UnicodeDecodeError:
        return UNREADABLE


def expect(held, expected, seen):
    if not held:
        _conform.fail(expected, seen)


def same(seen, expected, what):
    """Fails where the two differ; `what` says of what they are."""
    if seen != expected:
        _conform.fail("%s to be %r" % (what, expected), repr(seen))


def address_of(array):
    return array.__array_interface__["data"][0]


class Handler:
    """The subject behind a recorder that has a name of its own, unless `name` is None.

    A plain one is nothing but libc, and needs no subject.
    """

    def __init__(self, name=None, plain=False):
        self.capsule = _conform.new_handler(name, plain)
        self.name = name if name is not None else subject_name()

    def install(self):
        return _conform.set_handler(self.capsule)

    @contextlib.contextmanager
    def installed(self):
        previous = self.install()
        try:
            yield self
        finally:
            _conform.set_handler(previous)

    def in_force(self, when):
        expect_in_force(self.capsule, self.name, when)

    def owns(self, array, when):
        """The array says so, and its data is tracked."""
        owner = array if array.base is None else array.base
        same(handler_name(owner), self.name, "the handler of the array, %s," % when)
        same(_conform.owner(owner), self.name, "the handler whose block it has, %s," % when)

    def expect_settled(self, when="in the end"):
        """Nothing came to it that was not its own, and everything came back."""
        for kind, line, _, _ in _conform.notes(self.capsule):
            if kind != "wrong-size":
                _conform.fail("%s to receive only its own blocks" % self.name, line)
        live = _conform.counts(self.capsule)["live_blocks"]
        same(live, 0, "the blocks of %s that were not freed %s" % (self.name, when))


def expect_in_force(capsule, name, when):
    now = _conform.get_handler()
    if now is not capsule:
        other = handler_name()
        _conform.fail("%s to be the active handler %s" % (name, when),
                      other if other != name else "another handler of that name")


def default_in_force(when):
    same(handler_name(), DEFAULT_NAME, "the active handler %s" % when)


class Filled:
    """An array of bytes whose contents can be checked, made by the active handler."""

    def __init__(self, size, number):
        self.contents = _conform.pattern(size, number)
        self.array = np.empty(size, np.uint8)
        self.array[:] = np.frombuffer(self.contents, np.uint8)

    def check(self, when, size=None):
        """The first `size` bytes are what was written, or all."""
        expected = self.contents[:size]
        seen = self.array[:size].tobytes()
        if seen != expected:
            at = [a == b for a, b in zip(seen, expected)].index(False)
            _conform.fail("byte %d of %d to be 0x%02x %s"
                          % (at, len(expected), expected[at], when), "0x%02x" % seen[at])


@contextlib.contextmanager
def control(when):
    """What fails in here, or raises, is a defect of another kind: control_run in process.h."""
    _conform.control(when)
    yield
    _conform.control(None)


def expect_ordinary():
    """Arrays stay as they are while only one handler is active."""
    handler = Handler("alone")
    with control("while no other handler is active"):
        with handler.installed():
            filled = [Filled(size, size) for size in (1, 2, 16, 100, 700, 5000, 40000)]
            for each in filled:
                each.check("beside others")
            for each in filled:
                size = each.array.size
                each.array.resize(3 * size, refcheck=False)
                each.check("after a resize", size)
                each.array.resize(size, refcheck=False)
                each.check("after another one")
                expect(np.zeros(size, "u1").tobytes() == bytes(size), "np.zeros to be zero", "not")
            for each in filled:
                each.check("beside others that were resized")
            del filled, each
        handler.expect_settled()


def in_threads(*bodies):
    """Runs each body in a thread of its own, and waits; what one raises is raised here.

    A body is given a function that waits until all of them have called it.
    """
    barrier = threading.Barrier(len(bodies))
    errors = []

    def guarded(body):
        try:
            body(barrier.wait)
        except BaseException as error:
            errors.append(error)
            barrier.abort()  # the others need not wait for this one

    threads = [threading.Thread(target=guarded, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def threads_inherit():
    """Whether a thread begins in a copy of its starter's context (CPython 3.14, by a flag)."""
    return bool(getattr(sys.flags, "thread_inherit_context", 0))
