# SPDX-License-Identifier: BSD-3-Clause
"""Measures handlers in rounds, for --bench.

In each round all handlers do the same task one after the other, each in a process of its own, so
that the load of the machine affects all of them.  The result is the ratio to NumPy's default
handler in the same round.
"""

import array
import collections
import contextvars
import itertools
import json
import math
import multiprocessing
import os
import pathlib
import platform
import queue
import re
import resource
import signal
import statistics
import sys
import time
import timeit
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import _conform_bench as loops
import numpy as np

KIB, MIB = 1 << 10, 1 << 20
LEAST_ROUNDS, MOST_ROUNDS = 3, 25
QUICK_SECONDS, OVERTIME = 9, 1.07  # after this factor of the time the rest is left out
CORES = sorted(os.sched_getaffinity(0), reverse=True)


# ---- what is measured ------------------------------------------------------------------------


def unless_late(items):
    """Ends the work of a slow handler early.  Processor time counts, so that the machine's load
    does not matter; wall time ends a handler that waits."""
    used, begun = time.process_time(), time.monotonic()
    for item in items:
        if time.process_time() - used >= 0.3 or time.monotonic() - begun >= 0.8:
            break
        yield item


def latency(_):
    took = array.array("d", b"".join(loops.replace() for _ in unless_late(range(160))))
    loops.free_all()
    took = sorted(took)
    return [took[-1 - len(took) // part] for part in (2, 100, 1000, len(took) + 1)]


def page_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def footprint(programs, _):
    """Of recorded programs, or of blocks that replace each other.  Returns resident memory over
    live memory, and page faults for each MiB that was requested."""
    loops.footprint()
    faults = page_faults()
    for program in unless_late(10 * programs or 320 * [None]):
        loops.replay(program, 1) if program else loops.replace()
    resident, live, requested = loops.footprint()
    return resident / max(live, 1), (page_faults() - faults) / max(requested / MIB, 1)


def on_threads(works, times):
    """Does each in a thread that stays on a core of its own, with the handler of this context."""

    def on_core(core, context, work):
        os.sched_setaffinity(0, [core])
        context.run(work, times)

    contexts = [contextvars.copy_context() for _ in works]
    with ThreadPoolExecutor(len(works)) as pool:
        list(pool.map(on_core, itertools.cycle(CORES), contexts, works))


def hand_over(times):
    """One thread makes lists of arrays of 4 KiB, and another one drops them."""
    lists = queue.Queue(4)

    def make(times):
        for _ in range(times):
            lists.put([np.empty(512) for _ in range(64)])

    def drop(times):
        for _ in range(times):
            lists.get()

    on_threads([make, drop], times)


# A work is a function of the number of repetitions, or code with an array of ones.  It has a row of
# the result for each title.  A unit of "s" is a time; other values are what the function returns.
# Tasks with a lower turn come first.
Task = collections.namedtuple("Task", "group titles work unit size threads turn",
                              defaults=("s", 0, 1, 0))
BY_SIZE = [
    ("malloc", "malloc and free", partial(loops.block, False)),
    ("calloc", "calloc and free", partial(loops.block, True)),
    ("realloc", "realloc to twice the size and back", loops.realloc),
    ("add", "a + a", "ones + ones"),
    ("zeros", "numpy.zeros", "np.zeros(items)"),
    ("resize", "a.resize to twice the size and back",
     "ones.resize(2 * items, refcheck=False); ones.resize(items, refcheck=False)"),
]  # fmt: skip
PROGRAMS = {
    "numpy-2.5": "the calls of NumPy's whole API",
    "programs/simulate": "the calls of a simulation with NumPy",
    "programs/scientific": "the calls of a program with SciPy",
    "programs/tables": "the calls of a program with pandas",
    "programs/learning": "the calls of a program with scikit-learn",
}


def all_tasks(quick, folder):
    """Returns them in the order of the result.  Footprints come first; then every fourth size, so
    that each group has results if the time runs out."""
    available = re.search(r"MemAvailable: *(\d+)", pathlib.Path("/proc/meminfo").read_text())
    factor, most = (64, 4 * MIB) if quick else (4, 256 * MIB)
    most = min(most, int(available[1]) * KIB // 4)
    sizes = [16 * factor**i for i in range(16) if 16 * factor**i <= most]
    counts = [count for count in (1, 2, 4, 8, 16, 32, 64) if count <= max(4, os.cpu_count())]
    traces = ["%s/%s.trace" % (folder, name) for name in PROGRAMS]
    return [
        Task("footprint", ["resident memory over what is live",
                           "page faults for each MiB that is asked for"],
             partial(footprint, []), ""),
        Task("footprint", ["resident over live, a long replay of programs",
                           "page faults for each MiB of that replay"],
             partial(footprint, traces), ""),
        *(Task(group, [title], work if isinstance(work, str) else partial(work, size), size=size,
               turn=(0, 2, 1, 2)[i % 4])
          for group, title, work in BY_SIZE for i, size in enumerate(sizes)),
        *(Task("threads", ["a + a on %d thread%s" % (count, "s" * (count > 1))], "ones + ones",
               size=MIB, threads=count) for count in counts),
        Task("handover", ["64 made by one thread, dropped by another"], hand_over, size=4 * KIB,
             threads=2),
        *(Task("replay", [title], partial(loops.replay, trace))
          for title, trace in zip(PROGRAMS.values(), traces)),
        Task("latency", ["a call, the median", "a call, 99 of 100", "a call, 999 of 1000",
                         "a call, the worst"], latency, "s of a call"),
    ]  # fmt: skip


# ---- the processes of the handlers -------------------------------------------------------------


def repeat(task, seconds, times):
    """Returns how often a task was done, and of one repetition its results, or else its wall time,
    its processor time and its page faults.  If `times` is 0 it finds how many take so long."""
    work, is_known, times = task.work, times > 0, times or 1
    if isinstance(work, str):
        items = task.size // 8
        names = {"np": np, "items": items, "ones": np.ones(items)}
        work = timeit.Timer(work, globals=names).timeit
        if task.threads > 1:
            work = partial(on_threads, task.threads * [work])
    while True:
        faults, used, begun = page_faults(), time.process_time(), time.monotonic()
        results = work(times)
        wall = time.monotonic() - begun
        used, faults = time.process_time() - used, page_faults() - faults
        if task.unit != "s":
            return 1, (results, used, faults)
        if is_known or wall >= seconds / 2 or times >= 2**32:
            return times, ([wall / times], used / times, faults / times)
        times = int(max(times * min(seconds / max(wall, 1e-9), 100), times + 1))


class Lost(Exception):
    """A handler is not loaded, or its process ended, hung or refused a request."""


class Handler:
    """A process with the handler of this number; 0 is NumPy's default one, and 1 is libc."""

    def __init__(self, number, timeout):
        self.number, self.timeout = number, timeout
        fork = multiprocessing.get_context("fork")
        self.pipe, other = fork.Pipe()
        self.process = fork.Process(target=self.serve, args=(other,))
        self.process.start()
        other.close()
        state, why = self.exchange(None)
        if why:
            raise Lost(number, "CRASH", why, "", 0, state)

    def serve(self, pipe):
        pipe.send(loops.load(self.number))
        os.sched_setaffinity(0, CORES[:1])  # the caches of another core are cold
        while True:
            request = pipe.recv()
            try:
                answer = repeat(*request)
            except MemoryError:
                answer = None
            pipe.send(answer)

    def exchange(self, request):
        """Returns what repeat() does; without a request, what load() returned."""
        place = (request[0].titles[0], request[0].size) if request else ("loading", 0)
        limit = self.timeout
        if self.number < 2 or not request:  # which take longer on a slow machine
            limit = max(limit, 10, 10 * os.getloadavg()[0] / os.cpu_count())
        try:
            if request:
                self.pipe.send(request)
            if not self.pipe.poll(limit):
                raise Lost(self.number, "TIMEOUT", "no end after %.3g s" % limit, *place)
            answer = self.pipe.recv()
        except (ConnectionError, EOFError):
            self.process.join(1)
            code = self.process.exitcode or 0
            why = signal.Signals(-code).name if code < 0 else "the process exits with %d" % code
            raise Lost(self.number, "CRASH", why, *place) from None
        if answer is None:
            raise Lost(self.number, "FAIL", "refused", *place)
        return answer


# ---- rounds and statistics ---------------------------------------------------------------------


def measure(task, seconds, end, handlers):
    """Returns the answers by round and handler, or nothing if the end comes before three rounds.
    The first round warms all up, except that a footprint is that of a new process."""
    begun, count, rounds = time.monotonic(), len(handlers), []
    # Threads that wait for the GIL may wait for its switch interval of 5 ms.
    turn = max(seconds / (count + 1) / 12, 0.04 if task.threads > 1 else 5e-4)
    warm_up = task.group != "footprint"
    least, most, times = LEAST_ROUNDS + warm_up, MOST_ROUNDS + warm_up, [0] * count
    while len(rounds) < least or (
            len(rounds) < most and time.monotonic() - begun < seconds):
        answers = [None] * count
        for i in range(count):
            if time.monotonic() > end and len(rounds) < least:
                return []
            i = (i + len(rounds)) % count
            handler = handlers[i] if warm_up else Handler(i, handlers[i].timeout)
            times[i], answers[i] = handler.exchange((task, turn, times[i]))
            if not warm_up:
                handler.process.kill()
                handler.process.join()
        rounds.append(answers)
    return rounds[warm_up:]


def eighths(values):
    return statistics.quantiles(values, n=8, method="inclusive")


def cells(task, rounds):
    """Returns rows of the result: values, and ratios to the first handler in the same round."""
    made = []
    for which, title in enumerate(task.titles if rounds else []):
        first = [answers[0][0][which] for answers in rounds]
        _, quarter, _, middle, _, three_quarters, _ = eighths(first)
        noisy = three_quarters - quarter > 0.1 * middle
        handlers = []
        for answers in zip(*rounds):
            values = [results[which] for results, _, _ in answers]
            ratios = eighths([own / max(beside, 1e-12) for own, beside in zip(values, first)])
            used = [own[1] / max(beside[0][1], 1e-12) for own, beside in zip(answers, rounds)]
            handlers.append({
                "value": statistics.median(values), "ratio": ratios[3], "low": ratios[0],
                "high": ratios[6], "processor_ratio": statistics.median(used),
                "faults": statistics.median(faults for _, _, faults in answers),
            })  # fmt: skip
        made.append({"group": task.group, "title": title, "unit": task.unit, "size": task.size,
                     "threads": task.threads, "rounds": len(rounds), "noisy": noisy,
                     "handlers": handlers})
    return made


def bench(options):
    seconds, limit = options["seconds"], math.inf
    if not options["time_is_given"]:
        seconds = QUICK_SECONDS if options["quick"] else seconds
        limit = OVERTIME * seconds
    handlers = [Handler(i, options["timeout"]) for i in range(len(options["handlers"]))]
    begun, found = time.monotonic(), {}
    tasks = all_tasks(options["quick"], options["profiles"])
    left = total = sum(len(task.titles) for task in tasks)
    for i, task in sorted(enumerate(tasks), key=lambda pair: pair[1].turn):
        now = time.monotonic() - begun
        if now > limit:
            break
        share = max(seconds - now, 0) * len(task.titles) / left
        # A slow task does not take the time of the others.
        end = begun + min(limit, now + limit / 7)
        found[i] = cells(task, measure(task, share, end, handlers))
        left -= len(task.titles)
    measured = [cell for i in sorted(found) for cell in found[i]]
    models = re.findall(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    load = "%d cores, load %.1f" % (os.cpu_count(), os.getloadavg()[0])
    return {
        "format": "conform-bench-1",
        "conform": options["conform"],
        "python": "Python %s%s, NumPy %s" % (
            platform.python_version(), "t" * ("free-threading" in sys.version), np.__version__),
        "machine": ", ".join([*models[:1], load]),
        "handlers": options["handlers"],
        "seconds": time.monotonic() - begun,
        "noisy": sum(cell["noisy"] for cell in measured),
        "left_out": total - len(measured),
        "cells": measured,
    }


def run():
    """Writes what --json does; or, if a handler is lost, which one, why and where."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # of a process that is gone
    options = json.loads(loops.options())
    try:
        result = bench(options)
    except Lost as lost:
        result = dict(zip(("lost", "verdict", "why", "title", "size", "state"), lost.args))
        result["label"] = options["handlers"][result["lost"]]
    with open(options["answer"], "w") as file:
        json.dump(result, file)
