# SPDX-License-Identifier: BSD-3-Clause
"""embed_demo demo.py [POINTS [PICTURE]]: shows what that program can do; `host` is the program."""

import gc
import math
import struct
import sys
import threading
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor, as_completed

import host
import numpy as np

THREADS = 4
from_dlpack = getattr(np, "from_dlpack", None) or np._from_dlpack  # NumPy 1.22's name


def unusual_calls():
    """Calls that a handler gets besides malloc and free of the right size."""
    row = np.fromiter((0.1 * i for i in range(1000)), float)  # grows by realloc
    text = " ".join(map(repr, row.tolist()))
    np.fromstring(text, sep=" ")  # realloc, without the GIL
    np.argsort(row)  # free(NULL)
    np.fromstring("", sep=" ")  # free with a size that was not asked for


def threads(name, function, count=THREADS, room=1 << 24, abort=lambda: None):
    """Calls function(rank) in threads with an arena each; it returns arrays, which are checked."""
    def work(rank):
        host.own_arena(f"{name} {rank}", room)
        return function(rank)

    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(work, rank) for rank in range(count)]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            abort()  # or threads could wait for each other forever
            raise
    results = [future.result() for future in futures]
    counts = zip(*(host.counts(f"{name} {rank}") for rank in range(count)))
    _, _, requested, peak, wrong = map(sum, counts)
    host.check(name, not wrong, f"{count} thread(s) requested {requested / 1e6:.1f} MB, at most "
               f"{peak / 1e6:.1f} MB at once, {'NOT ' * bool(wrong)}all in their own arenas")
    owned = [host.owner(array.ctypes.data) == f"{name} {rank}"
             for rank, arrays in enumerate(results) for array in arrays]
    host.check(name, all(owned), f"{len(owned)} arrays outlive their threads, {sum(owned)} in the "
               "arena of their thread")
    return results


def neighbours():
    """Threads that resize and free arrays of each other."""
    barrier, made = threading.Barrier(THREADS), [None] * THREADS

    def work(rank):
        mine = made[rank] = [np.full(2000 * (rank + 1), rank, float) for _ in range(8)]
        barrier.wait()
        other = made[(rank + 1) % THREADS]
        other.pop()  # freed by a thread that did not make it
        other[0].resize(9000, refcheck=False)  # and moved: both by the handler that made them
        barrier.wait()
        return mine + [2 * other[1], np.sort(other[2][::-1])]  # these are this thread's own

    return threads("threads", work, abort=barrier.abort)


def lend(name, use, dlpack=False):
    """From C to Python: use() gets an array, or a capsule, and returns an array."""
    numbers = host.lend(False)  # another array over the same memory of C
    numbers[:] = np.arange(1000)
    array = use(host.lend(dlpack))
    same = np.array_equal(numbers, np.arange(1000) * (1 if dlpack else 2))
    kept = host.borrowers() == 2 and np.shares_memory(array, numbers)
    del array
    gc.collect()
    left = host.borrowers() - 1
    host.check(name, same and kept and not left, "C to Python: 1000 numbers, "
               f"{'' if same else 'NOT '}{'read' if dlpack else 'doubled in place'}, "
               f"{'' if kept else 'NOT '}kept alive by Python, {'NOT ' * bool(left)}released")


def borrow(name, make, dlpack=False):
    """From Python to C: after this, C alone holds the array that make() returns."""
    loan = host.borrow(make().__dlpack__() if dlpack else make())
    before, address = host.sum(loan)
    gc.collect()
    same = host.sum(loan)[0] == before
    owner = host.owner(address)
    del loan
    freed = host.owner(address) is None
    host.check(name, owner == "main" and same and freed, "Python to C: "
               f"{'' if owner else 'NOT '}a block of the handler, {'' if same else 'NOT '}alive "
               f"while C used it, {'' if freed else 'NOT '}freed afterwards")


def traced(rank):
    """tracemalloc in a thread, with the example of NumPy's documentation."""
    tracemalloc.start()
    kept = [np.zeros((300, 500)), np.arange(1000.0)]
    kept[1].resize(3000, refcheck=False)
    only_numpy = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    traces = tracemalloc.take_snapshot().filter_traces([only_numpy]).traces
    tracemalloc.stop()
    seen, counts = (len(traces), sum(trace.size for trace in traces)), host.counts(f"traced {rank}")
    host.check("traced", seen == counts[:2], "tracemalloc reports %d blocks of %d bytes, the "
               "handler %d of %d" % (seen + counts[:2]))
    return kept


# Three drops fall into a square pool: where, how high the water stands there, and how wide.
DROPS = ((0.31, 0.64, 1.0, 0.024), (0.72, 0.30, 0.8, 0.020), (0.66, 0.80, 0.6, 0.016))
UNTIL = 0.36


def at_rest(points, first, last):
    """The surface at the beginning: each drop is a dent with a wall around it."""
    x = np.arange(points + 2) / (points + 1)
    y = x[first : last + 2, np.newaxis]
    rows = np.zeros((len(y), len(x)))
    for drop_x, drop_y, height, width in DROPS:
        r = ((x - drop_x) ** 2 + (y - drop_y) ** 2) / (2 * width**2)
        rows += height * (1 - r) * np.exp(-r)
    return rows


def wave(name, points, count):
    """The wave equation by explicit steps: the surface at UNTIL.  Each thread has a strip of the
    pool in its arena, with a copy of the neighbours' outermost rows."""
    barrier, strips = threading.Barrier(count), [None] * count
    field = np.full((points, points), np.nan)
    steps = math.ceil(UNTIL * (points + 1) / 0.7)  # up to 0.707 is stable
    ratio = (UNTIL / steps * (points + 1)) ** 2

    def change(u):
        bend = u[1:-1, 1:-1] * -4.0
        for neighbour in u[:-2, 1:-1], u[2:, 1:-1], u[1:-1, :-2], u[1:-1, 2:]:
            bend += neighbour
        bend *= ratio
        return bend

    def solve(rank):
        first, last = (points * i // count for i in (rank, rank + 1))
        before = at_rest(points, first, last)
        now = before.copy()
        now[1:-1, 1:-1] += change(before) / 2
        strips[rank] = [now, before]
        for step in range(1, steps):
            barrier.wait()
            if rank > 0:
                now[0] = strips[rank - 1][(step + 1) % 2][-2]
            if rank < count - 1:
                now[-1] = strips[rank + 1][(step + 1) % 2][1]
            bend = change(now)  # in place: `before` becomes the next step
            bend += now[1:-1, 1:-1]
            bend += now[1:-1, 1:-1]
            np.subtract(bend, before[1:-1, 1:-1], out=before[1:-1, 1:-1])
            now, before = before, now
        field[first:last] = now[1:-1, 1:-1]
        return [now, before]

    threads(name, solve, count, 40 * field.nbytes // count + (4 << 20), barrier.abort)
    return field


def draw(field, path):
    """Writes the surface as PNG: troughs are dark, crests bright, and light comes from the left."""
    height = np.clip(field / np.quantile(np.abs(field), 0.998), -1, 1)
    level = np.sign(height) * np.abs(height) ** 0.75  # so that small waves are visible
    light = 0.8 + len(field) / 12 * np.gradient(field, axis=1)
    colors = (34, 44, 66, 120, 240), (12, 62, 118, 190, 250), (72, 140, 160, 176, 224)
    shades = [light * np.interp(level, (-1, -0.4, 0, 0.4, 1), color) for color in colors]
    rows = np.clip(np.stack(shades, axis=2), 0, 255).astype(np.uint8)
    pixels = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows), 9)
    header = struct.pack(">IIBBBBB", len(field), len(field), 8, 2, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for name, data in (b"IHDR", header), (b"IDAT", pixels), (b"IEND", b""):
            crc = zlib.crc32(name + data)
            file.write(struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc))
    host.check("picture", True, path)


def main(points="768", picture="wave.png"):
    unusual_calls()
    kept = [neighbours()]
    lend("array", lambda array: np.multiply(array, 2, out=array)[::2])  # a view is enough
    lend("dlpack", lambda capsule: from_dlpack(type("OnCpu", (), {  # a read-only array
        "__dlpack__": lambda self, **options: capsule,
        "__dlpack_device__": lambda self: (1, 0)})()), True)
    borrow("array", lambda: np.linspace(0, 1, 5000))
    borrow("dlpack", lambda: np.linspace(0, 1, 5000), True)
    threads("traced", traced, 1)
    field, alone = wave("wave", int(points), THREADS), wave("alone", int(points), 1)
    same = np.array_equal(field, alone)
    host.check("wave", same, f"{points} x {points} points: {THREADS} threads and one thread "
               f"compute {'the same' if same else 'NOT the same'} surface")
    draw(field, picture)
    kept.append(kept)  # a cycle, which only the end of the interpreter frees
    sys.kept = [np.ones(30000), kept]


if __name__ == "__main__":
    main(*sys.argv[1:])
