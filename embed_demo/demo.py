# SPDX-License-Identifier: BSD-3-Clause
"""Everything that the program embed_demo can do, a part at a time.

    embed_demo [demo.py [POINTS [PICTURE]]]

The module `host` is the program itself.  Most of its functions call one of these here, watch what
becomes of the memory, and print a line that says whether that was right.
"""

import io
import math
import os
import struct
import sys
import threading
import time
import tracemalloc
import zlib

import host
import numpy as np

THREADS = 4

# NumPy 1.22 has it under another name.
from_dlpack = getattr(np, "from_dlpack", None) or np._from_dlpack


def odd_ways():
    """What a handler is asked for beside malloc and free; see the line below the table."""
    row = np.fromiter((0.1 * i for i in range(1000)), float)  # grows by realloc
    text = " ".join(map(repr, row.tolist()))
    np.fromstring(text, sep=" ")  # realloc, without the GIL
    np.loadtxt(io.StringIO(text))  # realloc, from NumPy 1.23 on
    np.argsort(row)  # frees a NULL
    np.fromstring("", sep=" ")  # gives back another size than it asked for


class Neighbours:
    """Threads, each with arrays of its own, that change and drop each other's."""

    def __init__(self, count):
        self.count = count
        self.barrier = threading.Barrier(count)
        self.arrays = [None] * count

    def run(self, rank):
        # These are made by this thread's handler, whoever changes them later.
        mine = self.arrays[rank] = [np.full(2000 * (rank + 1), rank, float) for _ in range(8)]
        self.barrier.wait()
        other = self.arrays[(rank + 1) % self.count]
        other.pop()  # freed in a thread that is not its own
        other[0].resize(9000, refcheck=False)  # and moved in one
        self.barrier.wait()
        # What comes of another's array is this thread's own.
        return mine + [2 * other[1], np.sort(other[2][::-1])]


class Tensor:
    """What from_dlpack() wants of an object: two methods, the first of which gives a capsule."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, copy=None, **what_newer_callers_ask):
        if copy:
            raise BufferError("it is not copied")
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0  # the CPU


def doubled(array):
    """The array is over memory of C's; a view of it is enough to keep that alive."""
    array *= 2
    return array[::2]


def made_here():
    return np.linspace(0, 1, 5000)


def exchange():
    host.lend("capsule", doubled)
    host.borrow("capsule", made_here)
    host.lend("dlpack", lambda capsule: from_dlpack(Tensor(capsule)), True)
    host.borrow("dlpack", made_here, True)


def traced(rank):
    """tracemalloc, asked for what NumPy told it, as NumPy's documentation shows."""
    tracemalloc.start()
    try:
        grid = np.zeros((300, 500))
        squares = [i**2 for i in range(30000)]  # Python's own memory, which is not NumPy's
        line = np.arange(1000.0)
        line.resize(3000, refcheck=False)
        total = grid.sum(axis=0) + len(squares)
        only_numpy = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
        snapshot = tracemalloc.take_snapshot().filter_traces([only_numpy])
    finally:
        tracemalloc.stop()
    claim_traced(len(snapshot.traces), sum(trace.size for trace in snapshot.traces))
    for entry in snapshot.statistics("lineno"):
        print(f"{entry.size:25} bytes, {entry.count} block, by line {entry.traceback[0].lineno}")
    return [grid, line, total]


def claim_traced(blocks, size):
    live = host.live()
    text = f"tracemalloc sees {blocks} blocks of {size} bytes, the host {live[0]} of {live[1]}"
    host.claim("traced", live == (blocks, size), text)


# Three drops fall into a square pool: where, how high the water stands there, and how wide.
DROPS = ((0.31, 0.64, 1.0, 0.024), (0.72, 0.30, 0.8, 0.020), (0.66, 0.80, 0.6, 0.016))
UNTIL = 0.36  # when we look

# The surface is a sum over m and n of a[m, n] sin(m pi y) sin(n pi x), and each of the terms swings
# with a frequency of its own, for ever.
WAVES = np.pi * np.arange(1, 97)
FREQUENCIES = np.hypot(WAVES[:, np.newaxis], WAVES)


def terms_at_rest():
    """The a[m, n] of a drop are those of the curvature of a bell: a dent with a wall around it."""
    terms = np.zeros_like(FREQUENCIES)
    for x, y, height, width in DROPS:
        bell = math.sqrt(8 * math.pi) * width * np.exp(-((WAVES * width) ** 2) / 2)
        bells = np.outer(bell * np.sin(WAVES * y), bell * np.sin(WAVES * x))
        terms += height / 2 * (FREQUENCIES * width) ** 2 * bells
    return terms


def surface(terms, points, first=0, last=None):
    """The surface in the rows from `first` to `last`, and one more row or column at each end."""
    x = np.arange(points + 2) / (points + 1)
    y = x[first:] if last is None else x[first : last + 2]
    return np.sin(np.outer(y, WAVES)) @ terms @ np.sin(np.outer(WAVES, x))


def curvature(u):
    """The five-point formula, inside of the outermost points, times the distance squared."""
    bend = u[1:-1, 1:-1] * -4.0
    bend += u[:-2, 1:-1]
    bend += u[2:, 1:-1]
    bend += u[1:-1, :-2]
    bend += u[1:-1, 2:]
    return bend


class Pool:
    """The wave equation, by explicit steps, on strips of the pool: a thread for each.

    Each strip is a few rows of the grid, and has a row more at either end, which is a copy of its
    neighbour's outermost.  It lies in the arena of its thread, who alone writes to it.
    """

    def __init__(self, points, count):
        self.points, self.count = points, count
        self.barrier = threading.Barrier(count)
        self.strips = [None] * count
        self.terms = terms_at_rest()
        self.field = np.full((points, points), np.nan)  # where the result goes

    def solve(self, rank):
        first, last = (self.points * i // self.count for i in (rank, rank + 1))
        distance = 1 / (self.points + 1)
        steps = math.ceil(UNTIL / (0.7 * distance))  # up to 0.707 would be stable
        ratio = (UNTIL / steps / distance) ** 2

        # What is true of the water now, and of the step before.  It begins at rest.
        before = surface(self.terms, self.points, first, last)
        now = before.copy()
        now[1:-1, 1:-1] += ratio / 2 * curvature(before)
        self.strips[rank] = [now, before]
        for step in range(1, steps):
            self.barrier.wait()
            if rank > 0:
                now[0] = self.strips[rank - 1][(step + 1) % 2][-2]
            if rank < self.count - 1:
                now[-1] = self.strips[rank + 1][(step + 1) % 2][1]
            # In place: the step before becomes the step to come.
            bend = curvature(now)
            bend *= ratio
            bend += now[1:-1, 1:-1]
            bend += now[1:-1, 1:-1]
            np.subtract(bend, before[1:-1, 1:-1], out=before[1:-1, 1:-1])
            now, before = before, now
        self.field[first:last] = now[1:-1, 1:-1]
        return [now, before]

    def run(self):
        """Solves it, and claims that the error is what the theory of the five-point formula allows.

        On a grid each of the terms is a sine still, which swings a little late.  At the worst place
        the errors of all terms add up; in the mean each counts by its square, of which a product of
        two sines has a quarter.
        """
        began = time.perf_counter()
        room = (16 * self.field.nbytes // self.count) + (4 << 20)
        results = host.threads("wave", self.solve, self.count, room, self.barrier.abort)
        seconds = time.perf_counter() - began

        exact = surface(self.terms * np.cos(FREQUENCIES * UNTIL), self.points)[1:-1, 1:-1]
        error = np.abs(self.field - exact)
        mean, worst = math.sqrt((error**2).mean()), error.max()
        grid = 2 * (self.points + 1) * np.sin(WAVES / 2 / (self.points + 1))
        late = (FREQUENCIES - np.hypot(grid[:, np.newaxis], grid)) * UNTIL
        off = np.abs(self.terms) * np.minimum(late, 2)
        may_mean, may_worst = math.sqrt((off**2).sum()) / 2, off.sum()
        text = f"{self.points} x {self.points} points, {self.count} threads, {seconds:.2f} s: "
        text += f"error {mean:.1e} (allowed {may_mean:.1e}), at worst {worst:.1e} ({may_worst:.1e})"
        host.claim("wave", mean <= may_mean and worst <= may_worst, text)
        return results


def painted(field):
    """The surface from trough to crest, lit from the top left, as red, green and blue."""
    highest = np.quantile(np.abs(field), 0.998)
    height = np.clip(field / highest, -1, 1)
    level = np.sign(height) * np.abs(height) ** 0.75  # small waves would be lost beside large ones
    stops = (-1, -0.4, 0, 0.4, 1)
    colours = (34, 44, 66, 120, 240), (12, 62, 118, 190, 250), (72, 140, 160, 176, 224)
    down, right = (slope * len(field) / 5 for slope in np.gradient(field))
    light = 0.55 + 0.45 * (right / 1.5 + down / 1.25 + 1) / np.sqrt(right**2 + down**2 + 1)
    shades = [light * np.interp(level, stops, colour) for colour in colours]
    return np.clip(np.stack(shades, axis=2), 0, 255).astype(np.uint8)


def draw(field, path):
    """A PNG file: each part of it is its length, its name, its bytes, and a sum over both."""
    side = len(field)
    pixels = painted(field)
    pixels[1:] -= pixels[:-1].copy()  # filter 2: what each row has more than the one above it
    rows = b"".join(b"\2" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    try:
        with open(path + ".part", "wb") as file:  # nobody ever finds half of a picture
            file.write(b"\x89PNG\r\n\x1a\n")
            for name, data in parts:
                file.write(struct.pack(">I", len(data)) + name + data)
                file.write(struct.pack(">I", zlib.crc32(name + data)))
        os.replace(path + ".part", path)
        host.claim("picture", True, path)
    except OSError as error:
        host.claim("picture", False, f"{path}: {error.strerror}")
        if os.path.exists(path + ".part"):
            os.remove(path + ".part")


def stay_alive():
    """Arrays that nobody frees before the interpreter does, in its last moments."""
    loop = [np.ones(20000)]
    loop.append(loop)
    sys.kept = np.ones(30000)
    np.kept = np.array([np.ones(40000), None], object)
    return loop


def main(points=768, picture="wave.png"):
    odd_ways()
    neighbours = Neighbours(THREADS)
    # Where one thread raises, the others would wait for it for ever, but for `abort`.
    kept = host.threads("threads", neighbours.run, THREADS, abort=neighbours.barrier.abort)
    exchange()
    host.threads("traced", traced, 1)
    pool = Pool(int(points), THREADS)
    pool.run()
    draw(pool.field, picture)
    return kept


if __name__ == "__main__":
    alive = [stay_alive(), main(*sys.argv[1:])]
