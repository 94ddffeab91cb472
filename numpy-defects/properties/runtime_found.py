# SPDX-License-Identifier: BSD-3-Clause
"""What tools/search found in NumPy, where Python has no memory, and in dtypes of others.

What may crash is tried in a child first, and looked at here only where the child survives.
"""

import contextlib

import _conform
import numpy as np
from conform_runtime import Findings
from conform_support import NUMPY

MOST_REQUESTS = 60
TEXTS = ["%d, which is longer than a small string is" % i for i in range(6)]
LONGER = "another, for which the place of one of these does not suffice"


def each_of_python(function, passed=MemoryError):
    """With each request of Python's refused in turn, until there are no more; or of what raises
    an exception anyway, so many."""
    for nth in range(1, MOST_REQUESTS):
        with contextlib.suppress(passed):
            if not _conform.without_python(nth, function):
                return


def array_method_out_of_memory():
    findings = Findings()
    findings.expect(
        _conform.survives(lambda: each_of_python(lambda: np.frompyfunc(len, 1, 1))),
        "np.frompyfunc, with each request of Python's refused in turn, to raise MemoryError",
        "NumPy crashed")
    findings.tell()


def dot_out_of_memory():
    findings = Findings()
    array = np.zeros(3, [("x", "i4"), ("y", "i4")])
    for function in np.dot, np.inner, np.correlate:
        findings.expect(
            _conform.survives(lambda: each_of_python(lambda: function(array, array), Exception)),
            "np.%s of records, with each request of Python's refused in turn, to raise an "
            "exception" % function.__name__, "NumPy crashed")
    findings.tell()


def index_out_of_memory():
    findings = Findings()
    array, index, values = np.zeros(9, "i4"), np.array([0, 1], "i4"), np.array([1.0, 2.0])
    for words, function in {
        "array[index]": lambda: array[index],
        "array[index] = values": lambda: array.__setitem__(index, values),
    }.items():
        findings.expect(
            _conform.survives(lambda: each_of_python(function, (MemoryError, SystemError))),
            "%s, with each request of Python's refused in turn, to raise an exception" % words,
            "NumPy crashed")
    findings.tell()


def ufunc_at_out_of_memory():
    def look():
        for nth in range(1, MOST_REQUESTS):
            whole = np.zeros(9, "i1")
            array = whole[:1]
            is_over = False
            with contextlib.suppress(Exception):
                is_over = not _conform.without_python(nth, lambda: np.add.at(array, [0], 1.5))
            if whole[1:].any():
                _conform.fail("the rest to stay as it is", "it does not")
            if is_over:
                return

    findings = Findings()
    findings.expect(_conform.survives(look), "np.add.at(whole[:1], [0], 1.5), with each request of "
                    "Python's refused in turn, to write to no other item", "others were written to")
    findings.tell()


def setstate_of_unfit_list():
    findings = Findings()
    array = np.zeros(1, [("x", "i4"), ("y", "O")])
    try:
        array.__setstate__((1, (2,), array.dtype, False, [("no number", 1), (3, 4)]))
        seen = "no exception"
    except Exception as error:
        seen = type(error).__name__
    findings.same(seen, "ValueError", "the exception of a state whose list has no record")
    findings.tell()


def scaled_float():
    core = np._core if hasattr(np, "_core") else np.core
    make = getattr(core._multiarray_umath, "_get_sfloat_dtype", None)
    if make is None:
        _conform.skip("this NumPy has no scaled floats")
    findings = Findings()
    array = np.zeros(2, make()(2.0))
    for words, function in {
        "np.concatenate([array])": lambda: np.concatenate([array]),
        "np.nonzero(array)": lambda: np.nonzero(array),
        "array.argmax()": array.argmax,
    }.items():
        def act():
            with contextlib.suppress(TypeError, ValueError):
                function()
        findings.expect(_conform.survives(act), "%s, of scaled floats, to be something or an "
                        "exception" % words, "NumPy crashed")
    findings.tell()


def date_out_of_memory():
    findings = Findings()
    date = np.datetime64(3, "s")
    findings.expect(_conform.survives(lambda: each_of_python(lambda: np.array(date))),
                    "np.array(np.datetime64(3, 's')), with each request of Python's refused in "
                    "turn, to raise MemoryError", "NumPy crashed")
    findings.tell()


def buffer_out_of_memory():
    buffer, made = memoryview(np.zeros(3, "i4")), []
    each_of_python(lambda: made.append(np.array(buffer)))
    findings = Findings()
    findings.same(sorted({str(each.dtype) for each in made}), ["int32"],
                  "the dtypes of np.array(buffer of int32), with each request of Python's refused "
                  "in turn,")
    findings.tell()


# ---- StringDType


def strings():
    if NUMPY < (2, 0):
        _conform.skip("StringDType came with NumPy 2.0")
    return np.array(TEXTS, "T")


def flat():
    return strings().flat[1:3].tolist() == TEXTS[1:3]


def put():
    array = strings()
    array.put([0], strings()[5:])
    return array.tolist() == TEXTS[5:] + TEXTS[1:]


def place():
    array = strings()
    np.place(array, [True] * len(TEXTS), strings()[::-1])
    return array.tolist() == TEXTS[::-1]


def fromiter():
    return np.fromiter(TEXTS, strings().dtype).tolist() == TEXTS


def string_allocators():
    strings()
    findings = Findings()
    for words, function in {"array.flat[1:3]": flat, "array.put": put, "np.place": place,
                            "np.fromiter": fromiter}.items():
        def look():
            if not function():
                _conform.fail("its own strings", "others")
        findings.expect(_conform.survives(look), "%s, of StringDType, to have the strings that it "
                        "was given" % words, "NumPy crashed, or there are others")
    findings.tell()


def record_item_out_of_memory():
    records = np.array([(1.5, 2**40), (2.5, 2**41)], "f8,i8")
    findings = Findings()
    for words, function in ("tolist", records.tolist), ("item", lambda: records.item(1)):
        findings.expect(_conform.survives(lambda function=function: each_of_python(function)),
                        "%s of records, with each request of Python's refused in turn, to raise "
                        "MemoryError" % words, "SystemError, or a crash")
    findings.tell()


def assign_within(array):
    array[:2] = array[2:4]


def assign_longer(array):
    array[0] = LONGER


def string_assignment_out_of_memory():
    strings()  # or a skip
    findings = Findings()
    for words, assign in {"array[:2] = array[2:]": assign_within,
                          "array[0] = text": assign_longer}.items():

        def try_each(assign=assign):
            for nth in range(1, MOST_REQUESTS):
                array, done = strings(), False
                with contextlib.suppress(MemoryError):
                    done = not _conform.without_python(nth, lambda array=array: assign(array))
                if not set(array.tolist()) <= {*TEXTS, LONGER}:
                    _conform.fail("no other strings", "%r" % array.tolist())
                if done:
                    return

        findings.expect(_conform.survives(try_each), "%s, with each request of Python's refused in "
                        "turn, to leave strings that were or are assigned" % words,
                        "NumPy crashed, or there are others")
    findings.tell()


def string_dtype_out_of_memory():
    array = strings()
    findings = Findings()
    findings.expect(_conform.survives(lambda: each_of_python(array.copy)),
                    "a copy of an array of StringDType, with each request of Python's refused in "
                    "turn, to raise MemoryError", "NumPy crashed")
    findings.tell()
