# SPDX-License-Identifier: BSD-3-Clause
"""Real arrays on the handler."""

import gc

import _conform
import numpy as np
from conform_support import (
    DEFAULT_NAME,
    Filled,
    Handler,
    default_in_force,
    expect,
    expect_in_force,
    handler_name,
    handler_version,
    same,
)


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
    expect(
        handler.install() is handler.capsule,
        "SetHandler of what is in force to return just that",
        "another handler",
    )
    previous = _conform.set_handler(None)
    expect(
        previous is handler.capsule,
        "SetHandler(NULL) to return the handler that it replaces",
        "another handler",
    )
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
    same(report(), default, "the %s in force before SetHandler" % what)
    before = np.arange(10)
    handler = Handler()
    for rounds in range(3):
        when = "after %d arrays" % (rounds * 120)
        handler.install()
        same(report(), expected, "the %s in force %s" % (what, when))
        made = np.arange(10.0)
        same(report(made), expected, "the %s of an array's handler %s" % (what, when))
        for view in made[2:5], made.reshape(2, 5), made.T, made.view(np.int64):
            same(report(view), None, "the %s of a view's handler %s" % (what, when))
            same(report(view.base), expected, "the %s of its base's handler %s" % (what, when))
        use(40)
    same(report(before), default, "the %s of an array's handler made before SetHandler" % what)
    _conform.set_handler(None)
    same(report(made), expected, "the %s of an array's handler after SetHandler(NULL)" % what)
    same(report(), default, "the %s in force after SetHandler(NULL)" % what)


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
    """Resizes and copies an array while another handler is in force."""
    size = len(filled.array)
    owner.owns(filled.array, "with another in force")
    filled.check("with another handler in force")
    for changed in 3 * size, size + 1, size:
        filled.array.resize(changed, refcheck=False)
        owner.owns(filled.array, "after a resize with another in force")
        filled.check("after a resize with another handler in force", size)
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
