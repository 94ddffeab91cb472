# SPDX-License-Identifier: BSD-3-Clause
"""Measures handlers in rounds, for conform bench.

In each round all handlers do the same task one after the other, each in a process of its own, so
that the load of the machine affects all of them.  The result is the ratio to NumPy's default
handler in the same round.
"""

import collections
import contextvars
import json
import multiprocessing
import os
import pathlib
import queue
import re
import signal
import sys
import time
import timeit
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import _conform_bench as loops
import numpy as np

MIB = 1 << 20
LEAST_ROUNDS, MOST_ROUNDS = 3, 25
CORES = sorted(os.sched_getaffinity(0))
# A process stays on one core, because the caches of another one are cold; its threads do not.
threads = partial(ThreadPoolExecutor, initializer=os.sched_setaffinity, initargs=(0, CORES))


def footprint(_):
    return loops.replace()[1:]


def latency(_):
    return np.quantile(np.frombuffer(loops.replace()[0]), (0.5, 0.99, 0.999, 1))


def on_threads(count, work, times):
    """Does the work in each thread, with the handler of this context."""
    contexts = [contextvars.copy_context() for _ in range(count)]
    with threads(count) as pool:
        list(pool.map(lambda context: context.run(work, times), contexts))


def hand_over(times):
    """Another thread makes lists of arrays of 4 KiB, and this one drops them."""
    lists = queue.Queue(4)

    def make():
        for _ in range(times):
            lists.put([np.empty(512) for _ in range(64)])

    with threads(1) as pool:
        pool.submit(contextvars.copy_context().run, make)
        for _ in range(times):
            lists.get()


# A work is a function of the number of repetitions, or code with an array of ones.  It has a row of
# the result for each title.  A unit of "s" is a time; other values are what the function returns.
Task = collections.namedtuple("Task", "group titles work unit size threads", defaults=("s", 0, 1))
BY_SIZE = [
    ("malloc", "malloc and free", partial(loops.block, False)),
    ("calloc", "calloc and free", partial(loops.block, True)),
    ("realloc", "realloc to twice the size and back", loops.realloc),
    ("add", "a + a", "ones + ones"),
    ("zeros", "numpy.zeros", "np.zeros(n)"),
    ("resize", "a.resize to twice the size and back",
     "ones.resize(2 * n, refcheck=False); ones.resize(n, refcheck=False)"),
]  # fmt: skip
PROGRAMS = {
    "numpy-2.5": "the calls of NumPy's whole API",
    "programs/simulate": "the calls of a simulation with NumPy",
    "programs/scientific": "the calls of a program with SciPy",
    "programs/tables": "the calls of a program with pandas",
    "programs/learning": "the calls of a program with scikit-learn",
}


def all_tasks(quick, folder):
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    factor, most = (64, 4 * MIB) if quick else (4, min(256 * MIB, memory // 8))
    sizes = [16 * factor**i for i in range(16) if 16 * factor**i <= most]
    counts = [count for count in (1, 2, 4, 8, 16, 32, 64) if count <= max(4, os.cpu_count())]
    return [
        Task("footprint", ["resident memory over what is live",
                           "page faults for each MiB that is asked for"], footprint, ""),
        *(Task("replay", [title], partial(loops.replay, "%s/%s.trace" % (folder, name)))
          for name, title in PROGRAMS.items()),
        Task("latency", ["a call, the median", "a call, 99 of 100", "a call, 999 of 1000",
                         "a call, the worst"], latency, "s of a call"),
        *(Task("threads", ["a + a on %d thread%s" % (count, "s" * (count > 1))], "ones + ones",
               size=MIB, threads=count) for count in counts),
        Task("handover", ["64 made by one thread, dropped by another"], hand_over, size=4096,
             threads=2),
        *(Task(group, [title], work if isinstance(work, str) else partial(work, size), size=size)
          for group, title, work in BY_SIZE for size in sizes),
    ]  # fmt: skip


def size_words(size):
    power = (size.bit_length() - 1) // 10
    return "%d %s" % (size >> 10 * power, ("B", "KiB", "MiB")[power]) if size else ""


def repeat(task, seconds, times):
    """Returns how often the task was done, and the time of one repetition, or the task's own
    results.  If `times` is 0 it finds how many take so long."""
    work, is_known, times = task.work, times > 0, times or 1
    if isinstance(work, str):
        n = task.size // 8
        work = timeit.Timer(work, globals={"np": np, "n": n, "ones": np.ones(n)}).timeit
        if task.threads > 1:
            work = partial(on_threads, task.threads, work)
    while True:
        begun = time.monotonic()
        results = work(times)
        took = time.monotonic() - begun
        if task.unit != "s":
            return 1, results
        if is_known or took >= seconds / 2 or times >= 2**32:
            return times, [took / times]
        times = int(max(times * min(seconds / max(took, 1e-9), 100), times + 1))


class Lost(Exception):
    """A handler cannot be measured: its number, a verdict, one line about it, a load_state."""


class Handler:
    """A process with the handler of this number; 0 is NumPy's default one, and 1 is libc."""

    def __init__(self, number, options):
        self.number, self.options = number, options
        fork = multiprocessing.get_context("fork")
        self.pipe, other = fork.Pipe()
        self.process = fork.Process(target=self.serve, args=(other,))
        self.process.start()
        other.close()
        state, why = self.exchange(None, "loading")
        if why:
            raise Lost(number, "CRASH", why, state)

    def serve(self, pipe):
        answer = loops.load(self.number)
        os.sched_setaffinity(0, CORES[-1:])
        while True:
            pipe.send(answer)
            try:
                answer = repeat(*pipe.recv())
            except MemoryError:
                answer = None

    def exchange(self, request, place):
        """Returns what repeat() does; without a request, what load() returned."""
        timeout, answer = self.options["timeout"], None
        try:
            if request:
                self.pipe.send(request)
            if self.pipe.poll(timeout):
                answer = self.pipe.recv()
                verdict, why = "FAIL", "refused"
            else:
                verdict, why = "TIMEOUT", "no end after %.3g s" % timeout
        except (ConnectionError, EOFError):
            self.process.join(1)
            code = self.process.exitcode or 0
            why = signal.Signals(-code).name if code < 0 else "the process exits with %d" % code
            verdict = "CRASH"
        if answer is None:
            label = self.options["handlers"][self.number]
            raise Lost(self.number, verdict, "%s: %s, in %s" % (label, why, place), 0)
        return answer


def measure(task, seconds, handlers):
    """Returns what repeat() does, by handler and round.  Round 0 warms all up, except that a
    footprint is that of a new process."""
    begun, count, answers = time.monotonic(), len(handlers), [[] for _ in handlers]
    # Threads that wait for the GIL may wait for its switch interval of 5 ms.
    turn = max(seconds / (count + 1) / 12, 0.04 if task.threads > 1 else 5e-4)
    place = task.titles[0] + (" of " + size_words(task.size) if task.size else "")
    times, is_new = [0] * count, task.group == "footprint"
    for number in range(1 if is_new else 0, MOST_ROUNDS + 1):
        if number > LEAST_ROUNDS and time.monotonic() - begun >= seconds:
            break
        for i in (*range(number % count, count), *range(number % count)):
            handler = Handler(i, handlers[i].options) if is_new else handlers[i]
            times[i], answer = handler.exchange((task, turn, times[i]), place)
            if number > 0:
                answers[i].append(answer)
            if is_new:
                handler.process.kill()
                handler.process.join()
    return answers


def cells(task, answers):
    """Returns rows of the result: values, and ratios to the first handler in the same round."""
    values = np.array(answers)  # by handler, round and title
    ratios = values / np.maximum(values[0], 1e-12)
    figures = np.median(values, axis=1), *np.quantile(ratios, (1 / 2, 1 / 8, 7 / 8), axis=1)
    quarter, middle, three_quarters = np.quantile(values[0], (1 / 4, 1 / 2, 3 / 4), axis=0)
    noisy = three_quarters - quarter > 0.1 * middle
    for i, title in enumerate(task.titles):
        handlers = [dict(zip(("value", "ratio", "low", "high"), of))
                    for of in np.transpose(figures)[i].tolist()]
        yield {"group": task.group, "title": title, "unit": task.unit, "size": task.size,
               "name": size_words(task.size), "threads": task.threads, "rounds": len(answers[0]),
               "noisy": bool(noisy[i]), "handlers": handlers}


def bench(options):
    handlers = [Handler(i, options) for i in range(len(options["handlers"]))]
    begun, measured = time.monotonic(), []
    tasks = all_tasks(options["quick"], options["profiles"])
    for i, task in enumerate(tasks):
        left = options["seconds"] - (time.monotonic() - begun)
        measured += cells(task, measure(task, left / (len(tasks) - i), handlers))
    model = re.search(r"model name\s*: (.*)|$", pathlib.Path("/proc/cpuinfo").read_text())[1]
    return {
        "format": "conform-bench-1", "conform": options["conform"],
        "python": "Python %s, NumPy %s" % (sys.version.partition(" (")[0], np.__version__),
        "machine": "%s, %d cores, load %.1f" % (model, os.cpu_count(), os.getloadavg()[0]),
        "handlers": options["handlers"], "seconds": time.monotonic() - begun,
        "noisy": sum(cell["noisy"] for cell in measured), "cells": measured,
    }  # fmt: skip


def run():
    """Writes what --json does; or, if a handler is lost, which one and why."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # of a process that is gone
    options = json.loads(loops.task())
    try:
        result = bench(options)
    except Lost as lost:
        result = dict(zip(("lost", "verdict", "why", "state"), lost.args))
    os.write(options["answer"], json.dumps(result).encode())
