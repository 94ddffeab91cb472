# SPDX-License-Identifier: BSD-3-Clause
"""Everything that the program embed_demo can do, a part at a time.

    embed_demo [demo.py [POINTS [PICTURE]]]

The module `host` is the program itself.  Each of its functions calls one of these here, watches
what becomes of the memory, and prints a line that says whether that was right.
"""

import importlib.util
import io
import math
import sys
import threading
import tracemalloc

import host
import numpy as np

THREADS = 4

# NumPy 1.22 has it under another name.
from_dlpack = getattr(np, "from_dlpack", None) or np._from_dlpack


def odd_ways():
    """What a handler is asked for beside malloc and free; see what the table at the end says."""
    row = np.fromiter((0.1 * i for i in range(1000)), float)  # grows by realloc
    text = " ".join(map(repr, row.tolist()))
    parsed = np.fromstring(text, sep=" ")  # realloc, without the GIL
    loaded = np.loadtxt(io.StringIO(text))  # realloc, from NumPy 1.23 on
    if not (np.array_equal(row, parsed) and np.array_equal(row, loaded)):
        raise ValueError("numbers are not what they were before they were text")
    np.argsort(row)  # frees a NULL
    np.fromstring("", sep=" ")  # gives back another size than it asked for


class Neighbours:
    """Threads, each with arrays of its own, that change and drop each other's."""

    def __init__(self, count):
        self.barrier = threading.Barrier(count)
        self.arrays = [None] * count

    def run(self, rank, count):
        # These are made by this thread's handler, whoever changes them later.
        mine = self.arrays[rank] = [np.full(2000 * (rank + 1), rank, float) for _ in range(8)]
        self.barrier.wait()
        other = self.arrays[(rank + 1) % count]
        other.pop()  # freed in a thread that is not its own
        other[0].resize(9000, refcheck=False)  # and moved in one
        self.barrier.wait()
        # What comes of another's array is this thread's own.
        return mine + [2 * other[1], np.sort(other[2][::-1])]


def doubled(array):
    """The array is over memory of C's; a view of it is enough to keep that alive."""
    array *= 2
    return array[::2]


def made_here():
    return np.linspace(0, 1, 5000)


def exchange():
    host.lend("capsule", doubled)
    host.borrow("capsule", made_here)
    host.lend("dlpack", from_dlpack, dlpack=True)
    host.borrow("dlpack", made_here, dlpack=True)


def through_torch():
    """To torch and back again, in both directions, with the same memory all the way."""
    if importlib.util.find_spec("torch") is None:
        host.skip("torch", "PyTorch is not installed")
        return
    import torch

    host.lend("torch", lambda loan: from_dlpack(torch.from_dlpack(loan)), dlpack=True)
    host.borrow("torch", lambda: torch.from_numpy(made_here()), dlpack=True)
    host.borrow("torch", lambda: from_dlpack(torch.from_dlpack(made_here())))


def traced(rank, count):
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
        host.compare("traced", [trace.size for trace in snapshot.traces])
        for entry in snapshot.statistics("lineno"):
            where = entry.traceback[0]
            print(f"{'':17}{entry.size:8} bytes, {entry.count} block, by line {where.lineno}")
        return [grid, line, total]
    finally:
        tracemalloc.stop()


class Pool:
    """The wave equation, by explicit steps, on strips of the pool: a thread for each.

    Each strip is a few rows of the grid, and has a row more at either end, which is a copy of its
    neighbour's outermost.  It lies in the arena of its thread, who alone writes to it.
    """

    def __init__(self, count):
        self.barrier = threading.Barrier(count)
        self.strips = [None] * count

    def solve(self, rank, count, modes, until, field, progress):
        points = len(field)
        first, last = points * rank // count, points * (rank + 1) // count
        distance = 1 / (points + 1)
        steps = math.ceil(until / (0.7 * distance))  # up to 0.707 would be stable
        ratio = (until / steps / distance) ** 2

        # What is true of the water now, and of the step before.  It begins at rest.
        before = start(modes, points, first, last)
        now = before.copy()
        now[1:-1, 1:-1] += ratio / 2 * curvature(before)
        self.strips[rank] = [now, before]
        for step in range(1, steps):
            self.barrier.wait()
            if rank > 0:
                now[0] = self.strips[rank - 1][(step + 1) % 2][-2]
            if rank < count - 1:
                now[-1] = self.strips[rank + 1][(step + 1) % 2][1]
            # In place: the step before becomes the step to come.
            bend = curvature(now)
            bend *= ratio
            bend += now[1:-1, 1:-1]
            bend += now[1:-1, 1:-1]
            np.subtract(bend, before[1:-1, 1:-1], out=before[1:-1, 1:-1])
            now, before = before, now
            progress[rank] = step / steps

        field[first:last] = now[1:-1, 1:-1]  # into memory of the host's
        progress[rank] = 1
        return [now, before]


def start(modes, points, first, last):
    """The surface at the beginning, in the rows from `first` to `last` and one more at each end."""
    numbers = np.pi * np.arange(1, len(modes) + 1)[:, np.newaxis]
    x = np.arange(points + 2) / (points + 1)
    y = x[first : last + 2]
    return np.sin(numbers * y).T @ modes @ np.sin(numbers * x)


def curvature(u):
    """The five-point formula, inside of the outermost points, times the distance squared."""
    bend = u[1:-1, 1:-1] * -4.0
    bend += u[:-2, 1:-1]
    bend += u[2:, 1:-1]
    bend += u[1:-1, :-2]
    bend += u[1:-1, 2:]
    return bend


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
    kept = host.threads(
        "threads", neighbours.run, count=THREADS, abort=neighbours.barrier.abort
    )
    exchange()
    through_torch()
    host.threads("traced", traced, count=1)
    pool = Pool(THREADS)
    host.wave(
        pool.solve,
        points=int(points),
        count=THREADS,
        picture=picture,
        abort=pool.barrier.abort,  # or else threads would wait for one that has failed
    )
    return kept


if __name__ == "__main__":
    alive = [stay_alive(), main(*sys.argv[1:])]
