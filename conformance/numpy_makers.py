# SPDX-License-Identifier: BSD-3-Clause
"""The functions of NumPy that make arrays, each by a line of its own, that is its name as well.

What a line is given stays as it is; what it changes it copies first.
"""

import ast
import warnings

import _conform
import numpy as np
from conform_numpy_routes import file_with, numbers
from conform_numpy_runs import ASK, by_numpy, expect_out_of_memory, expect_route, those_numpy_can


def into(array, change):
    """A copy that `change` was called with."""
    copied = array.copy()
    change(copied)
    return copied


def put(array, index, value):
    return into(array, lambda copied: copied.__setitem__(index, value))


class Sub(np.ndarray):
    """A subclass and no more."""


class Refusing(np.ndarray):
    """A subclass whose arrays cannot be made once it is told so."""

    refusing = False

    def __array_finalize__(self, parent):
        if self.refusing:
            raise ValueError("no more of these")


def refused_by_subclass(function):
    """What is raised where an array of the subclass was made, and its block has to go again."""
    array = numbers(6, "f8").view(Refusing)
    Refusing.refusing = True
    try:
        function(array)
    except ValueError as error:
        return str(error)
    finally:
        Refusing.refusing = False


def iterated(*arguments, **options):
    """What an iterator allocated for its last operand."""
    with np.nditer(*arguments, **options) as iterator:
        for each in iterator:
            each[-1][...] = each[0]
        return iterator.operands[-1]


def assigned(iterator, index, value):
    """What the last operand of an iterator holds once that was put where it stands."""
    with iterator:
        iterator[index] = value
        return iterator.operands[-1].copy()


def text_file(text, **options):
    with file_with(text) as file:
        return np.fromfile(file, sep=" ", **options)


def limits_of(kind):
    """Of a floating type, which NumPy computes once and then keeps."""
    np.finfo._finfo_cache.clear()
    return np.finfo(kind).max


GIVEN = dict(
    vars(np),
    np=np,
    into=into,
    put=put,
    assigned=assigned,
    iterated=iterated,
    limits_of=limits_of,
    refused_by_subclass=refused_by_subclass,
    Sub=Sub,
    text_file=text_file,
    few=np.array([3, 1, 2]),
    row=numbers(8, "f8"),
    swapped=numbers(8, ">f4"),
    table=numbers(12, "f8").reshape(3, 4),
    other=np.asfortranarray(numbers(12, "i4").reshape(3, 4)),
    bits=np.array([1, 0, 1, 1, 0] * 3, bool),
    things=np.array([3, 1, 2], object),
    words=np.array(["ab", "c", "ab"]),
    pairs=np.array([(1, 2.5), (3, 4.5)], [("a", "i4"), ("b", "f8")]),
    blobs=np.zeros(3, [("v", "V3"), ("n", ">i2")]),
    dates=np.array(["2001-02-03", "2004-05-06"], "M8[D]"),
    large=numbers(40000, "f8"),
)

# By the file in NumPy's source whose calls they are about.  Not every version has all of them.
ROUTES = {
    "ctors.c and array_coercion.c": """
array(table, order="F", dtype="f8"), array(few, ndmin=3), array([1, "x", None], object)
array([table, table]), asarray([[1, 2], [3, 4]], order="F")
arange("2000-01", "2000-06", dtype="M8[M]"), empty_like(other, dtype=object)
zeros_like(moveaxis(zeros((2, 3, 4)), 0, 1))
fromiter([[1, 2]] * 9, "(2,)i4"), text_file(b"1 2 3 4 5", count=50)
text_file(b"", dtype=dtype(("i4", (0,))), count=0), loadtxt([]), loadtxt(["1 2", "3 4"])
refused_by_subclass(lambda array: array + 1), refused_by_subclass(lambda array: array[[0, 1]])
refused_by_subclass(lambda array: type(array)((100,)))
""",
    "convert.c and methods.c": """
table.__deepcopy__({}), row.astype("U8"), row.astype(object), array(["1.5", "2"]).astype(float)
zeros(3, "(2,)f4,O").astype("(2,)f8,O")["f0"], swapped.byteswap(), pairs[["a", "b"]].copy()
into(pairs, lambda a: a.setfield(3, "i4")), put(pairs, 0, (2, 3.5))
put(zeros((), [("a", "(2,)f4")]), "a", 3)
into(row, lambda a: a.__setitem__(slice(1, None), a[:-1]))
into(row, lambda a: copyto(a, a[::-1], where=a > 3000))
into(row, lambda a: a.__setitem__(slice(None), a[::-1]))
into(row, lambda a: setattr(a, "real", 1)), few.imag
into(row.astype(complex), lambda a: setattr(a, "imag", a.real[::-1]))
""",
    "shape.c and item_selection.c": """
other.ravel(), table.T.flatten("F"), table.T.reshape(12), resize(few, (4, 4))
take(things, [0, 1]), other.repeat([1, 2, 0], axis=0), choose([0, 1, 1], [[1, 2, 3], [4.0, 5, 6]])
choose(few % 2, table[:2, :3], mode="wrap"), into(row, lambda a: a.put([1, 2], [3]))
into(row, lambda a: putmask(a, a > 2, a[::-1])), into(row, lambda a: place(a, a > 2, [1]))
compress([True, False, True], table, axis=0), lexsort((few, [1, 1, 0]))
lexsort((things[::-1], few)), searchsorted(arange(9.0), [1.5, 2.5], sorter=arange(9))
roll(table, 1), partition(row, [2, 5])[2], unique(words)
unique(few, return_inverse=True)
""",
    "mapping.c and iterators.c": """
table[:, [1, 2]], table[[0], [1]], table[array(1)], table[bits[:3]], table[True]
put(table, [0, 1], table[1:]), put(table, table > 3, 0), put(table, ([0, 1], slice(1, 3)), 5)
row.view(Sub)[row > 2], table.T.flat[[1, 2]], table.flat[array([True] * 3 + [False] * 9)]
other.flat[...], things.flat[0:2], into(table, lambda a: a.flat.__setitem__([1, 2], 9))
table.T.flat == table.T.flat, into(row, lambda a: add.at(a, [1], 2))
into(row, lambda a: setattr(a, "flat", [1, 2])), into(things, lambda a: add.at(a, [0, 0], 1))
""",
    "nditer_constr.c and nditer_pywrap.c": """
iterated([row, None], ["buffered", "external_loop"], op_dtypes=["f4", "f8"], casting="same_kind")
into(row, lambda a: iterated([a, a[::-1]], ["copy_if_overlap"], [["readonly"], ["readwrite"]]))
assigned(nditer([row.copy(), None], ["external_loop"]), slice(1, 2), [2.0])
assigned(nditer(row.copy(), [], [["readwrite", "updateifcopy"]], "f4", casting="unsafe"), 0, 3.0)
nditer(5.0)[0]
""",
    "calculation.c, compiled_base.c and multiarraymodule.c": """
table.argmin(0), table.argmax(1), (table + 1j).round(2), few.round(-1), few.round(2)
bincount(few), bincount([], minlength=5), bincount([1, 2, 2], weights=[0.1, 0.2, 0.3])
interp([1.5, 2.5], row, row), interp([1.5], row, row + 1j), histogram(few)
unravel_index([3, 4], (3, 4)), ravel_multi_index(([1, 2], [1, 2]), (3, 4)), digitize(row, [1, 9])
unpackbits(packbits(bits)), packbits(ones((3, 5), bool), axis=0)
concatenate([few, [3.5]], axis=None), concatenate([table, table], axis=1)
correlate(few, [0, 1, 0.5]), convolve(few, [1, 1]), vdot([1j], [2]), inner(table, table)
dot(things, things), einsum("ij,kj", table, other), where(bits)
busdaycalendar(holidays=["2001-02-05", "2001-02-06"]).holidays, busdaycalendar().weekmask
busday_count("2011-07-01", "2011-07-18", holidays=["2011-07-04"]), is_busday(["2011-07-01"])
busday_offset("2011-10", 0, roll="forward"), dot([1, 2, 3], [1, 2, 3])
dot(eye(4)[::2, ::2], ones(2)), datetime_as_string(dates), dates - dates[::-1]
limits_of("f4")
""",
    "ufunc_object.c, reduction.c and number.c": """
add.reduceat(row, [0, 4, 1, 5]), add.reduceat(row[::2], [0, 2], dtype="f4")
add.accumulate(things), minimum.reduce(table, axis=1, where=table > 3, initial=5)
into(row, lambda a: a.__iadd__(a[::-1])), (large * 2 + large * 3 + large - (-large))[:9].copy()
blobs == blobs, zeros(3, "V5") == ones(3, "V5")
""",
    "scalartypes.c.src and strings": """
np.float64(3).flatten(), np.float64(3).ravel(), np.float64(3).argsort(), np.float64(3).reshape(1)
np.float64(3).astype("f4"), np.float64(3).repeat(3), np.int8(3).copy(), np.longdouble(2) ** 2
np.float64(1).take([0]), np.int8(2)[...], np.float64(1).sum(), np.void(b"abc").tobytes()
np.char.upper(words), np.char.add(words, words), np.char.replace(words, "a", "bb")
np.char.split(words), np.char.partition(words, "b"), np.char.join("-", words)
np.ma.array([1, 2, 3], mask=[0, 1, 0]) + 1
""",
    "ufunc_object.c, for what compiles loops": """
add.resolve_dtypes((int, dtype("f4"), None))
add._resolve_dtypes_and_context((dtype("f4"), float, None))[0]
""",
    "dlpack.c and stringdtype": """
array(["ab", "c" * 40], "T").copy().tolist(), sort(words.astype("T")).tolist()
words.astype("T").argsort(kind="stable"), concatenate([words.astype("T")] * 2).tolist()
np.strings.center(words.astype("T"), 50).tolist(), unique(words.astype("T")).tolist()
""",
    "dlpack.c and shape.c, for copies": """
few.__dlpack__(copy=True) is None, reshape(table, (2, 6), copy=True)
""",
}


def route_case(line, node):
    """An expression of that line, as a case of conform_numpy_routes, named by what it says."""
    text = line[node.col_offset:node.end_col_offset]
    code = compile(ast.Expression(node), text, "eval")

    def function(begin):
        begin()
        return eval(code, GIVEN)

    function.__name__ = text
    function.fails = ASK
    return function


def has(function):
    """Whether this NumPy has what the case is about."""
    try:
        by_numpy(function)
    except Exception:
        return False
    return True


def cases():
    warnings.simplefilter("ignore")
    lines = [line for lines in ROUTES.values() for line in lines.split("\n")]
    every = [route_case(line, each) for line in lines for each in expressions(line)]
    found = [function for function in every if has(function)]
    if len(found) < len(every) * 3 // 4:
        _conform.skip("this NumPy has %d of the %d functions" % (len(found), len(every)))
    return found


def expressions(line):
    """Those of it that are apart by commas."""
    for statement in ast.parse(line).body:
        yield from getattr(statement.value, "elts", [statement.value])


def route():
    able = those_numpy_can([(function, by_numpy(function)) for function in cases()])
    expect_route([function for function, _ in able])


def out_of_memory():
    some = cases()[:: 4 if _conform.is_instrumented() else 1]
    expect_out_of_memory(some, ways=((True, False), (False, False)), one_will_do=True)
