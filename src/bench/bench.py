# SPDX-License-Identifier: BSD-3-Clause
"""The process of a handler for --bench: does the tasks of conform_report/bench.py."""

import array
import contextvars
import json
import os
import queue
import resource
import threading
import time
import timeit

import _conform_bench as loops
import numpy as np

BY_NUMPY = {
    "add": "ones + ones",
    "zeros": "np.zeros(items)",
    "resize": "ones.resize(2 * items, refcheck=False); ones.resize(items, refcheck=False)",
    "threads": "ones + ones",
}


def unless_late(items):
    """Ends the work of a slow handler early.  Processor time counts, so that the machine's load
    does not matter; wall time ends a handler that waits."""
    used, begun = time.process_time(), time.monotonic()
    for item in items:
        if time.process_time() - used >= 0.3 or time.monotonic() - begun >= 0.8:
            break
        yield item


def latency():
    took = array.array("d")
    for _ in unless_late(range(160)):
        took.frombytes(loops.replace())
    loops.free_all()
    took = sorted(took)
    return [took[-1 - len(took) // part] for part in (2, 100, 1000, len(took) + 1)]


def page_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def footprint(programs):
    """Of recorded programs, or of blocks that replace each other.  Returns resident memory over
    live memory, and page faults for each MiB that was asked for."""
    loops.footprint()
    faults = page_faults()
    for program in unless_late(10 * programs or 320 * [None]):
        loops.replay(program) if program else loops.replace()
    resident, live, asked = loops.footprint()
    return resident / max(live, 1), (page_faults() - faults) / max(asked / 2**20, 1)


def on_threads(functions):
    """Runs each in a thread that stays on a core of its own, with the handler of this context."""

    def on_core(core, function):
        os.sched_setaffinity(0, [core])
        function()

    cores = sorted(os.sched_getaffinity(0))
    threads = [threading.Thread(target=contextvars.copy_context().run,
                                args=(on_core, cores[i % len(cores)], function))
               for i, function in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def hand_over(items, times):
    """One thread makes lists of arrays, and another one drops them."""
    waiting = queue.Queue(4)

    def make():
        for _ in range(times):
            waiting.put([np.empty(items) for _ in range(64)])
        waiting.put([])

    on_threads([make, lambda: all(iter(waiting.get, []))])


def do(work, size, threads, programs, times):
    """Returns wall and processor seconds, page faults and results, or None if it was refused."""
    items = size // 8
    works = {
        "malloc": lambda: loops.block(False, size, times),
        "calloc": lambda: loops.block(True, size, times),
        "realloc": lambda: loops.realloc(size, times),
        "latency": latency,
        "footprint": lambda: footprint(programs),
        "replay": lambda: [loops.replay(programs[0]) for _ in range(times)][-1],
        "threads": lambda: on_threads([lambda: timer.timeit(times)] * threads),
        "handover": lambda: hand_over(items, times),
    }
    try:
        if work in BY_NUMPY:
            names = {"np": np, "items": items, "ones": np.ones(items)}
            timer = timeit.Timer(BY_NUMPY[work], globals=names)
        function = works.get(work, lambda: timer.timeit(times))
        faults, used, begun = page_faults(), time.process_time(), time.monotonic()
        results = function()
        wall = time.monotonic() - begun
        return wall, time.process_time() - used, page_faults() - faults, results
    except Exception:
        return None


def serve():
    """Footprints are measured in a fork, because the blocks of one round would be free in the next;
    this process ends as the fork does."""
    requests, answers = loops.descriptors()
    for line in open(requests):
        task = json.loads(line)
        forks = task[0] == "footprint"
        child = os.fork() if forks else 0
        if child == 0:
            os.write(answers, (json.dumps(do(*task)) + "\n").encode())
        if child == 0 and forks:
            os._exit(0)
        status = os.waitpid(child, 0)[1] if forks else 0
        if os.WIFSIGNALED(status):
            os.kill(os.getpid(), os.WTERMSIG(status))
        elif status:
            os._exit(os.WEXITSTATUS(status))
