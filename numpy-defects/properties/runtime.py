# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's own side of the contract, by a handler that is nothing but libc."""

import contextlib
import datetime
import functools
import os
import sys
import tracemalloc
import warnings

import _conform
import numpy as np
from conform_numpy_routes import FAMILIES, Hinted, numbers, records
from conform_numpy_runs import leave_dirt, nothing
from conform_support import NUMPY, Handler, address_of, in_threads, same


def plain_handler():
    return Handler("plain", plain=True)


class Findings:
    """What was found so far: one thing does not keep a property from the next."""

    def __init__(self):
        self.found = []

    def expect(self, held, expected, seen):
        if not held:
            self.found.append((expected, seen))

    def same(self, seen, expected, what):
        self.expect(seen == expected, "%s to be %r" % (what, expected), repr(seen))

    def tell(self):
        if self.found:
            (expected, seen), *others = self.found
            more = "".join("; expected %s, seen %s" % each for each in others)
            _conform.fail(expected, seen + more)


# ---- sorts without memory, most of them in a child, which may not survive them


def without_memory(function, make):
    """With each of its requests refused by itself: what is asked after the first one counts."""
    handler = plain_handler()
    with handler.installed():
        for nth in range(1, 100):
            argument = make()
            _conform.refuse(handler.capsule, nth)
            try:
                function(argument)
            except MemoryError:
                pass
            if _conform.refuse(handler.capsule, 0) == 0:
                return


def records_with_objects():
    return np.array([(i * 5 % 8, i) for i in range(8)], "O,i8")


def strings():
    return np.array([str(i * 5 % 8) * 20 for i in range(8)], "T")


MAKERS = {
    "numbers": lambda: numbers(8),
    "objects": lambda: numbers(8).astype(object),
    "records": records_with_objects,
    "strings": strings,
}
SORTS = {
    "sort": lambda array: array[::2].sort(),
    "argsort": lambda array: array.reshape(4, 2).argsort(axis=0),
    "partition": lambda array: array[::2].partition(1),
    "argpartition": lambda array: array[::2].argpartition(1),
}
# By name, as C calls them: sort_numbers, argsort_objects and so on.
globals().update(("%s_%s" % (sort, maker), functools.partial(without_memory, SORTS[sort], make))
                 for sort in SORTS for maker, make in MAKERS.items())


def expect_strings():
    if NUMPY < (2, 0):
        _conform.skip("NumPy has StringDType since 2.0")


def fromiter_of_nothing():
    handler = plain_handler()
    with handler.installed():
        made = np.fromiter(Hinted(0), "i8")
        same(made.shape, (0,), "the shape of an array of no items, of which 7 were expected")
        del made
    handler.expect_settled()


def resize_strings():
    array = np.array(["one", "two", "three"], "T")
    leave_dirt(400)
    array.resize(25, refcheck=False)
    try:
        same(array.tolist()[3:], [""] * 22, "the strings that an array was filled up with")
    except MemoryError as error:
        _conform.fail("an array of StringDType that grew to be filled up with ''", str(error))


def structured_sort():
    wanted = np.sort(records(12)).tolist()
    findings = Findings()
    handler = plain_handler()
    with handler.installed():
        for nth in range(1, 1000):
            array = records(12)
            _conform.refuse(handler.capsule, nth)
            try:
                array.sort()
                seen = array.tolist()
            except MemoryError:
                seen = wanted
            if _conform.refuse(handler.capsule, 0) == 0:
                break
            at = [a == b for a, b in zip(seen, wanted)] + [False]
            at = at.index(False)
            findings.expect(at == 12, "record %d of 12, sorted with request %d refused to be %r"
                            % (at, nth, wanted[at:][:1]), repr(seen[at:][:1]))
    if nth == 1:
        _conform.skip("this NumPy asks for no memory to compare records")
    findings.found[2:] = []  # so many requests, so many findings
    findings.tell()


# ---- SetHandler


def is_refused(what):
    """Whether SetHandler refuses that; where it does not, all is put back at once."""
    try:
        previous = _conform.set_handler(what)
    except (TypeError, ValueError):
        return True
    _conform.set_handler(previous)
    return False


STRANGERS = {
    "a str": "plain",
    "the capsule datetime_CAPI": datetime.datetime_CAPI,
}


def set_handler_refuses():
    findings = Findings()
    for words, stranger in STRANGERS.items():
        findings.expect(is_refused(stranger), "SetHandler to refuse %s" % words,
                        "it was installed")
    findings.tell()


def set_handler_keeps_count():
    handler = plain_handler()
    with handler.installed():
        before = sys.getrefcount(handler.capsule)
        for _ in range(10):
            if not is_refused(STRANGERS["the capsule datetime_CAPI"]):
                _conform.skip("this NumPy refuses no capsule")
        same(
            sys.getrefcount(handler.capsule) - before,
            0,
            "the references to the active handler that ten refused calls of SetHandler took",
        )


def set_handler_looks():
    functions = ["no malloc", "no calloc", "no realloc", "no free"]
    defects = [*functions, "version 0", "version 2", "a name without an end"]
    taken = [each for each in defects if not is_refused(_conform.spoiled_handler(each))]
    if taken:
        _conform.fail("SetHandler to refuse a handler with %s" % " or ".join(taken),
                      "each was installed")


def capsule_without_name():
    """Nobody can be asked for memory then, or given it back: the block of an array is lost."""
    findings = Findings()
    handler = plain_handler()
    with handler.installed(), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        sys.unraisablehook = warned.append  # NumPy warns while the reason is pending
        arrays = [np.arange(100)]
        before, values = _conform.counts(handler.capsule), arrays[0].tolist()
        _conform.rename(handler.capsule, "lost")
        for words, function in {
            "np.empty": lambda: np.empty(10),
            "np.zeros": lambda: np.zeros(10),
            "a resize": lambda: arrays[0].resize(200, refcheck=False),
        }.items():
            findings.expect(raises(function), "%s to raise an exception" % words, "none")
        findings.same(arrays[0].tolist(), values, "the array")
        arrays.clear()
        _conform.rename(handler.capsule, "mem_handler")
        sys.unraisablehook = sys.__unraisablehook__
        findings.expect(warned, "a warning of an array whose block cannot be freed", "none")
        findings.same(_conform.counts(handler.capsule), before, "what the handler was asked for")
    findings.tell()


def raises(function):
    try:
        function()
    except (MemoryError, RuntimeError, ValueError):
        return True
    return False


# ---- tracemalloc

DOMAIN = tracemalloc.DomainFilter(True, 389047)  # NPY_TRACE_DOMAIN


def traced():
    taken = tracemalloc.take_snapshot().filter_traces([DOMAIN])
    return sorted(trace.size for trace in taken.traces)


def refusals_traced():
    findings = Findings()
    handler = plain_handler()
    with handler.installed():
        tracemalloc.start(1)
        array = np.empty(700, "u1")
        for words, function in {
            "np.empty(1000)": lambda: np.empty(1000, "u1"),
            "np.zeros(1000)": lambda: np.zeros(1000, "u1"),
            "resize to 1000": lambda: array.resize(1000, refcheck=False),
        }.items():
            _conform.refuse(handler.capsule, 1, True)
            try:
                function()
            except MemoryError:
                pass
            _conform.refuse(handler.capsule, 0)
            findings.same(traced(), [700], "the sizes traced after %s was refused" % words)
            tracemalloc.clear_traces()
            array = np.empty(700, "u1")
        tracemalloc.stop()
    findings.tell()


def start_tracing():
    tracemalloc.start(1)


def stop_tracing():
    tracemalloc.stop()


# ---- arrays without a handler


def setstate_without_handler():
    handler = plain_handler()
    with handler.installed():
        array = _conform.owndata_array(100)
        try:
            array.__setstate__((1, (4,), np.dtype("i8"), False, bytes(range(32))))
        except RuntimeError as error:
            _conform.fail("__setstate__ to give the memory to free() and go on", str(error))
        same(array.tobytes(), bytes(range(32)), "the data after __setstate__")
        del array
    handler.expect_settled()


# ---- the size that free is told


def wrong_sizes(function, begin=nothing):
    """(size said, size asked for, line) of each free in that case that was told another."""
    handler = plain_handler()
    with handler.installed():
        try:
            function(begin(handler) if begin is not nothing else nothing)
        except MemoryError:
            pass
    notes = _conform.notes(handler.capsule)
    return [(said, asked, line) for kind, line, said, asked in notes if kind == "wrong-size"]


def each_case():
    warnings.simplefilter("ignore")  # of some cases
    for family in FAMILIES:
        if family != "string-dtype":
            yield from (function for function in FAMILIES[family] if function.fails)


def expect_sizes(is_known):
    """Each wrong size but the known ones is told once for each case."""
    findings = Findings()
    for function in each_case():
        wrong = [line for said, _, line in wrong_sizes(function) if not is_known(said)]
        expected = "free to be told the size asked for in %s" % function.__name__
        findings.expect(not wrong, expected, wrong[:1] and wrong[0])
    findings.tell()


def free_size():
    """All but those that are known: 1 for what was an array without elements at its end."""
    expect_sizes(lambda said: said == 1)


def free_size_of_empty():
    expect_sizes(lambda said: said != 1)


def free_size_after_refusal():
    many_words = next(f for f in FAMILIES["text"] if f.__name__ == "many_words")

    def refusing(nth):
        return lambda handler: lambda: _conform.refuse(handler.capsule, nth)

    findings = Findings()
    for nth in range(1, 6):
        for _, _, line in wrong_sizes(many_words, refusing(nth)):
            findings.expect(False, "free to be told the size asked for, request %d refused" % nth,
                            line)
    findings.tell()


# ---- threads and interpreters


def resize_while_read():
    handler = plain_handler()
    with handler.installed():
        array, beside = np.zeros(10000, "u1"), np.zeros(10000, "u1")  # lest it grows in place
        block, tried = address_of(array), []

        def resize(_):
            with contextlib.suppress(ValueError):
                array.resize(1 << 20, refcheck=False)

        def look(item):
            """Ends it all at the first item, and what was freed is not read."""
            if not tried:
                tried.append(in_threads(resize))
            if block not in dict(_conform.live(handler.capsule)):
                _conform.fail("the block that a ufunc reads to stay while another thread resizes "
                              "the array", "it was freed")
            return item

        np.frompyfunc(look, 1, 1)(array)
        del beside


# The reason, in one line: NumPy's advice stands before it, or in an exception that it caused.
IMPORT = """
import os
said = ""
try:
    import numpy
except BaseException as error:
    while error.__cause__ is not None:
        error = error.__cause__
    said = "%%s: %%s" %% (type(error).__name__, str(error).strip().rpartition("\\n")[2])
os.write(%d, said.encode())
"""


def sub_interpreter():
    try:
        import _interpreters as interpreters
    except ImportError:  # before 3.13
        import _xxsubinterpreters as interpreters
    number = interpreters.create()
    read_end, write_end = os.pipe()
    interpreters.run_string(number, IMPORT % write_end)
    os.close(write_end)
    said = os.read(read_end, 4096).decode()
    interpreters.destroy(number)
    if said:
        _conform.fail("NumPy %s to be imported in a sub-interpreter" % np.__version__, said)
