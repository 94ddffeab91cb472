# SPDX-License-Identifier: BSD-3-Clause
"""Measures handlers in rounds, and prints the result as text, JSON and HTML.

conform starts a process for each handler and runs this module, which sends tasks to these processes
(src/bench/bench.c runs them).  In each round all handlers do the same work one after the other, so
that the load of the machine affects all of them.  The result is the ratio to NumPy's default
handler in the same round.
"""

import math
import os
import select
import statistics
import struct
import time

from . import bench_page
from .bench_page import KIB, MIB, size_words

LEAST_ROUNDS, MOST_ROUNDS = 3, 25
# struct task and struct answer of src/bench/bench.h
TASK, ANSWER = struct.Struct("5Q"), struct.Struct("8d")
(MALLOC, CALLOC, REALLOC, REPLAY, LATENCY, FOOTPRINT, LONG_REPLAY, ADD, ZEROS, RESIZE, THREADS,
 HANDOVER) = range(12)  # fmt: skip


# Group, title, unit ("s" for a time), work, and threads or which figure of the work or program.
# The footprints come first, while the heap is new.
FOOTPRINTS = [
    ("footprint", "resident memory over what is live", "", FOOTPRINT, 0),
    ("footprint", "page faults for each MiB that is asked for", "", FOOTPRINT, 1),
    ("footprint", "resident over live, a long replay of programs", "", LONG_REPLAY, 0),
    ("footprint", "page faults for each MiB of that replay", "", LONG_REPLAY, 1),
]
BY_SIZE = [
    ("malloc", "malloc and free", "s", MALLOC),
    ("calloc", "calloc and free", "s", CALLOC),
    ("realloc", "realloc to twice the size and back", "s", REALLOC),
    ("add", "a + a", "s", ADD),
    ("zeros", "numpy.zeros", "s", ZEROS),
    ("resize", "a.resize to twice the size and back", "s", RESIZE),
]
OTHERS = [
    ("replay", "the calls of NumPy's whole API", "s", REPLAY, 0),
    ("replay", "the calls of a simulation with NumPy", "s", REPLAY, 1),
    ("replay", "the calls of a program with SciPy", "s", REPLAY, 2),
    ("replay", "the calls of a program with pandas", "s", REPLAY, 3),
    ("replay", "the calls of a program with scikit-learn", "s", REPLAY, 4),
    ("latency", "a call, the median", "s of a call", LATENCY, 0),
    ("latency", "a call, 99 of 100", "s of a call", LATENCY, 1),
    ("latency", "a call, 999 of 1000", "s of a call", LATENCY, 2),
    ("latency", "a call, the worst", "s of a call", LATENCY, 3),
]


class Cell:
    """One row of the result.  Cells with the same key are measured at once."""

    def __init__(self, group, title, unit, work, figure=0, size=0, threads=1, turn=0):
        self.group, self.title, self.unit, self.work = group, title, unit, work
        self.figure, self.size, self.threads = figure, size, threads
        self.key = turn, work, size, threads, figure if work == REPLAY else 0
        self.rounds, self.noisy, self.handlers = 0, False, []


def cells(quick):
    """Every fourth size is measured first, so that each group has results if the time runs out."""
    with open("/proc/meminfo") as file:
        memory = next(int(line.split()[1]) * KIB for line in file if "MemAvailable" in line)
    factor, most = (64, 4 * MIB) if quick else (4, 256 * MIB)
    sizes = [16 * factor**i for i in range(16) if 16 * factor**i <= min(most, memory // 4)]
    chosen = [Cell(*row) for row in FOOTPRINTS]
    for row in BY_SIZE:
        chosen += [Cell(*row, size=size, turn=2 if i % 2 else 1 if i % 4 else 0)
                   for i, size in enumerate(sizes)]  # fmt: skip
    for threads in (1, 2, 4, 8, 16, 32, 64):
        if threads <= max(4, os.cpu_count()):
            title = "a + a on %d thread%s" % (threads, "s" * (threads > 1))
            chosen.append(Cell("threads", title, "s", THREADS, size=MIB, threads=threads))
    title = "64 made by one thread, dropped by another"
    chosen.append(Cell("handover", title, "s", HANDOVER, size=4 * KIB, threads=2))
    return chosen + [Cell(*row) for row in OTHERS]


class Lost(Exception):
    """A handler's process ended, hung or refused a request: its number, the verdict, why, when."""


class Bench:
    """A measurement.  commands/bench.c writes the options."""

    def __init__(self, options):
        self.options, self.processes = options, options["processes"]
        self.limit = options["limit"] or math.inf
        self.cells = cells(options["quick"])
        self.begun = self.cell_begun = time.monotonic()

    def ask(self, subject, cell, times):
        """Returns wall and processor seconds, page faults, and the figures of a task."""
        process = self.processes[subject]
        when = "in " + cell.title + (" of " + size_words(cell.size) if cell.size else "")
        try:
            task = cell.work, cell.size, cell.threads, cell.figure, times
            os.write(process["to"], TASK.pack(*task))
            if not select.select([process["from"]], [], [], process["limit"])[0]:
                raise Lost(subject, "TIMEOUT", "no end after %.3g s" % process["limit"], when)
            answer = os.read(process["from"], ANSWER.size)
        except BrokenPipeError:
            answer = b""
        if len(answer) < ANSWER.size:
            raise Lost(subject, "CRASH", "", when)
        wall, processor, faults, *figures, refused = ANSWER.unpack(answer)
        if refused:
            raise Lost(subject, "FAIL", "refused " + when, "")
        return wall, processor, faults, figures

    def is_over(self):
        return time.monotonic() - self.begun > self.limit

    def is_late(self):  # a slow cell does not take the time of the others
        return self.is_over() or time.monotonic() - self.cell_begun > self.limit / 7

    def times_for(self, subject, cell, seconds):
        """Returns how often the handler does the work in that time."""
        if cell.unit != "s":  # once; a footprint is that of a new heap, and is not warmed up
            if cell.work == LATENCY:
                self.ask(subject, cell, 1)
            return 1
        times = 1
        while True:
            wall = self.ask(subject, cell, times)[0]
            if wall >= seconds / 2 or times >= 2**32 or self.is_late():
                return times
            times = int(max(times * min(seconds / max(wall, 1e-9), 100), times + 1))

    def measure(self, group, seconds):
        """Measures cells of one key.  If the time is over before three rounds, they have none."""
        cell, count = group[0], len(self.processes)
        self.cell_begun = time.monotonic()
        # Threads that wait for the GIL may wait for its switch interval of 5 ms.
        turn = max(seconds / (count + 1) / 12, 0.04 if cell.threads > 1 else 5e-4)
        times = [self.times_for(i, cell, turn) for i in range(count)]
        rounds = []
        while len(rounds) < LEAST_ROUNDS or (
            len(rounds) < MOST_ROUNDS and time.monotonic() - self.cell_begun < seconds
        ):
            answers = {}
            for i in range(count):
                subject = (i + len(rounds)) % count
                if self.is_late() and len(rounds) < LEAST_ROUNDS:
                    return
                answers[subject] = self.ask(subject, cell, times[subject])
            rounds.append(answers)
        for one in group:
            conclude(one, times, rounds)

    def stay_on_core(self, one):
        """Keeps what is on one thread on one core: the caches of another are cold."""
        cores = os.sched_getaffinity(0)
        for process in self.processes:
            try:
                os.sched_setaffinity(process["pid"], {max(cores)} if one else cores)
            except ProcessLookupError:
                pass  # it has ended, which the next task shows

    def run(self):
        groups = {}
        for cell in self.cells:
            groups.setdefault(cell.key, []).append(cell)
        left = len(self.cells)
        for _, group in sorted(groups.items(), key=lambda item: item[0][0]):
            if self.is_over():
                break
            self.stay_on_core(group[0].threads == 1)
            rest = self.options["seconds"] - (time.monotonic() - self.begun)
            self.measure(group, max(rest, 0) * len(group) / left)
            left -= len(group)
        return self.result()

    def result(self):
        measured = [cell for cell in self.cells if cell.rounds]
        members = "group", "title", "unit", "size", "threads", "rounds", "noisy", "handlers"
        return {
            "format": "conform-bench-1",
            **{key: self.options[key] for key in ("conform", "python")},
            "machine": machine(),
            "handlers": [process["label"] for process in self.processes],
            "seconds": time.monotonic() - self.begun,
            "noisy": sum(cell.noisy for cell in measured),
            "left_out": len(self.cells) - len(measured),
            "cells": [{key: getattr(cell, key) for key in members} for cell in measured],
        }


def machine():
    with open("/proc/cpuinfo") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    load = "%d cores, load %.1f" % (os.cpu_count(), os.getloadavg()[0])
    return ", ".join([*models[:1], load])


def conclude(cell, times, rounds):
    """Fills the cell from all rounds: values, and ratios to the default handler, the first."""

    def values(subject):
        if cell.unit == "s":
            return [answers[subject][0] / times[subject] for answers in rounds]
        return [answers[subject][3][cell.figure] for answers in rounds]

    def eighths(values):
        return statistics.quantiles(values, n=8, method="inclusive")

    first = values(0)
    _, quarter, _, middle, _, three_quarters, _ = eighths(first)
    cell.rounds, cell.noisy = len(rounds), three_quarters - quarter > 0.1 * middle
    for i, count in enumerate(times):
        ratios = eighths([own / max(beside, 1e-12) for own, beside in zip(values(i), first)])
        used = [a[i][1] / max(a[0][1], 1e-9) * times[0] / count for a in rounds]
        cell.handlers.append({
            "value": statistics.median(values(i)),
            "ratio": ratios[3],
            "low": ratios[0],
            "high": ratios[6],
            "processor_ratio": statistics.median(used),
            "faults": statistics.median(a[i][2] / count for a in rounds),
        })  # fmt: skip


def run(options):
    """Measures, prints the table unless options say quiet, and returns what --json writes.

    If a handler is lost, the value has what Lost has.
    """
    try:
        bench = Bench(options).run()
    except Lost as lost:
        return dict(zip(("lost", "verdict", "why", "when"), lost.args))
    if not options["quiet"]:
        bench_page.print_table(bench)
    return bench
