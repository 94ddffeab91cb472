# SPDX-License-Identifier: BSD-3-Clause
"""The work that NumPy does for --bench, with the handler that is installed."""

import contextvars
import os
import queue
import threading

import numpy as np

import _conform_bench

prepared = {}


def prepare():
    """Creates the array before the time is taken."""
    _, size, _, _ = _conform_bench.task()
    if prepared.get("size") != size:
        prepared.clear()
        prepared.update(size=size, array=np.ones(size // 8))


def add(array, times):
    for _ in range(times):
        array + array


def zeros(items, times):
    for _ in range(times):
        np.zeros(items)


def resize(items, times):
    array = np.empty(items)
    for _ in range(times):
        array.resize(2 * items, refcheck=False)
        array.resize(items, refcheck=False)


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

    def drop():
        while waiting.get():
            pass

    on_threads([make, drop])


def work():
    kind, size, threads, times = _conform_bench.task()
    (lambda: add(prepared["array"], times),
     lambda: zeros(size // 8, times),
     lambda: resize(size // 8, times),
     lambda: on_threads([lambda: add(prepared["array"], times)] * threads),
     lambda: hand_over(size // 8, times))[kind]()
