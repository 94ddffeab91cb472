# SPDX-License-Identifier: BSD-3-Clause
"""process: arrays in the places that an interpreter clears last."""

import atexit
import builtins
import gc
import sys
import threading
import types
import weakref

import numpy as np


def arrays():
    """A list of arrays of all sorts, made in all the ways that reach the handler."""
    resized = np.zeros(3)
    resized.resize(5000, refcheck=False)
    nested = np.empty(3, object)
    nested[:] = [np.arange(7), np.ones((2, 3)), "a" * 100]
    text = np.fromstring("1 2 3", sep=" ", dtype=np.int64)
    return [np.empty(0), np.arange(1000), resized, nested, text, np.zeros(200000, "u1"),
            np.ones((20, 30)).T[::2], np.fromiter(range(40), "i8"), np.zeros(4, "U7")]


class Cycle:
    """Reached by the collector alone, and busy with arrays of its own when it is."""

    def __init__(self):
        self.me = self
        self.arrays = arrays()

    def __del__(self, np=np):
        self.arrays[1] = np.arange(500) + 1
        self.arrays[1].resize(20, refcheck=False)


class Holder:
    array = np.arange(300)


def suspended():
    kept = arrays()
    yield kept
    del kept


def at_exit(kept):
    kept[1].resize(4000, refcheck=False)
    kept.append(np.zeros(77))


KEPT = []


def leave_arrays_behind():
    """Everything is still referenced when this returns."""
    KEPT.append(arrays())
    KEPT.append(Cycle())
    KEPT.append(threading.local())
    KEPT[-1].arrays = arrays()
    generator = suspended()
    next(generator)
    KEPT.append(generator)
    late = types.ModuleType("conform_late")
    late.arrays = arrays()
    late.cycle = Cycle()
    sys.modules["conform_late"] = late
    sys.conform_late = arrays()
    builtins.conform_late = Cycle()
    atexit.register(at_exit, arrays())
    weakref.finalize(Holder, at_exit, arrays())
    np.conform_late = Cycle()
    Cycle()
    gc.freeze()
