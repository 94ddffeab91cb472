# SPDX-License-Identifier: BSD-3-Clause
"""What is done with a case of conform_numpy_routes: it is run by the subject, and out of memory."""

import os
import sys

import _conform
import numpy as np
from conform_support import Filled, Handler, control, same

ASK = "if NumPy can"  # some versions crash there: runtime.*


def leave_dirt(*sizes):
    """Frees blocks of these sizes with every bit of them set, for what comes next to find."""
    held = [np.full(size, 0xFF, np.uint8) for size in sizes for _ in range(3)]
    del held


# ---- comparing


def frozen(result):
    """What can be compared of a result, and stays when its arrays are gone."""
    if isinstance(result, (list, tuple)):
        return [frozen(part) for part in result]
    if isinstance(result, np.ndarray):
        plain = result.tolist() if result.dtype.hasobject else result.tobytes()
        return (result.dtype.str, result.shape, plain)
    return result


def expect_equal(seen, expected, function, when):
    if seen == expected:
        return
    if isinstance(expected, list) and isinstance(seen, list) and len(seen) == len(expected):
        for i, (one, other) in enumerate(zip(seen, expected)):
            expect_equal(one, other, "%s, part %d" % (function, i + 1), when)
    if isinstance(expected, tuple) and isinstance(seen, tuple) and seen[:2] == expected[:2]:
        seen, expected = seen[2], expected[2]
        at = next((i for i, pair in enumerate(zip(seen, expected)) if pair[0] != pair[1]), 0)
        unit = "byte" if isinstance(expected, bytes) else "item"
        seen, expected = seen[at:][:1], expected[at:][:1]
        function = "%s: %s %d" % (function, unit, at)
    _conform.fail("%s to be %.150r %s" % (function, expected, when), "%.150r" % (seen,))


def nothing(*arrays):
    pass


def by_numpy(function):
    """What a case makes with nothing refused, which is asked once, of NumPy's own handler."""
    if not hasattr(function, "by_numpy"):
        function.by_numpy = frozen(function(nothing))
    return function.by_numpy


def on_dirt(*arrays):
    """What a case finds in memory is not by chance what it is to put there."""
    leave_dirt(24, 40, 72, 200, 800, 2400, 24000)


# ---- a route by the subject


def expect_route(cases):
    """Each case by the subject: the same results, and every block back."""
    expected = [by_numpy(function) for function in cases]
    handler = Handler()
    with handler.installed():
        kept = []
        for function, wanted in zip(cases, expected):
            _conform.step("NumPy works on %s" % function.__name__)
            result = function(on_dirt)
            expect_equal(frozen(result), wanted, function.__name__, "as it is by NumPy's own")
            kept.append(result)
        for function, result, wanted in zip(cases, kept, expected):
            expect_equal(frozen(result), wanted, function.__name__, "after others were used")
        del result
        while kept:
            kept.pop(len(kept) // 2)
        handler.expect_settled("after all of its arrays had ended")
    handler.expect_settled()


# ---- a route that runs out of memory


class Shortage:
    """Has requests refused from begin() on, and tells what came of it."""

    def __init__(self, handler, beneath, keep_failing):
        self.handler = handler
        self.beneath = beneath  # requests of libc and the kernel, and not of the handler
        self.keep_failing = keep_failing

    def refuse(self, nth):
        if self.beneath:
            return _conform.refuse_beneath(nth, self.keep_failing)
        return _conform.refuse(self.handler.capsule, nth, self.keep_failing)

    def attempt(self, function, nth):
        """Runs the case with the n-th request refused.  The result, or None where there was not
        enough memory for one, and how many requests were refused."""
        given = []

        def begin(*arrays):
            given[:] = [(array, frozen(array)) for array in arrays]
            self.refuse(nth)

        try:
            result = [function(begin)]
        except MemoryError:
            result = None
        refused = self.refuse(0)
        if result is None and function.__name__ not in CHANGE_STEP_BY_STEP:
            for array, before in given:
                expect_equal(frozen(array), before, function.__name__, "as it was before")
        return result, refused

    def describe(self, nth):
        return "with request %d %s%s refused" % (
            nth, "of the handler's to libc " if self.beneath else "",
            "and all after it" if self.keep_failing else "")


# These change their arrays in more than one step, each of which may be the one that fails.
CHANGE_STEP_BY_STEP = {"along_axes", "found_in_records", "from_c", "grown_and_shrunk",
                       "partitioned", "strided", "strided_records", "to_nothing_and_back"}
MOST_REFUSALS = 5000


# Of whom a request is refused, beneath the handler or not, and whether all after it are too.
WAYS = ((False, False), (False, True), (True, False), (True, True))


def expect_out_of_memory(cases, ways=WAYS, one_will_do=False):
    """Each case with its first request refused, its second one, until it needs no more, in each of
    these ways, or in the first of them in which there are any."""
    cases = [(function, by_numpy(function)) for function in cases if function.fails]
    sure = [each for each in cases if each[0].fails is not ASK]
    cases = sure + those_numpy_can([each for each in cases if each[0].fails is ASK], ways)
    if not cases:
        _conform.skip("this NumPy itself fails there: runtime.*")
    handler = Handler()
    with handler.installed():
        witnesses = [Filled(size, size) for size in (1, 30, 700, 5000, 40000)]
        with control("with nothing refused"):
            for function, wanted in cases:
                expect_equal(frozen(function(nothing)), wanted, function.__name__, "")
        for function, wanted in cases:
            refuse_in(ways, handler, function, wanted, one_will_do)
        for witness in witnesses:
            witness.check("after arrays that there was no memory for")
        del witness, witnesses
    handler.expect_settled()


def those_numpy_can(cases, ways=()):
    """Those that go as they should in a child whose handler is nothing but libc, and is not
    released once too often."""
    ways = [way for way in ways if not way[0]]
    able = []
    while cases:
        done, progress = os.pipe()

        def run_out():
            handler = Handler("plain", plain=True)
            with handler.installed():
                for function, wanted in cases:
                    before = sys.getrefcount(handler.capsule)
                    expect_equal(frozen(function(nothing)), wanted, function.__name__, "")
                    refuse_in(ways, handler, function, wanted)
                    if sys.getrefcount(handler.capsule) < before:
                        return
                    os.write(progress, b".")

        _conform.survives(run_out)
        os.close(progress)
        with open(done, "rb") as file:
            passed = len(file.read())
        able += cases[:passed]
        cases = cases[passed + 1:]  # it ended in the one between
    return able


def refuse_in(ways, handler, function, wanted, one_will_do=False):
    at_rest = _conform.counts(handler.capsule)["live_blocks"]
    for beneath, keep_failing in ways:
        shortage = Shortage(handler, beneath, keep_failing)
        if keep_failing and _conform.is_instrumented() or shortage.refuse(0) is None:
            continue  # libc cannot be seen
        if refuse_each(shortage, function, wanted, at_rest) > 1 and one_will_do:
            return


def refuse_each(shortage, function, wanted, at_rest):
    """Which request it was that was not refused any more."""
    for nth in range(1, MOST_REFUSALS + 1):
        when = shortage.describe(nth)
        _conform.step("NumPy works on %s %s" % (function.__name__, when))
        result, refused = shortage.attempt(function, nth)
        if result is not None:
            expect_equal(frozen(result[0]), wanted, function.__name__, when)
        missing = result is None
        del result
        live = _conform.counts(shortage.handler.capsule)["live_blocks"]
        same(live - at_rest, 0, "the blocks left over of %s %s" % (function.__name__, when))
        if refused == 0 and missing:
            _conform.fail("memory for %s, nothing being refused" % function.__name__, "none")
        if refused == 0:
            return nth
        if nth == MOST_REFUSALS or _conform.time_is_up():
            _conform.mark_incomplete("NumPy worked on %s %s, and there are more requests"
                                     % (function.__name__, when))
            return nth
