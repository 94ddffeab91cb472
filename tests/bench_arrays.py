# SPDX-License-Identifier: BSD-3-Clause
"""What arrays cost under each reference handler, beside NumPy's default handler.

    bench_arrays.py [--rounds N] [--save FILE] [--svg FILE] [HANDLER.so ...]
    bench_arrays.py --draw FILE [--svg FILE]

Each handler is measured in a process of its own, in which the default handler and the handler
take turns; a figure is the median over the rounds of the ratio between the two.  Without
arguments all that are built are measured.  Prints tables, and draws a chart of them where there
is matplotlib; --save keeps the figures, --draw makes tables and chart of those that were kept.
Part of `make bench`.
"""

import argparse
import ctypes
import glob
import json
import os
import statistics
import subprocess
import sys
import threading
import time

import machine

SMALL = [16, 64, 256, 1000]
SIZES = SMALL + [4 << 10, 64 << 10, 1 << 20, 16 << 20]
THREADS = [1, 2, 4]
THREADED = [64, 64 << 10]  # the sizes for several threads
TOUCHED = 256 << 20
ENOUGH = 0.003  # seconds for one measurement

# In the order of __multiarray_api.h, where it has not changed since 1.22.
SET_HANDLER = 304


class Refused(Exception):
    """The handler says that it cannot work here."""


def load(path):
    """The address of the PyDataMem_Handler in a shared object."""
    library = ctypes.CDLL(path)
    try:
        return ctypes.addressof(ctypes.c_char.in_dll(library, "nep49_handler"))
    except ValueError:
        pass
    why = ctypes.c_char_p(b"no reason")
    getter = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(("nep49_get_handler", library))
    handler = getter(ctypes.addressof(why))
    if not handler:
        raise Refused(why.value.decode(errors="replace"))
    return handler


class Handlers:
    """Installs a handler, or the default one, in this thread's context."""

    def __init__(self, path):
        import numpy
        core = getattr(numpy, "_core", None) or numpy.core
        api = ctypes.pythonapi
        api.PyCapsule_GetPointer.restype = ctypes.c_void_p
        api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        api.PyCapsule_New.restype = ctypes.py_object
        api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        table = api.PyCapsule_GetPointer(core._multiarray_umath._ARRAY_API, None)
        entry = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[SET_HANDLER]
        self.set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(entry)
        self.name = b"mem_handler"  # the capsule keeps a pointer to it
        self.capsule = api.PyCapsule_New(load(path), self.name, None)
        self.default = self.set_handler(self.capsule)
        self.set_handler(self.default)

    def install(self, ours):
        self.set_handler(self.capsule if ours else self.default)


def make_empty(numpy, size, times):
    empty = numpy.empty
    for _ in range(times):
        empty(size, "u1")


def make_zeros(numpy, size, times):
    zeros = numpy.zeros
    for _ in range(times):
        zeros(size, "u1")


def make_sums(numpy, size, times):
    a = numpy.ones(max(size // 8, 1))
    for _ in range(times):
        a + a


WORK = {"empty": make_empty, "zeros": make_zeros, "a + a": make_sums}


def seconds(handlers, ours, work, size, times, threads):
    """How long it takes `threads` threads to do it, each with the handler in its own context; of
    one thread it is the processor time, which a busy machine disturbs less."""
    import numpy
    if threads == 1:
        handlers.install(ours)
        try:
            start = time.thread_time()
            work(numpy, size, times)
            return time.thread_time() - start
        finally:
            handlers.install(False)
    barrier = threading.Barrier(threads + 1)

    def body():
        handlers.install(ours)
        barrier.wait()
        work(numpy, size, times)

    started = [threading.Thread(target=body) for _ in range(threads)]
    for thread in started:
        thread.start()
    barrier.wait()
    start = time.perf_counter()
    for thread in started:
        thread.join()
    return time.perf_counter() - start


def ratio(handlers, work, size, threads, rounds):
    """The handler's time over the default's: the median of the rounds."""
    for ours in (False, True):  # warms up
        slowest = seconds(handlers, ours, work, size, 10, 1) / 10
    times = max(2, min(4000, int(ENOUGH / slowest))) // threads + 1
    ratios = []
    for n in range(rounds):
        took = {}
        for ours in (False, True) if n % 2 else (True, False):
            took[ours] = seconds(handlers, ours, work, size, times, threads)
        ratios.append(took[True] / took[False])
    return statistics.median(ratios)


def first_touch(handlers, rounds):
    """256 MiB made and written to: the default's time, with its own advice about huge pages and
    without, over the handler's.  It is processor time, and the least of all rounds: each takes so
    long that a busy machine gets at most of them."""
    import numpy
    core = getattr(numpy, "_core", None) or numpy.core
    advise = core._multiarray_umath._set_madvise_hugepage

    def once(which):
        handlers.install(which == "ours")
        advise(which == "with")
        start = time.thread_time()
        numpy.empty(TOUCHED, "u1").fill(1)
        took = time.thread_time() - start
        handlers.install(False)
        return took

    before = advise(False)
    contest = ["ours", "with", "without"]
    least = dict.fromkeys(contest, float("inf"))
    for n in range(rounds):
        for which in contest[n % 3:] + contest[:n % 3]:
            least[which] = min(least[which], once(which))
    advise(before)
    return {which: least[which] / least["ours"] for which in ("with", "without")}


def measure(path, rounds):
    """All figures of one handler, printed as JSON: this process's only output."""
    try:
        handlers = Handlers(path)
    except Refused as refusal:
        return {"refused": str(refusal)}
    rows = []
    for what, work in WORK.items():
        for size in SIZES:
            for threads in THREADS if size in THREADED and what != "zeros" else [1]:
                rows.append({"what": what, "size": size, "threads": threads,
                             "ratio": ratio(handlers, work, size, threads, rounds)})
    return {"rows": rows, "first touch": first_touch(handlers, rounds)}


def shown(size):
    for unit, power in (("MiB", 20), ("KiB", 10)):
        if size >= 1 << power and size % (1 << power) == 0:
            return f"{size >> power} {unit}"
    return f"{size} B"


def number(ratio):
    return f"{ratio:.2f}" if ratio < 9.95 else f"{ratio:.0f}"


def table(title, columns, rows):
    """In Markdown, so that it can be put into a page."""
    print(f"\n| {title} | " + " | ".join(columns) + " |")
    print("| " + " | ".join(["---"] * (len(columns) + 1)) + " |")
    for name, values in rows:
        print(f"| {name} | " + " | ".join(number(value) for value in values) + " |")


def show(results):
    """All figures as tables; a ratio of 1 is the default handler's time."""
    measured = {name: figures for name, figures in results["handlers"].items()
                if "rows" in figures}
    ratios = {(name, r["what"], r["size"], r["threads"]): r["ratio"]
              for name, figures in measured.items() for r in figures["rows"]}
    for what in WORK:
        table(what, [shown(size) for size in SIZES],
              [(name, [ratios[name, what, size, 1] for size in SIZES]) for name in measured])
    cases = [(what, size) for what in WORK for size in THREADED if what != "zeros"]
    table("threads: 1, 2, 4", [f"{what}, {shown(size)}, {threads}"
                               for what, size in cases for threads in THREADS],
          [(name, [ratios[name, what, size, threads] for what, size in cases
                   for threads in THREADS]) for name in measured])
    table("first touch of 256 MiB: times as fast as the default",
          ["without its advice on huge pages", "with it"],
          [(name, [figures["first touch"]["without"], figures["first touch"]["with"]])
           for name, figures in measured.items()])
    for name, figures in results["handlers"].items():
        if "refused" in figures:
            print(f"\n{name}: not measured: {figures['refused']}")


def measure_all(paths, rounds):
    import numpy
    results = {"machine": machine.describe(), "numpy": numpy.__version__, "handlers": {}}
    for path in paths:
        name = os.path.basename(path).removesuffix(".so")
        done = subprocess.run([sys.executable, "-B", __file__, "--measure", os.path.abspath(path),
                               "--rounds", str(rounds)], stdout=subprocess.PIPE)
        if done.returncode:
            sys.exit(f"{name}: the process that measures it ended with {done.returncode}")
        results["handlers"][name] = json.loads(done.stdout)
    return results


def draw(results, path):
    try:
        import draw_arrays
    except ImportError as error:
        print(f"\nno chart is drawn: {error} (Debian's python3-matplotlib has it)")
        return
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    draw_arrays.draw(results, path, SIZES, THREADED, THREADS, shown)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    top = os.environ.get("top_builddir")
    parser.add_argument("--svg", default=top and os.path.join(top, "docs", "handlers.svg"),
                        help="draw a chart there (under make bench: docs/handlers.svg)")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--save", metavar="FILE", help="keep the figures there, as JSON")
    parser.add_argument("--draw", metavar="FILE", help="measure nothing, take these figures")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("handlers", nargs="*")
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.rounds)))
        return
    if arguments.draw:
        with open(arguments.draw, encoding="utf-8") as file:
            results = json.load(file)
    else:
        built = glob.glob(os.path.join(top or ".", "handlers", "*.so"))
        results = measure_all(arguments.handlers or sorted(built), arguments.rounds)
    print(f"arrays, as multiples of the time under NumPy {results['numpy']}'s default handler\n"
          + results["machine"])
    show(results)
    if arguments.save:
        with open(arguments.save, "w", encoding="utf-8") as file:
            json.dump(results, file)
    if arguments.svg:
        draw(results, arguments.svg)


if __name__ == "__main__":
    main()
