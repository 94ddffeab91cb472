# SPDX-License-Identifier: BSD-3-Clause
"""The routes by which NumPy comes to a handler, one after the other, to be recorded.

record.py runs this under `conform exec --record`.  Each route is a part of the trace, with its
code as its name; it begins with nothing and ends when all that it made is gone.  What a route needs
of a NumPy that not all have is said beside it.

Nothing here may depend on chance, time, addresses or the machine: the same NumPy has to give the
same trace.
"""

import copy
import gc
import io
import os
import pickle
import threading
import warnings

import _conform_exec
import numpy as np

NUMPY = tuple(int(part) for part in np.__version__.split(".")[:2])


class Hinted:
    """Says that it has seven items, and has as many as it is told to."""

    def __init__(self, items):
        self.items = iter(range(items))

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.items)

    def __length_hint__(self):
        return 7


def file_with(data):
    """An open file that holds these bytes, at its beginning."""
    file = os.fdopen(os.memfd_create("routes"), "w+b")
    file.write(data)
    file.seek(0)
    return file


def in_thread(function):
    """What it returns, called on a thread of its own."""
    result = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join()
    return result[0]


def numbers(count):
    """Numbers in no order, the same each time."""
    return [x * 7919 % 10007 for x in range(count)]


def shuffled(count, dtype="i8"):
    return np.array(numbers(count), dtype)


def records(count):
    made = np.zeros(count, [("x", "i1"), ("y", ">i8")])
    made["x"] = [x % 4 for x in numbers(count)]
    made["y"] = numbers(count)
    return made


# What the code of a route can name.
NAMES = dict(
    Hinted=Hinted, copy=copy, file_with=file_with, in_thread=in_thread, io=io, np=np,
    pickle=pickle, records=records, shuffled=shuffled,
)


class Route:
    """A piece of code.  `raises`: the exception that may come of it; `refused`: the request for
    memory that gets none, or "3 and on"; `since` and `until`: versions of NumPy, the last one
    excluded, of which it needs one; `but`: the first and last of versions that crash on it."""

    def __init__(self, code, raises=(), refused=None, since=(1, 22), until=(9, 9), but=None):
        self.code = compile(code, "<route>", "exec")
        self.name = code + (", request %s refused" % refused if refused else "")
        self.raises = raises
        self.refused = refused
        self.there = since <= NUMPY < until and not (but and but[0] <= NUMPY <= but[1])

    def run(self, group):
        names = dict(NAMES)
        _conform_exec.begin_part("%s: %s" % (group, self.name))
        try:
            if self.refused:
                nth, _, keep_failing = str(self.refused).partition(" ")
                _conform_exec.refuse(int(nth), bool(keep_failing))
            exec(self.code, names)
        except self.raises:
            pass
        finally:
            _conform_exec.refuse(0)
            names.clear()


def out(code, nth, **more):
    return Route(code, (MemoryError, SystemError), nth, **more)


# Where the buffer of a sort is refused these crash, see docs/clauses.md, runtime.*.
CRASH = ((1, 25), (2, 3))

GROUPS = {
    "create": [
        Route("np.empty(10)"),
        Route("np.array([1, 2, 3])"),
        Route("np.array(5.5)"),
        Route("np.array(['one', 'three'])"),
        Route("np.array([[1.5, 2], [3, 4]])"),
        Route("np.full(33, 7, 'u1')"),
        Route("np.arange(1000, 0, -3)"),
        Route("np.float64(1) + 2"),
        Route("for n in (*range(1, 34), 63, 64, 65, 1000, 4095, 4096, 4097, 65536): "
              "np.empty(n, 'u1')"),
        Route("kept = [np.empty(n, 'u1') for n in range(1, 50)]; del kept[::2]"),
        Route("in_thread(lambda: np.arange(7))"),
        Route("a = np.arange(7); in_thread(lambda: a + 1)"),
    ],
    "size 0": [
        Route("np.empty(0)"),
        Route("np.empty(0, 'u1')"),
        Route("np.empty(0, 'i4')"),
        Route("np.empty(0, 'c16')"),
        Route("np.empty(0, 'clongdouble')"),
        Route("np.empty(0, 'U5')"),
        Route("np.empty((2, 0, 3))"),
        Route("np.empty(3, 'V0')"),
        Route("np.empty(3, 'S0')"),
        Route("np.empty(0, [('x', 'i1'), ('y', 'f8', (3,))])"),
        Route("np.zeros(0)"),
        Route("np.zeros((0, 5), 'c16')"),
        Route("np.empty(0, object)"),
        Route("np.array([])"),
        Route("np.arange(5)[5:].copy()"),
        Route("np.arange(5)[np.zeros(5, bool)]"),
        Route("np.concatenate([np.empty(0), np.empty(0)])"),
        Route("np.empty(0) + 1"),
        Route("np.empty((0, 3)).sum(axis=0)"),
        Route("np.sort(np.empty(0)), np.argsort(np.empty(0))"),
        Route("pickle.loads(pickle.dumps(np.empty((0, 3)), 2))"),
        Route("kept = [np.empty(0, t) for t in ('i1', 'i2', 'i4', 'i8', 'c16') * 3]; "
              "del kept[::2]"),
    ],
    "zeros": [
        Route("np.zeros(10)"),
        Route("np.zeros((2, 5), 'c16')"),
        Route("np.zeros(300000)"),
        Route("np.empty(4, object)"),
        Route("np.empty(4, 'U1')"),
        Route("np.empty(3, [('a', 'O'), ('b', 'i4')])"),
        Route("np.array([None, 'x', 1.5], object)"),
        Route("np.full(9, 0xff, 'u1'); np.zeros(9, 'u1')"),
        Route("np.zeros((1 << 31, 1 << 31), 'u1')", MemoryError),
        Route("np.empty((1 << 31, 1 << 31), 'u1')", MemoryError),
    ],
    "compute": [
        Route("a = np.arange(300); a.copy()"),
        Route("a = np.arange(300); a.astype('f4')"),
        Route("a = np.arange(300); a[a > 150]"),
        Route("a = np.arange(300); a[[7, 5, 3]]"),
        Route("a = np.arange(300); np.where(a > 150, a, 0)"),
        Route("a = np.arange(300); np.concatenate([a, a[::-1]])"),
        Route("a = np.arange(300.0).reshape(20, 15); a.sum(axis=0)"),
        Route("a = np.arange(300.0).reshape(20, 15); a @ a.T"),
        Route("a = np.arange(300.0); np.sqrt(a) * a - a / 3 + 1"),
        Route("a = np.ones(40000); a + a * 2 - 1"),
        Route("a = np.arange(300); a += 1; np.add(a, 1, out=a)"),
        Route("np.einsum('ij,jk', np.eye(3), np.eye(3))"),
        Route("np.fft.fft(np.arange(8.0))"),
        Route("np.linalg.inv(np.eye(3))"),
        Route("np.nonzero(np.arange(9) % 2), np.bincount(np.arange(9) % 2)"),
        Route("np.repeat(np.arange(9), 3), np.tile(np.arange(9), 3)"),
        Route("a = np.arange(9); a[::2]; a.reshape(3, 3).T; a.view('u1'); np.frombuffer(a)"),
    ],
    "resize": [
        Route("a = np.arange(10); a.resize(100, refcheck=False)"),
        Route("a = np.arange(100); a.resize(7, refcheck=False)"),
        Route("a = np.arange(10); a.resize(10, refcheck=False)"),
        Route("a = np.arange(10); a.resize(0, refcheck=False)"),
        Route("a = np.arange(10, dtype='u1'); a.resize(0, refcheck=False)"),
        Route("a = np.zeros(9, 'c16'); a.resize((2, 0, 3), refcheck=False)"),
        Route("a = np.arange(10); a.resize(0, refcheck=False); a.resize(11, refcheck=False)"),
        Route("a = np.empty(0); a.resize(5, refcheck=False)"),
        Route("a = np.empty(0); a.resize((3, 0), refcheck=False)"),
        Route("a = np.array([None, 'x', 1.5], object); a.resize(9, refcheck=False)"),
        Route("a = np.ones(1, 'u1')\nfor n in range(2, 40): a.resize(n, refcheck=False)"),
        Route("a = np.ones(5000)\n"
              "for n in (4999, 8, 9000, 3, 200000, 1): a.resize(n, refcheck=False)"),
    ],
    "fromiter": [
        Route("np.fromiter((x for x in range(5)), 'i8')"),
        Route("np.fromiter((x for x in range(1000)), 'i8')"),
        Route("np.fromiter(iter('abc'), 'S1')"),
        Route("np.fromiter(range(100), 'f4', count=40)"),
        Route("np.fromiter((), 'i8')"),
        Route("np.fromiter(Hinted(0), 'i8')"),
        Route("np.fromiter(Hinted(0), 'c16')"),
        Route("np.fromiter(Hinted(3), 'i8')"),
        Route("np.fromiter(Hinted(20), 'i8')"),
        Route("np.fromiter(range(3), 'i8', count=9)", ValueError),
        Route("np.fromiter((1 // (x - 50) for x in range(99)), 'i8')", ZeroDivisionError),
    ],
    "fromfile": [
        Route("with file_with(bytes(40)) as f: np.fromfile(f, 'i8', count=5)"),
        Route("with file_with(bytes(40)) as f: np.fromfile(f, 'i8', count=9)"),
        Route("with file_with(bytes(40)) as f: np.fromfile(f, 'i8', offset=8)"),
        Route("with file_with(b'') as f: np.fromfile(f, 'i8', count=4)"),
        Route("with file_with(b'') as f: np.fromfile(f, 'c16', count=4)"),
        Route("with file_with(b'') as f: np.fromfile(f, '(3,)i4', count=4)"),
        Route("with file_with(b'') as f: np.fromfile(f, 'i8')"),
    ],
    "text": [
        Route("np.fromstring('1 2 3', sep=' ')"),
        Route("np.fromstring('5,6,7', 'i4', sep=',')"),
        Route("np.fromstring(' '.join(['1'] * 5000), sep=' ')"),
        Route("np.fromstring(' '.join(['1'] * 4096), sep=' ')"),
        Route("np.fromstring('1 2', count=2, sep=' ')"),
        Route("np.fromstring('', sep=' ')"),
        Route("np.fromstring('', 'i4', sep=' ')"),
        Route("np.fromstring('x', sep=' ')", ValueError),
        Route("np.fromstring('5,6,x', 'c16', sep=',')", ValueError),
        Route("with file_with(b'1.5 2.5 4') as f: np.fromfile(f, sep=' ')"),
        Route("with file_with(b'') as f: np.fromfile(f, sep=' ')"),
        Route("with file_with(b'') as f: np.fromfile(f, sep=' ', count=4)"),
        Route("np.loadtxt(io.StringIO('1 2\\n3 4\\n'))"),
        Route("np.loadtxt(['%d %d' % (i, 3 * i) for i in range(600)])"),
        Route("np.loadtxt(['1 2'] * 300, dtype='i4', max_rows=250)"),
        Route("np.loadtxt(io.StringIO('1 2\\n3 x\\n'))", ValueError),
        Route("np.loadtxt(io.StringIO(''))"),
    ],
    "pickle": [
        Route("pickle.loads(pickle.dumps(np.arange(3), 2))"),
        Route("pickle.loads(pickle.dumps(np.arange(3), 5))"),
        Route("pickle.loads(pickle.dumps(np.arange(2000.0), 2))"),
        Route("pickle.loads(pickle.dumps(np.arange(9, dtype='>i4'), 2))"),
        Route("pickle.loads(pickle.dumps(np.array([None, 'x'], object), 2))"),
        Route("copy.deepcopy(np.arange(9)), copy.deepcopy(np.array([[1], 'x'], object))"),
        Route("f = io.BytesIO(); np.save(f, np.arange(70)); f.seek(0); np.load(f)"),
        Route("a = np.arange(100); a.__setstate__((1, (4,), np.dtype('i8'), False, bytes(32)))"),
        Route("a = np.arange(3); a.__setstate__((1, (0,), np.dtype('i8'), False, b''))"),
        Route("a = np.arange(3); a.__setstate__((1, (2,), np.dtype('O'), False, ['x', None]))"),
    ],
    "sort": [
        Route("shuffled(5).sort()"),
        Route("shuffled(200).sort(kind='stable')"),
        Route("shuffled(20, '>i8').sort()"),
        Route("shuffled(20)[::2].sort()"),
        Route("shuffled(60).reshape(6, 10).sort(axis=0)"),
        Route("np.zeros(41, 'u1')[1:].view('i8').sort()"),
        Route("shuffled(20)[::-1].partition(5)"),
        Route("np.partition(shuffled(21), 10)"),
        Route("np.median(shuffled(21)), np.percentile(shuffled(21), 30)"),
        Route("np.unique(shuffled(21) % 7)"),
        Route("np.sort(shuffled(21, 'U3')), np.sort(shuffled(21, 'S7')[::2])"),
        Route("a = np.array(list('badc'), object); a.sort(); a[::2].sort()"),
        Route("np.searchsorted(np.arange(9), [3, 5], sorter=np.arange(9))"),
    ],
    "argsort": [
        Route("np.arange(5).argsort()"),
        Route("shuffled(200).argsort(kind='stable')"),
        Route("shuffled(6).reshape(2, 3).argsort(axis=0)"),
        Route("shuffled(20)[::-3].argsort()"),
        Route("shuffled(20, '>i4').argsort()"),
        Route("shuffled(20).argpartition(5), shuffled(20)[::2].argpartition(5)"),
        Route("np.lexsort((shuffled(20), shuffled(20) % 7))"),
        Route("np.array(list('badc'), object)[::2].argsort()"),
    ],
    "records": [
        Route("records(2).sort()"),
        Route("records(12).sort()"),
        Route("records(12)[::2].sort()"),
        Route("records(12).argsort(order='y')"),
        Route("np.unique(records(6))"),
        # a block of no bytes; a NumPy 2 that is built with its assertions stops there
        Route("np.zeros(3, [('x', 'i1'), ('y', 'U0')]).sort()", until=(2, 0)),
    ],
    "strings": [
        Route("np.zeros(10, 'T')", since=(2, 0)),
        Route("np.array(['a', 'a string of some length, more than fits', ''], 'T')", since=(2, 0)),
        Route("np.array(list('badc'), 'T')[::2].sort()", since=(2, 0)),
        Route("a = np.array(list('badc'), 'T'); a.resize(2, refcheck=False)", since=(2, 0)),
        Route("pickle.loads(pickle.dumps(np.array(list('badc'), 'T')))", since=(2, 0)),
    ],
    "no memory": [
        out("np.empty(10)", 1),
        out("np.empty(0)", 1),
        out("np.zeros(10)", 1),
        out("np.empty(4, object)", 1),
        out("a = np.arange(10); a + 1", 2),
        out("a = np.arange(10); a.resize(100, refcheck=False)", 2),
        out("a = np.arange(10); a.resize(3, refcheck=False)", 2),
        out("np.fromiter((x for x in range(50)), 'i8')", 2),
        out("np.fromiter((x for x in range(50)), 'i8')", 3),
        out("with file_with(bytes(40)) as f: np.fromfile(f, 'i8', count=9)", 2),
        out("np.fromstring('1 2 3', sep=' ')", 2),
        out("np.fromstring(' '.join(['1'] * 5000), sep=' ')", 2),
        out("np.fromstring(' '.join(['1'] * 5000), sep=' ')", "2 and on"),
        out("np.fromstring(' '.join(['1'] * 5000), sep=' ')", 3),
        out("np.loadtxt(io.StringIO('1 2\\n3 4\\n'))", 1),
        out("np.loadtxt(io.StringIO('1 2\\n3 4\\n'))", 2),
        out("d = pickle.dumps(np.arange(3), 2); pickle.loads(d)", 3),
        out("a = np.arange(9); a.__setstate__((1, (4,), np.dtype('i8'), False, bytes(32)))", 2),
        out("shuffled(20)[::2].sort()", 2, but=CRASH),
        out("shuffled(20, '>i8').sort()", 2, but=CRASH),
        out("shuffled(20)[::2].partition(5)", 3, but=CRASH),
        out("shuffled(20)[::2].argsort()", 3, but=CRASH),
        out("shuffled(6).reshape(2, 3).argsort(axis=0)", 4, but=CRASH),
        out("shuffled(20).argsort()", 2),
    ],
}


def main():
    gc.disable()
    warnings.simplefilter("ignore")
    for group, routes in GROUPS.items():
        for route in routes:
            if route.there:
                route.run(group)
    _conform_exec.begin_part("the interpreter's end")


main()
