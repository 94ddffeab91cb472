# SPDX-License-Identifier: BSD-3-Clause
"""What NumPy promises about arrays that no handler made, about views, and about its own counts."""

import sys

import _conform
import numpy as np
from conform_support import (
    Handler,
    address_of,
    default_in_force,
    expect,
    handler_name,
    in_threads,
    same,
)

SIZES = 1, 100, 4096, 300000


# ---- arrays that own memory without a handler


def release(held, what):
    """Empties the list, which holds the last reference to memory of malloc's at that address."""
    address = address_of(held[0])
    expect(_conform.is_freed(address) is not True, "%s to be live still" % what, "it is freed")
    _conform.drop(held)
    expect(
        _conform.is_freed(address) is not False,
        "%s to go to free() when its array ends" % what,
        "free() was not called for it",
    )


def expect_not_by_handler(array):
    same(handler_name(array), None, "the handler of an array with memory of malloc's")
    same(_conform.owner(array), None, "the handler whose block that memory is")


def contents(size):
    """What such an array holds."""
    return (bytes(range(256)) * (size // 256 + 1))[:size]


def uses_free():
    handler = Handler()
    with handler.installed():
        for size in SIZES:
            array = _conform.owndata_array(size)
            same(array.flags.owndata, True, "OWNDATA of an array that it was forced on for")
            expect_not_by_handler(array)
            same(array.tobytes() == contents(size), True, "the data to be right")
            held = [array]
            del array
            release(held, "a buffer of %d bytes, OWNDATA forced on," % size)
    default_in_force("in the end")
    handler.expect_settled()


def capsule_base():
    handler = Handler()
    with handler.installed():
        for size in SIZES:
            half, before = size // 2, _conform.capsules_released()
            array = _conform.capsule_array(size)
            same(array.flags.owndata, False, "OWNDATA of an array whose base is a capsule")
            expect_not_by_handler(array)
            view = array[half:]
            del array
            same(_conform.capsules_released() - before, 0, "the destructor's runs beside a view")
            same(view.tobytes() == contents(size)[half:], True, "the view's data to be right")
            held = [view.base]
            del view
            release(held, "a buffer of %d bytes, owned by a capsule," % size)
            same(_conform.capsules_released() - before, 1, "the runs of the capsule's destructor")
    handler.expect_settled()


def resize_refused():
    handler = Handler()
    with handler.installed():
        expect_refused(_conform.owndata_array, RuntimeError)
        expect_refused(_conform.capsule_array, ValueError)
    handler.expect_settled()


def expect_refused(make, error):
    for size in SIZES:
        array = make(size)
        for wanted in 2 * size, size + 1, size // 2:
            what = "resize from %d to %d bytes that no handler made" % (size, wanted)
            try:
                array.resize(wanted, refcheck=False)
            except error:
                pass
            else:
                _conform.fail("%s to raise %s" % (what, error.__name__), "it was accepted")
            same(array.shape, (size,), "the shape after a refused " + what)
            same(array.tobytes() == contents(size), True, "the data kept after a refused " + what)


# ---- views


class Derived(np.ndarray):
    pass


VIEWS = {
    "a[2:7]": lambda a: a[2:7],
    "a[::-2]": lambda a: a[::-2],
    "a[None, :, None]": lambda a: a[None, :, None],
    "a[...]": lambda a: a[...],
    "a[7:7]": lambda a: a[7:7],
    "a.reshape(3, 4)": lambda a: a.reshape(3, 4),
    "a.reshape(3, 4).T": lambda a: a.reshape(3, 4).T,
    "a.reshape(3, 4)[1:, ::2]": lambda a: a.reshape(3, 4)[1:, ::2],
    "a.ravel()": lambda a: a.ravel(),
    "a.view('u1')": lambda a: a.view("u1"),
    "a.view('c16').imag": lambda a: a.view("c16").imag,
    "a.view(Derived)": lambda a: a.view(Derived),
    "a.view([('x', 'f4'), ('y', 'f4')])['y']": lambda a: a.view([("x", "f4"), ("y", "f4")])["y"],
    "np.asarray(a)": lambda a: np.asarray(a),
    "np.broadcast_to(a, (5, 12))": lambda a: np.broadcast_to(a, (5, 12)),
    "np.diag(a.reshape(3, 4))": lambda a: np.diag(a.reshape(3, 4)),
    "np.frombuffer(a)": lambda a: np.frombuffer(a),
    "a.__array__()": lambda a: a.__array__(),
}


def calls(handler):
    counts = _conform.counts(handler.capsule)
    return sum(counts[function] for function in ("malloc", "calloc", "realloc", "free"))


def views():
    handler = Handler()
    with handler.installed():
        array = np.arange(12.0)
        before = calls(handler)
        for words, view in VIEWS.items():
            seen = view(array)
            del seen
            same(calls(handler) - before, 0, "the handler's calls while %s came and went" % words)
        for words, view in VIEWS.items():
            owner = np.arange(12.0)
            kept = view(owner)
            contents = kept.tobytes()
            del owner
            same(_conform.counts(handler.capsule)["live_blocks"], 2, "the blocks beside " + words)
            same(kept.tobytes(), contents, "the data of %s without its owner" % words)
            del kept
            same(_conform.counts(handler.capsule)["live_blocks"], 1, "the blocks after " + words)
    del array
    handler.expect_settled()


# ---- references to handlers


def counts_handlers():
    handlers = [Handler() for _ in range(2)]
    capsules = [_conform.get_handler()] + [handler.capsule for handler in handlers]
    before, alive = [sys.getrefcount(each) for each in capsules], _conform.handlers_alive()

    def choose(meet):
        meet()
        for _ in range(10):
            own = Handler("own")
            for chosen in [own, *handlers] * 5:
                chosen.install()
                chosen.in_force("in the thread that chose it")
            _conform.set_handler(None)
            default_in_force("after it was brought back")

    in_threads(*[choose] * 4)
    same([sys.getrefcount(each) for each in capsules], before,
         "the references to each handler that four threads installed")
    same(_conform.handlers_alive(), alive, "the handlers that there are after all threads ended")
