# SPDX-License-Identifier: BSD-3-Clause
"""Every way in which NumPy comes to its handler, by family.

A case is a function of begin.  It makes what it needs, calls begin with the arrays that the route
is going to change or read, and returns what the route gives.  With begin doing nothing it is run
by NumPy's own handler and by the subject, and the results have to be equal; with begin having
requests refused from there on it is run out of memory: conform_numpy_runs does that.
"""

import functools
import io
import os
import pickle
import sys
import warnings

import _conform
import numpy as np
import numpy.ma  # noqa: F401, np.median and np.unique would import it in each process
from conform_numpy_runs import ASK, expect_out_of_memory, expect_route, leave_dirt
from conform_support import NUMPY, Filled

FAMILIES = {}  # the cases of each, by its name


def case_with_begin(family, fails=True):
    """A case of that family; `fails` says that it is to be run out of memory as well, where NumPy
    itself gets through that if it is ASK."""

    def register(function):
        function.fails = fails
        FAMILIES.setdefault(family, []).append(function)

    return register


def add(family, name, given, work, fails=True):
    """Adds a case: begin gets what the functions `given` make, and so does `work`, the route."""

    def function(begin):
        arrays = [make() for make in given]
        begin(*arrays)
        return work(*arrays)

    function.__name__ = name
    case_with_begin(family, fails)(function)


def case(family, *given, fails=True):
    """As add, for a function that has several statements."""
    return lambda work: add(family, work.__name__, given, work, fails)


def numbers(count, dtype="i8"):
    """Numbers in no order, the same each time; of single bytes they repeat."""
    return (np.arange(count, dtype="i8") * 7919 % 10007).astype(dtype)


def of(*arguments, shape=None):
    """What makes these numbers."""
    return lambda: numbers(*arguments).reshape(shape or -1).copy()


def file_with(data):
    """An open file that holds these bytes, at its beginning."""
    file = os.fdopen(os.memfd_create("conform"), "w+b")
    file.write(data)
    file.seek(0)
    return file


# ---- create: malloc


add("create", "each_size", [],
    lambda: [Filled(size, size).array for size in (*range(1, 130), 1000, 4095, 4096, 4097, 65536)],
    fails=False)
add("create", "without_elements", [],
    lambda: (np.empty(0), np.empty((2, 0, 3)), np.empty(3, "V0"), np.array([]),
             np.empty((0, 0), "O")))
add("create", "from_objects", [],
    lambda: (np.array([1, 2, 3]), np.array([[1.5, 2], [3, 4]]), np.array(["one", "three"]),
             np.array([None, "x", 1.5], object), np.full(33, 7, "u1"), np.arange(1000, 0, -3)))
add("create", "from_arrays", [of(300)],
    lambda a: (a.copy(), a.astype("f4"), a[a > 5000], a[[7, 5, 3]], np.concatenate([a, a[::-1]]),
               np.where(a > 5000, a, 0), np.tile(a[:3], 5)))
add("create", "computed", [of(300, "f8", shape=(20, 15))],
    lambda a: (a + 1, a.sum(axis=0), a @ a.T, np.sqrt(a) * a - a / 3 + 1, np.cumsum(a),
               a.max(axis=1)))


@case("create", of(40000, "f8"), fails=False)
def computed_large(a):
    return a + a * 2 - 1  # from 256 KiB on temporaries are used again


# ---- zeros: calloc


@case("zeros", fails=False)
def zeros_of_each_size():
    sizes = (1, 2, 3, 7, 8, 9, 24, 63, 64, 65, 100, 1000, 4096, 5000, 32768, 131072, 300000)
    leave_dirt(*sizes)
    return [np.zeros(size, np.uint8) for size in sizes]


@case_with_begin("zeros")
def zeros_of_types(begin):
    leave_dirt(40, 80, 160, 24)
    begin()
    return np.zeros(10), np.zeros((2, 5), "c16"), np.zeros(5, "U2"), np.zeros(3, "M8[s]")


@case_with_begin("zeros")
def empty_but_zeroed(begin):
    leave_dirt(32, 16, 36, 160)
    begin()
    return (np.empty(4, object), np.empty(4, "U1"), np.empty(3, [("a", "O"), ("b", "i4")]),
            np.array([[1, "x"], [None, 2.5]] * 5, object))


@case("zeros", fails=False)
def more_than_there_is():
    most = sys.maxsize // 2 + 1
    half = most.bit_length() // 2
    shapes = (most >> half, 1 << half), (most,), (most >> 22, 1 << 22)
    return [error_of(np.zeros, shape, "u1") for shape in shapes]


# ---- resize: realloc of what is an array's already


def resized(array, *shapes):
    for shape in shapes:
        array.resize(shape, refcheck=False)
    return array


add("resize", "grown_and_shrunk", [of(10)], lambda a: resized(a, 100, 7))
add("resize", "grown", [of(700)], lambda a: resized(a, 5000))
add("resize", "shrunk", [of(5000)], lambda a: resized(a, 7))
add("resize", "in_two_dimensions", [of(12, shape=(3, 4))], lambda a: resized(a, (5, 6)))
add("resize", "of_objects", [lambda: np.array([None, "x", 1.5, (2, 3)], object)],
    lambda a: resized(a, 9))


@case_with_begin("resize")
def to_nothing_and_back(begin):
    a, b = numbers(10), numbers(10)
    begin(a)
    resized(a, 0)
    resized(b, (2, 0, 3))
    return resized(a, 11), b


@case("resize", of(50, "f4"))
def from_c(a):
    _conform.resize(a, 3000)
    _conform.resize(a, 20)
    return a


add("resize", "over_many_sizes", [],
    lambda: [resized(Filled(size, size).array, other, size)
             for size in (1, 17, 100, 1000, 4000, 4097, 33000, 140000)
             for other in (3, 24, 130, 999, 4096, 32768, 131072)],
    fails=False)


@case("resize", fails=False)
def byte_by_byte():
    a = Filled(1, 1).array
    for size in range(2, 200):
        resized(a, size)[size - 1] = size
    return a


# ---- fromiter: realloc by half as much again


add("fromiter", "iterated", [],
    lambda: (np.fromiter((x for x in range(5)), "i8"), np.fromiter(iter("abc"), "S1")))
add("fromiter", "iterated_long", [],
    lambda: (np.fromiter((x * 3 for x in range(3000)), "i8"),
             np.fromiter((x % 251 for x in range(1000)), "u1"),
             np.fromiter(((x, -x) for x in range(500)), [("a", "i4"), ("b", "f8")])),
    fails=False)
add("fromiter", "iterated_with_count", [], lambda: np.fromiter(range(100), "f4", count=40))


class Hinted:
    """Says that it has seven items, and has as many as it is told to."""

    def __init__(self, items):
        self.items = iter(range(items))

    def __iter__(self):
        return self.items

    def __length_hint__(self):
        return 7


@case("fromiter")
def iterated_by_a_hint():
    counts = (0, 3, 7, 20) if NUMPY >= (1, 23) else (3, 7, 20)  # 1.22 makes 7 of none: runtime.*
    return [np.fromiter(Hinted(count), "i8") for count in counts]


@case("fromiter")
def iterated_to_an_error():
    def broken_off():
        yield from range(50)
        raise KeyError("enough")

    try:
        np.fromiter(broken_off(), "i8")
    except KeyError as error:
        return error.args[0]  # the block is freed while it is pending


# ---- fromfile: malloc of what was asked for, realloc to what there is


@case_with_begin("fromfile")
def short_of_items(begin):
    with file_with(numbers(5).tobytes()) as file:
        begin()
        return np.fromfile(file, "i8", count=9)


@case_with_begin("fromfile")
def whole_file(begin):
    with file_with(numbers(3000).tobytes()) as file:
        begin()
        return np.fromfile(file, "i8", offset=8), np.fromfile(file, "i8")


@case_with_begin("fromfile", fails=False)
def far_short_of_items(begin):
    found = []
    for items, count in (1, 5000), (4000, 100000), (600, 601), (100, 30):
        with file_with(numbers(items, "f4").tobytes()) as file:
            begin()
            found.append(np.fromfile(file, "f4", count=count))
    return found


@case_with_begin("fromfile")
def empty_file(begin):
    with file_with(b"") as file:
        begin()
        return np.fromfile(file, "i8", count=4), np.fromfile(file, "(3,)i4", count=4)


# ---- text: realloc, of fromstring without the GIL


add("text", "words", [],
    lambda: (np.fromstring("1 2 3", sep=" "), np.fromstring("5,6,7", "i4", sep=",")))
add("text", "many_words", [], lambda: np.fromstring("1" + 4999 * " 1", "i8", sep=" "))


@case("text", fails=False)
def more_words():
    numerals = [str(number) for number in range(9000)]
    return [np.fromstring(" ".join(numerals[:count]), "i8", sep=" ")
            for count in (4095, 4096, 4097, 9000)]


@case("text")
def no_words():
    found = [np.fromstring("", sep=" ")]
    for text in "x", "5,6,,":
        try:
            found.append(np.fromstring(text, sep=","))
        except ValueError:
            found.append("refused")  # a warning up to NumPy 2.2
    return found


@case_with_begin("text")
def words_of_a_file(begin):
    with file_with(b"1.5 2.5 4") as full, file_with(b"") as empty:
        begin()
        return np.fromfile(full, sep=" "), np.fromfile(empty, sep=" ")


@case_with_begin("text")
def table(begin):
    file = io.StringIO("1 2\n3 4\n")
    begin()
    return np.loadtxt(file)


@case("text", fails=False)
def long_table():
    lines = ["%d %d" % (i, i * 3) for i in range(1500)]
    return np.loadtxt(lines), np.loadtxt(lines[:700], dtype="i4", max_rows=650)


@case("text")
def broken_table():
    try:
        np.loadtxt(io.StringIO("1 2\n3 x\n"))
    except ValueError:
        return "refused"


# ---- pickle: malloc of one byte, free, malloc


def picklable():
    return [numbers(3), numbers(2000, "f4"), numbers(24, ">i2").reshape(4, 6),
            np.asfortranarray(numbers(30).reshape(5, 6)), np.array([None, "x", (1, 2)], object),
            np.array(["one", "three"]),
            np.array([(1, 2.5), (3, 4.5)], [("a", "i1"), ("b", "f8")]),
            np.empty((0, 3)), np.array(5.5)]


add("pickle", "by_each_protocol", [],
    lambda: [pickle.loads(pickle.dumps(array, protocol))
             for protocol in range(pickle.HIGHEST_PROTOCOL + 1) for array in picklable()],
    fails=False)


@case_with_begin("pickle")
def of_numbers(begin):
    data = pickle.dumps(numbers(3), 2)
    begin()
    return pickle.loads(data)


@case_with_begin("pickle")
def of_other_types(begin):
    data = pickle.dumps([np.array([None, "x"], object), numbers(20, ">i4"), np.array("text")], 2)
    begin()
    return pickle.loads(data)


@case_with_begin("pickle")
def saved(begin):
    file = io.BytesIO()
    np.save(file, numbers(70).reshape(7, 10))
    file.seek(0)
    begin()
    return np.load(file)


# ---- setstate: free of the old block, malloc of the new one


FOUR_NUMBERS = (1, (4,), np.dtype("i8"), False, bytes(range(32)))


@case_with_begin("setstate")
def another_state(begin):
    array = numbers(100)
    begin()  # where there is no memory the array loses the block that it had
    array.__setstate__(FOUR_NUMBERS)
    return array


@case_with_begin("setstate")
def states_of_every_length(begin):
    array = numbers(3, "u1")
    begin()
    found = []
    for size in 0, 1, 5, 999, 1000, 1001, 5000:
        array.__setstate__((1, (size,), np.dtype("u1"), False, _conform.pattern(size, 1)))
        found.append(array.copy())
    return found


@case_with_begin("setstate", fails=ASK)
def again_after_a_refusal(begin):
    array = numbers(100)
    begin()
    try:
        array.__setstate__(FOUR_NUMBERS)
    except MemoryError:  # it has no block now, and takes another
        array.__setstate__(FOUR_NUMBERS)
    return array


# What NumPy says no to before it gives the array's block back.
BAD_STATES = (
    (1, (6,)),
    (2, (6,), np.dtype("i8"), False, bytes(48)),
    (1, ("six",), np.dtype("i8"), False, bytes(48)),
    (1, (1 << 62, 1 << 62), np.dtype("i8"), False, bytes(48)),
    (1, (1 << 60,), np.dtype("i8"), False, bytes(48)),
    (1, (-6,), np.dtype("i8"), False, bytes(48)),
    (1, (6,), np.dtype("i8"), False, "\u0150" * 48),
    (1, (6,), np.dtype("i8"), False, [1] * 6),
    (1, (6,), np.dtype("i8"), False, bytes(40)),
)


def error_of(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:
        return type(error).__name__


@case("setstate", *[of(6)] * len(BAD_STATES))
def bad_states(*arrays):
    errors = [error_of(a.__setstate__, state) for a, state in zip(arrays, BAD_STATES)]
    return errors, arrays


@case_with_begin("setstate")
def bad_states_of_another_type(begin):
    rows = [[numbers(6) for _ in range(3)] for _ in range(4)]
    begin()
    errors = []
    for arrays, dtype in zip(rows, ("u1", "i4", "c16", "S40")):
        # up to 2.4 what it has is freed as so many of these
        state = (1, (6,), np.dtype(dtype), False, bytes(5))
        errors.append(error_of(arrays[1].__setstate__, state))
        del arrays[1]
        errors += arrays
    return errors


add("setstate", "bad_list_of_objects", [lambda: np.array([3, "x", None], object)],
    lambda array: (error_of(array.__setstate__, (1, (3,), np.dtype("O"), False, b"xyz")), array))


@case_with_begin("setstate")
def state_of_objects(begin):
    array = np.array([1, 2, 3], object)
    begin()
    array.__setstate__((1, (2,), np.dtype("O"), False, ["x", None]))
    return array


# ---- sort: a buffer for what is not contiguous, aligned and in the machine's byte order


def misaligned():
    array = np.zeros(40 * 8 + 1, "u1")[1:].view("i8")
    array[:] = numbers(40)
    return array


@case("sort", of(300), of(10), fails=ASK)
def strided(a, b):
    a[::2].sort()
    b[::-3].sort()
    return a, b


@case("sort", of(50, ">i8"), fails=ASK)
def swapped(a):
    a.sort()
    return a


@case("sort", of(60, shape=(6, 10)), of(60, "f4", shape=(3, 4, 5)), fails=ASK)
def along_axes(a, b):
    a.sort(axis=0)
    b.sort(axis=1)
    return a, b


@case("sort", misaligned, fails=ASK)
def misaligned_data(a):
    a.sort()
    return a


@case("sort", of(100), of(101), fails=ASK)
def partitioned(a, b):
    a[::-1].partition(30)
    return np.sort(a[:69]), np.partition(b, 50)[50], np.median(b), np.unique(b // 100)


add("sort", "by_each_kind", [],
    lambda: [np.sort(numbers(count, dtype), kind=kind) for kind in ("quicksort", "heapsort",
             "stable") for dtype in ("i1", "i8", "f4", ">f8", "c8", "S7", "U3", "M8[s]")
             for count in (1, 3, 17, 200)], fails=False)


@case("sort", fails=False)
def strided_by_each_kind():
    found = []
    for kind in "quicksort", "heapsort", "stable":
        for dtype in "i1", "i2", "f8", ">u4", "U2":
            array = numbers(140, dtype).reshape(7, 20)
            array[:, ::3].sort(axis=0, kind=kind)
            found.append(array)
    return found


@case("sort", lambda: np.array([str(x) for x in numbers(60)], object), fails=ASK)
def objects(a):
    b = a.copy()
    b.sort()
    a[::2].sort()
    return a, b


# ---- argsort


add("argsort", "contiguous", [of(100)], lambda a: (a.argsort(), numbers(5).argsort(kind="stable")))
add("argsort", "across", [of(60, shape=(6, 10))],
    lambda a: a.argsort(axis=0, kind="stable"), fails=ASK)
add("argsort", "of_strided", [of(200)],
    lambda a: (a[::-3].argsort(kind="stable"), numbers(30, ">i4").argsort(kind="stable")),
    fails=ASK)
add("argsort", "partly", [of(90)],
    lambda a: (a[::2].argpartition(10)[10], np.lexsort((a, a % 7)), np.argsort(-a, kind="stable")),
    fails=ASK)
add("argsort", "of_each_type", [],
    lambda: [numbers(140, dtype).reshape(7, 20).argsort(axis=axis, kind="stable")
             for dtype in ("?", "i1", "i2", "f4", "f8", "c16", ">u4", "S3", "U2", "M8[s]")
             for axis in (0, 1, None)],
    fails=False)


@case("argsort", fails=ASK)
def of_objects_across():
    array = np.array([str(x) for x in numbers(40)], object).reshape(4, 10)
    return array.argsort(axis=0), array[:, ::2].argsort(kind="stable")


# ---- structured-sort: two blocks for each comparison of misaligned or swapped fields


def records(count):
    made = np.zeros(count, [("x", "i1"), ("y", ">i8"), ("z", "S3")])
    made["x"] = numbers(count) % 4
    made["y"] = numbers(count)
    made["z"] = numbers(count) % 100
    return made


add("structured-sort", "of_records", [],
    lambda: [np.sort(records(count)) for count in (1, 2, 3, 10, 60)], fails=False)


@case("structured-sort", fails=False)
def of_nested_records():
    array = np.zeros(12, [("s", [("a", "i1"), ("b", "f4")]), ("t", "u1", (2, 2))])
    array["s"]["a"] = numbers(12) % 3
    array["s"]["b"] = numbers(12)
    array["t"][:, 0, 1] = numbers(12) % 5
    return np.sort(array, order="s"), np.sort(array[::2], order=["s"])


@case("structured-sort", fails=False)
def positions_of_records():
    array = records(40)
    return array.argsort(kind="stable"), array.argsort(order="y"), np.unique(array)


@case("structured-sort", fails=False)
def of_no_bytes():
    if NUMPY >= (2, 0):
        return None  # a block of no bytes stops a NumPy that is built with its assertions
    array = np.zeros(3, [("x", "i1"), ("y", "U0")])
    array.sort()
    return array


@case("structured-sort", lambda: records(8), fails=ASK)
def strided_records(a):
    a[::2].sort()
    return sorted(a.tolist())  # without memory NumPy takes some for equal: runtime.*


add("structured-sort", "found_in_records", [lambda: records(3)],
    lambda a: sorted(np.sort(a, kind="stable").tolist()))


# ---- string-dtype


@case_with_begin("string-dtype")
def empty_strings(begin):
    leave_dirt(160, 16)
    begin()
    return np.zeros(10, "T").tolist(), np.empty(1, "T").tolist()


add("string-dtype", "strings", [],
    lambda: np.array(["a", "a string of some length, more than fits", ""] * 4, "T").tolist())


@case_with_begin("string-dtype", fails=ASK)
def strided_strings(begin):
    a = numbers(40).astype("T")
    begin()
    a[::2].sort()
    return a.tolist()


@case_with_begin("string-dtype")
def resized_strings(begin):
    a = numbers(10).astype("T")
    begin()
    return resized(a, 25 if NUMPY >= (2, 1) else 4).tolist()  # 2.0 does not grow them: runtime.*


@case("string-dtype", fails=False)
def pickled_strings():
    made = numbers(30).astype("T")
    return pickle.loads(pickle.dumps(made)).tolist(), made.copy()[::-1].tolist()


# ---- a function for each property: route_create, out_of_memory_create, ...


def run(expect, family):
    """expect() of a family's cases, without the warnings that some of them are known for."""
    if family == "string-dtype" and NUMPY < (2, 0):
        _conform.skip("NumPy has StringDType since 2.0")
    warnings.simplefilter("ignore")
    expect(FAMILIES[family])


for name in FAMILIES:
    suffix = name.replace("-", "_")
    globals()["route_" + suffix] = functools.partial(run, expect_route, name)
    globals()["out_of_memory_" + suffix] = functools.partial(run, expect_out_of_memory, name)
