# SPDX-License-Identifier: BSD-3-Clause
"""What NumPy does for a bench, with whatever handler is in force: _conform_bench has the task."""

import contextvars
import os
import queue
import threading

import numpy as np

import _conform_bench

ADD, ZEROS, RESIZE, THREADS, HANDOVER = range(5)
prepared = {}


def prepare():
    """Whatever is needed before the clock runs."""
    kind, size, threads, times = _conform_bench.task()
    if prepared.get("size") != size or prepared.get("kind") != kind:
        prepared.clear()
        prepared.update(kind=kind, size=size, array=np.ones(size // 8))


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


def on_core(which, function, *arguments):
    """In a thread that stays there."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, [cores[which % len(cores)]])
    function(*arguments)


def on_threads(array, count, times):
    """Each begins with what is in force here, as whoever sets a handler for all threads has it."""
    threads = [threading.Thread(target=contextvars.copy_context().run,
                                args=(on_core, i, add, array, times)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def hand_over(items, times):
    """A few at a time: what is made here is dropped there."""
    some = 64
    waiting = queue.Queue(4)

    def make():
        for _ in range(times):
            waiting.put([np.empty(items) for _ in range(some)])
        waiting.put([])

    def drop():
        while waiting.get():
            pass

    threads = [threading.Thread(target=contextvars.copy_context().run, args=(on_core, i, each))
               for i, each in enumerate((make, drop))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def work():
    kind, size, threads, times = _conform_bench.task()
    if kind == ADD:
        add(prepared["array"], times)
    elif kind == ZEROS:
        zeros(size // 8, times)
    elif kind == RESIZE:
        resize(size // 8, times)
    elif kind == THREADS:
        on_threads(prepared["array"], threads, times)
    elif kind == HANDOVER:
        hand_over(size // 8, times)
