# SPDX-License-Identifier: BSD-3-Clause
"""What NumPy leaves behind where memory is refused, and where it forgets something else.

What may crash is tried in a child first, and looked at here only where the child survives.
"""

import contextlib
import copy
import functools
import importlib
import os
import sys
import tracemalloc
import warnings

import _conform
import numpy as np
from conform_numpy_routes import numbers
from conform_numpy_runs import nothing
from conform_runtime import Findings, each_case, plain_handler, traced, wrong_sizes
from conform_support import NUMPY

STATE = (1, (4,), np.dtype("i8"), False, bytes(range(32)))


def survived(findings, function, expected):
    """Whether it does not crash; that it does is found otherwise."""
    survives = _conform.survives(function)
    findings.expect(survives, expected, "NumPy crashed")
    return survives


def each_refusal(act):
    """act(handler, nth) with the nth request refused, until there are no more requests; the number
    of them."""
    handler = plain_handler()
    with handler.installed():
        for nth in range(1, 100):
            act(handler, nth)
            if _conform.refuse(handler.capsule, 0) == 0:
                return nth - 1
    return nth


# ---- routes that do not look whether they have an array


def with_refusals(make, function):
    """A function that does so with each request refused."""
    def act(handler, nth):
        argument = make()
        _conform.refuse(handler.capsule, nth)
        try:
            function(argument)
        except MemoryError:
            pass

    return lambda: each_refusal(act)


def rationals():
    """Of a dtype that is made by NumPy's own tests, as users make theirs; None where it is not."""
    for package in "numpy._core", "numpy.core":
        try:
            rational = importlib.import_module(package + "._rational_tests").rational
            return np.array([rational(1, 2), rational(3, 4)])
        except (AttributeError, ImportError):
            pass


UNLOOKED = {
    "np.loadtxt([])": (lambda: [], lambda lines: np.loadtxt(lines)),
    "np.int32(3)[...]": (lambda: np.int32(3), lambda scalar: scalar[...]),
    "a copy of rationals": (rationals, lambda array: None if array is None else array.copy()),
}
WITHOUT_COPY = {
    "put into array[::2]": (lambda: numbers(8)[::2], lambda array: array.put([0], 7)),
    "put of objects into array[::2]": (lambda: np.array([1, 2, 3, 4], "O")[::2],
                                       lambda array: array.put([0], 7)),
    "np.putmask of array[::2]": (lambda: numbers(8)[::2],
                                 lambda array: np.putmask(array, array > 1, 7)),
}


def array_refused():
    findings = Findings()
    warnings.simplefilter("ignore")  # loadtxt says that there is nothing
    for words, (make, function) in UNLOOKED.items():
        survived(findings, with_refusals(make, function),
                 "%s, when its array is refused, to raise MemoryError" % words)
    findings.tell()


def put_refused():
    findings = Findings()
    for words, (make, function) in WITHOUT_COPY.items():
        survived(findings, with_refusals(make, function),
                 "%s, when its copy is refused, to raise MemoryError" % words)
    findings.tell()


def string_operations():
    if NUMPY < (2, 0):
        _conform.skip("StringDType came with NumPy 2.0")
    findings = Findings()
    array = np.array(["one that is longer than a small string is", "two", "three" * 9] * 2, "T")
    for words, function in {
        "np.lexsort of array[::2]": lambda: np.lexsort((array[::2], array[::2])),
        "array.byteswap()": array.byteswap,
    }.items():
        def act():
            try:
                function()
            except (TypeError, ValueError, RuntimeError):
                pass
        survived(findings, act, "%s, of StringDType, to be an array or an exception" % words)
    findings.tell()


def promotion_out_of_memory():
    """Python is asked for the memory of dtypes."""
    findings = Findings()
    arrays = {"records": np.zeros(2, [("x", "i4")])}
    if NUMPY >= (2, 5):  # before, a StringDType without memory is a crash
        arrays["strings"] = np.zeros(2, "T")
    for words, array in arrays.items():
        made = []
        for nth in range(1, 100):
            try:
                if not _conform.without_python(nth, lambda: made.append(np.array([array, array]))):
                    break
            except MemoryError:
                pass
        findings.same(sorted({str(each.dtype) for each in made}), [str(array.dtype)],
                      "the dtypes of np.array([%s, %s]), with each request of Python's refused in "
                      "turn," % (words, words))
    findings.tell()


def deepcopy_of_objects():
    """What Python has no memory for is taken away here."""
    def act():
        deepcopy = copy.deepcopy
        del copy.deepcopy
        with contextlib.suppress(AttributeError):
            np.array([None]).__deepcopy__({})
        copy.deepcopy = deepcopy

    findings = Findings()
    survived(findings, act, "a deep copy of objects, without copy.deepcopy, to raise an exception")
    findings.tell()


def dtype_copy_out_of_memory():
    """NumPy says so on stderr, or aborts, or takes references that are not its own."""
    date = np.datetime64(3, "s")

    def copies():
        read, written = os.pipe()
        os.dup2(written, 2)
        os.close(written)
        before = sys.getrefcount(np.datetime64)
        for refuse in _conform.without_python, _conform.without_libc:
            for nth in range(1, 20):
                with contextlib.suppress(MemoryError):
                    if not refuse(nth, lambda: date.dtype):
                        break
        lost = before - sys.getrefcount(np.datetime64)
        os.close(2)
        if lost != 0 or os.read(read, 1) != b"":
            _conform.fail("no reference to be lost", "%d are" % lost)

    findings = Findings()
    findings.expect(_conform.survives(copies), "the dtype of np.datetime64(3, 's'), without memory "
                    "for a copy, to raise MemoryError", "references were lost")
    findings.tell()


def scalar_part_refused():
    """It has memory of libc's, not of the handler's; from 1 KiB on NumPy keeps none of that."""
    scalar = np.bytes_(b"x" * 5000)

    def try_each():
        for nth in range(1, 20):
            with contextlib.suppress(MemoryError):
                if not _conform.without_libc(nth, lambda: scalar.imag):
                    return

    if _conform.without_libc(1, lambda: None) is None:
        _conform.skip("requests of libc do not come through the runner here")
    findings = Findings()
    survived(findings, try_each, "np.bytes_(5000 bytes).imag, without memory, to raise MemoryError")
    survived(findings, part_of_a_date, "np.datetime64(3, 's').imag, without memory for its dtype, "
             "to raise MemoryError")
    findings.tell()


def part_of_a_date():
    date = np.datetime64(3, "s")
    for nth in range(1, 20):
        with contextlib.suppress(MemoryError):
            if not _conform.without_python(nth, lambda: date.imag):
                return


# ---- arrays that are to change and cannot


def resize_dimensions_refused():
    """The lengths are in NumPy's own memory, which it takes from Python or from libc."""
    findings = Findings()
    shape = (2,) * 11
    for where, without in ("Python", _conform.without_python), ("libc", _conform.without_libc):
        for nth in range(1, 20):
            array = np.arange(4000)
            try:
                is_refused = without(nth, functools.partial(array.resize, shape, refcheck=False))
            except MemoryError:
                is_refused = True
            right = array.shape in ((4000,), shape)
            expected = ("an array to keep its shape, when request %d of %s's in a resize to 11 "
                        "dimensions is refused" % (nth, where))
            # The other lengths are whatever lies there, and differ from run to run.
            findings.expect(right, expected, "%d dimensions, the first of %d elements" %
                            (array.ndim, array.shape[0]))
            if not right:
                _conform.make_immortal(array)  # free would be told a wrong size
            if not is_refused:
                break
    findings.tell()


def setstate_refused():
    findings = Findings()

    def use(array):
        return array.sum(), array.copy(), array.tobytes()

    for words, state in {
        "numbers": STATE,
        "swapped numbers": (1, (4,), np.dtype(">i8"), False, bytes(range(32))),
        "objects": (1, (3,), np.dtype("O"), False, [1, 2, 3]),
    }.items():
        survived(findings, at_each_refusal(state, use), "an array that __setstate__ had no memory "
                 "for, of %s, to be one that can be used" % words)
    findings.tell()


def at_each_refusal(state, use):
    """A function that gives an array that state with each request refused, and uses it then."""
    def try_each():
        handler = plain_handler()
        with handler.installed():
            for nth in range(1, 100):
                array = numbers(3)
                _conform.refuse(handler.capsule, nth)
                try:
                    array.__setstate__(state)
                except MemoryError:
                    pass
                is_over = _conform.refuse(handler.capsule, 0) == 0
                use(array)
                if is_over:
                    return

    return try_each


def setstate_of_a_short_list():
    findings = Findings()

    def set_it():
        array = np.empty(0)
        try:
            array.__setstate__((1, (3000,), np.dtype("O"), False, [1]))
        except (IndexError, TypeError, ValueError):
            pass

    survived(findings, set_it, "a state of 3000 objects with a list of one to be refused")
    findings.tell()


def shrink_refused():
    findings = Findings()
    kinds = {"i8": [1, 2, 3, 4], "O": [1, 2, 3, 4], "O,i4": [(1, 1), (2, 2), (3, 3), (4, 4)]}
    if NUMPY >= (2, 0):
        kinds["T"] = ["one", "two" * 20, "three" * 20, "four"]
    for dtype, values in kinds.items():
        def act(handler, nth):
            array = np.array(values, dtype)
            _conform.refuse(handler.capsule, nth)
            try:
                array.resize(2, refcheck=False)
                wanted = values[:2]
            except MemoryError:
                wanted = values
            findings.same(array.tolist(), wanted,
                          "an array of %s, whose shrinking was refused," % dtype)

        each_refusal(act)
    findings.tell()


# ---- a resize of what is read-only


def read_only_resize():
    """The handler in force fills what realloc adds."""
    findings = Findings()

    def resized(dtype, values):
        array = np.array(values, dtype)
        array.flags.writeable = False
        try:
            array.resize(50, refcheck=False)
        except ValueError:  # it may be refused
            return values
        return array[len(values):].tolist()

    for dtype, values, added in (("i8", [1, 2], 0), ("O", [1, 2], 0), ("T", ["1", "2"], "")):
        if dtype == "T" and NUMPY < (2, 0):
            continue
        expected = "a read-only array of %s that is resized to be filled up with %r"
        expected %= dtype, added

        def look():
            if resized(dtype, values) not in (values, [added] * 48):
                _conform.fail(expected, "something else")

        if dtype != "i8":  # whose items are no pointers
            findings.expect(_conform.survives(look), expected, "NumPy crashed or cannot read it")
            continue
        seen = resized(dtype, values)
        findings.expect(seen in (values, [added] * 48), expected, repr(seen[5:6]))
    findings.tell()


# ---- tracemalloc


def void_untraced():
    tracemalloc.start(1)
    scalars = [np.void(b"x" * 900) for _ in range(3)]
    before = traced()
    del scalars
    after = traced()
    tracemalloc.stop()
    if not before:
        _conform.skip("this NumPy does not have np.void traced")
    findings = Findings()
    findings.same(after, [], "the sizes traced after three np.void of 900 bytes are gone")
    findings.tell()


# ---- the size that free is told


def free_size_of_new_dtype():
    """A dtype of no bytes takes all elements from an array that keeps its block."""
    findings = Findings()
    for dtype in ("i4", (0,)), ("V4", (0,)):
        def empty(begin):
            array = numbers(4, "i4")
            begin()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    array.dtype = np.dtype(dtype)
                except (AttributeError, ValueError):
                    pass

        for _, _, line in wrong_sizes(empty):
            findings.expect(False, "free to be told the size asked for after .dtype = (%s, %r)"
                            % dtype, line)
    findings.tell()


# ---- the GIL


def every_case():
    """What the routes that change an array ask of the handler in force."""
    for function in each_case():
        try:
            function(nothing)
        except MemoryError:
            pass
