# SPDX-License-Identifier: BSD-3-Clause
"""Measures handlers in rounds, for --bench.

conform starts a process for each handler (src/bench/bench.py) and runs this module, which sends
tasks to these processes.  In each round all handlers do the same work one after the other, so that
the load of the machine affects all of them.  The result is the ratio to NumPy's default handler in
the same round.
"""

import itertools
import json
import math
import os
import re
import select
import statistics
import time

from . import bench_page
from .bench_page import KIB, MIB, size_words

LEAST_ROUNDS, MOST_ROUNDS = 3, 25
# Seconds in which all is to be done, and after which the rest is left out.
QUICK_SECONDS, QUICK_LIMIT, USUAL_LIMIT = 9, 9.8, 59

# Titles by what is measured.  A unit of "s" is a time; other values are results of the task.
FOOTPRINTS = ("resident memory over what is live", "page faults for each MiB that is asked for",
              "resident over live, a long replay of programs",
              "page faults for each MiB of that replay")
BY_SIZE = {
    "malloc": "malloc and free",
    "calloc": "calloc and free",
    "realloc": "realloc to twice the size and back",
    "add": "a + a",
    "zeros": "numpy.zeros",
    "resize": "a.resize to twice the size and back",
}
PROGRAMS = {
    "numpy-2.5": "the calls of NumPy's whole API",
    "programs/simulate": "the calls of a simulation with NumPy",
    "programs/scientific": "the calls of a program with SciPy",
    "programs/tables": "the calls of a program with pandas",
    "programs/learning": "the calls of a program with scikit-learn",
}
LATENCIES = "a call, the median", "a call, 99 of 100", "a call, 999 of 1000", "a call, the worst"


class Cell:
    """One row of the result.  Cells with the same key are measured at once."""

    def __init__(self, work, title, unit="s", which=0, size=0, threads=1, turn=0, programs=()):
        self.row = {"group": work, "title": title, "unit": unit, "size": size, "threads": threads,
                    "rounds": 0, "noisy": False, "handlers": []}
        self.which, self.turn = which, turn
        self.key = work, size, threads, programs

    def conclude(self, times, rounds):
        """Fills the row: values, and ratios to the default handler, which is the first."""

        def values(i):
            if self.row["unit"] == "s":
                return [answers[i][0] / times[i] for answers in rounds]
            return [answers[i][3][self.which] for answers in rounds]

        def eighths(values):
            return statistics.quantiles(values, n=8, method="inclusive")

        first = values(0)
        _, quarter, _, middle, _, three_quarters, _ = eighths(first)
        self.row.update(rounds=len(rounds), noisy=three_quarters - quarter > 0.1 * middle)
        for i, count in enumerate(times):
            ratios = eighths([own / max(beside, 1e-12) for own, beside in zip(values(i), first)])
            used = [a[i][1] / max(a[0][1], 1e-9) * times[0] / count for a in rounds]
            self.row["handlers"].append({
                "value": statistics.median(values(i)),
                "ratio": ratios[3],
                "low": ratios[0],
                "high": ratios[6],
                "processor_ratio": statistics.median(used),
                "faults": statistics.median(a[i][2] / count for a in rounds),
            })  # fmt: skip


def cells(quick, folder):
    """The footprints come first, while the heap is new; then every fourth size, so that each group
    has results if the time runs out."""
    with open("/proc/meminfo") as file:
        memory = int(re.search(r"MemAvailable: *(\d+)", file.read())[1]) * KIB
    factor, most = (64, 4 * MIB) if quick else (4, 256 * MIB)
    sizes = [16 * factor**i for i in range(16) if 16 * factor**i <= min(most, memory // 4)]
    programs = tuple("%s/%s.trace" % (folder, name) for name in PROGRAMS)
    found = [Cell("footprint", title, "", i % 2, programs=programs if i > 1 else ())
             for i, title in enumerate(FOOTPRINTS)]
    found += [Cell(work, title, size=size, turn=2 if i % 2 else 1 if i % 4 else 0)
              for work, title in BY_SIZE.items() for i, size in enumerate(sizes)]
    found += [Cell("threads", "a + a on %d thread%s" % (count, "s" * (count > 1)), size=MIB,
                   threads=count)
              for count in (1, 2, 4, 8, 16, 32, 64) if count <= max(4, os.cpu_count())]
    found += [Cell("handover", "64 made by one thread, dropped by another", size=4 * KIB,
                   threads=2)]
    found += [Cell("replay", title, programs=(program,))
              for title, program in zip(PROGRAMS.values(), programs)]
    return found + [Cell("latency", title, "s of a call", i) for i, title in enumerate(LATENCIES)]


class Lost(Exception):
    """A handler's process ended, hung or refused a request: its number, the verdict, why, when, and
    the load_state if it did not load."""


class Bench:
    """A measurement.  src/commands/bench.c writes the options."""

    def __init__(self, options):
        self.options, self.processes = options, options["processes"]
        self.seconds, self.limit = options["seconds"], USUAL_LIMIT
        if options["time_is_given"]:
            self.limit = math.inf
        elif options["quick"]:
            self.seconds, self.limit = QUICK_SECONDS, QUICK_LIMIT
        limit = self.processes[0]["limit"]
        hellos = [self.answer(i, limit, "loading it") for i in range(len(self.processes))]
        for i, hello in enumerate(hellos):
            if hello["wrong"]:
                raise Lost(i, "CRASH", hello["wrong"], "", hello["state"])
        self.python = hellos[0]["python"]
        self.cells = cells(options["quick"], options["profiles"])
        self.begun = self.group_begun = time.monotonic()

    def answer(self, i, limit, when):
        pipe = self.processes[i]["from"]
        if not select.select([pipe], [], [], limit)[0]:
            raise Lost(i, "TIMEOUT", "no end after %.3g s" % limit, when)
        line = os.read(pipe, select.PIPE_BUF)
        if not line:
            raise Lost(i, "CRASH", "", when)
        return json.loads(line)

    def ask(self, i, cell, times):
        """Returns wall and processor seconds, page faults, and the results of a task."""
        size = cell.row["size"]
        when = "in " + cell.row["title"] + (" of " + size_words(size) if size else "")
        try:
            os.write(self.processes[i]["to"], (json.dumps([*cell.key, times]) + "\n").encode())
        except BrokenPipeError:
            raise Lost(i, "CRASH", "", when) from None
        answer = self.answer(i, self.processes[i]["limit"], when)
        if answer is None:
            raise Lost(i, "FAIL", "refused " + when, "")
        return answer

    def is_over(self):
        return time.monotonic() - self.begun > self.limit

    def is_late(self):  # a slow group does not take the time of the others
        return self.is_over() or time.monotonic() - self.group_begun > self.limit / 7

    def times_for(self, i, cell, seconds):
        """Returns how often the handler does the work in that time."""
        if cell.row["unit"] != "s":  # once; a footprint is that of a new heap, and not warmed up
            if cell.row["group"] == "latency":
                self.ask(i, cell, 1)
            return 1
        times = 1
        while True:
            wall = self.ask(i, cell, times)[0]
            if wall >= seconds / 2 or times >= 2**32 or self.is_late():
                return times
            times = int(max(times * min(seconds / max(wall, 1e-9), 100), times + 1))

    def measure(self, group, seconds):
        """Measures cells of one key.  If the time is over before three rounds, they have none."""
        cell, count = group[0], len(self.processes)
        self.group_begun = time.monotonic()
        self.stay_on_core(cell.row["threads"] == 1)
        # Threads that wait for the GIL may wait for its switch interval of 5 ms.
        turn = max(seconds / (count + 1) / 12, 0.04 if cell.row["threads"] > 1 else 5e-4)
        times = [self.times_for(i, cell, turn) for i in range(count)]
        rounds = []
        while len(rounds) < LEAST_ROUNDS or (
                len(rounds) < MOST_ROUNDS and time.monotonic() - self.group_begun < seconds):
            answers = {}
            for i in range(count):
                turn = (i + len(rounds)) % count
                if self.is_late() and len(rounds) < LEAST_ROUNDS:
                    return
                answers[turn] = self.ask(turn, cell, times[turn])
            rounds.append(answers)
        for cell in group:
            cell.conclude(times, rounds)

    def stay_on_core(self, one):
        """Keeps what is on one thread on one core: the caches of another are cold."""
        cores = os.sched_getaffinity(0)
        for process in self.processes:
            try:
                os.sched_setaffinity(process["pid"], {max(cores)} if one else cores)
            except ProcessLookupError:
                pass  # it has ended, which the next task shows

    def run(self):
        left = len(self.cells)
        in_turn = sorted(self.cells, key=lambda cell: cell.turn)
        for _, group in itertools.groupby(in_turn, key=lambda cell: cell.key):
            if self.is_over():
                break
            group = list(group)
            rest = self.seconds - (time.monotonic() - self.begun)
            self.measure(group, max(rest, 0) * len(group) / left)
            left -= len(group)
        measured = [cell.row for cell in self.cells if cell.row["rounds"]]
        with open("/proc/cpuinfo") as file:
            models = re.findall(r"model name\s*: (.*)", file.read())
        load = "%d cores, load %.1f" % (os.cpu_count(), os.getloadavg()[0])
        return {
            "format": "conform-bench-1",
            "conform": self.options["conform"],
            "python": self.python,
            "machine": ", ".join([*models[:1], load]),
            "handlers": [process["label"] for process in self.processes],
            "seconds": time.monotonic() - self.begun,
            "noisy": sum(row["noisy"] for row in measured),
            "left_out": len(self.cells) - len(measured),
            "cells": measured,
        }


def run(options):
    """Measures, prints the table unless options say quiet, and returns what --json writes.

    If a handler is lost, the value has what Lost has.
    """
    try:
        bench = Bench(options).run()
    except Lost as lost:
        return dict(zip(("lost", "verdict", "why", "when", "state"), lost.args))
    if not options["quiet"]:
        bench_page.print_table(bench)
    return bench
