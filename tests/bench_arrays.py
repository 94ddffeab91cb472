# SPDX-License-Identifier: BSD-3-Clause
"""What arrays cost under each reference handler, beside NumPy's default handler.

    bench_arrays.py [--svg FILE] [--rounds N] [HANDLER.so ...]

Each handler is measured in a process of its own, in which the default handler and the handler
take turns; a figure is the median over the rounds of the ratio between the two.  Without
arguments all that are built are measured.  Part of `make bench`.
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

SMALL = [16, 64, 256, 1000]
SIZES = SMALL + [4 << 10, 64 << 10, 1 << 20, 16 << 20]
THREADS = [1, 2, 4]
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
    """How long it takes `threads` threads to do it, each with the handler in its own context."""
    import numpy
    if threads == 1:
        handlers.install(ours)
        try:
            start = time.perf_counter()
            work(numpy, size, times)
            return time.perf_counter() - start
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
    without, over the handler's."""
    import numpy
    core = getattr(numpy, "_core", None) or numpy.core
    advise = core._multiarray_umath._set_madvise_hugepage

    def once(which):
        handlers.install(which == "ours")
        advise(which == "with")
        start = time.perf_counter()
        numpy.empty(TOUCHED, "u1").fill(1)
        took = time.perf_counter() - start
        handlers.install(False)
        return took

    before = advise(False)
    contest = ["ours", "with", "without"]
    speedups = {"with": [], "without": []}
    for n in range(rounds + 1):
        took = {which: once(which) for which in contest[n % 3:] + contest[:n % 3]}
        for which, values in speedups.items():
            if n:  # the first only warms up
                values.append(took[which] / took["ours"])
    advise(before)
    return {which: statistics.median(values) for which, values in speedups.items()}


def measure(path, rounds):
    """All figures of one handler, printed as JSON: this process's only output."""
    try:
        handlers = Handlers(path)
    except Refused as refusal:
        return {"refused": str(refusal)}
    rows = []
    for what, work in WORK.items():
        for size in SIZES:
            for threads in THREADS if size in (64, 64 << 10) else [1]:
                rows.append({"what": what, "size": size, "threads": threads,
                             "ratio": ratio(handlers, work, size, threads, rounds)})
    return {"rows": rows, "first touch": first_touch(handlers, max(3, rounds // 3))}


def shown(size):
    for unit, power in (("MiB", 20), ("KiB", 10)):
        if size >= 1 << power and size % (1 << power) == 0:
            return f"{size >> power} {unit}"
    return f"{size} B"


def show(name, figures):
    if "refused" in figures:
        print(f"{name}: not measured: {figures['refused']}")
        return
    for row in figures["rows"]:
        threads = "1 thread" if row["threads"] == 1 else f"{row['threads']} threads"
        print(f"{name:14} {row['what']:8} {shown(row['size']):>8}  {threads:9} "
              f"{row['ratio']:6.2f} x the default")
    touch = figures["first touch"]
    print(f"{name:14} first touch of 256 MiB: {touch['without']:.2f} times as fast as the default "
          f"without its advice on huge pages, {touch['with']:.2f} times with it", flush=True)


def chart(results):
    """The ratios for `empty` on one thread as lines over the size, as SVG text."""
    import math
    width, height, left, top, bottom = 760, 420, 60, 40, 330
    low, high = math.log2(0.5), math.log2(64)
    named = [(n, f) for n, f in sorted(results.items()) if "rows" in f]
    colours = ["#1b6ca8", "#c8553d", "#3c8d53", "#8a5aa8", "#b8860b", "#4a4a4a", "#d0589a",
               "#2aa198", "#6b8e23", "#a0522d", "#5566cc"]

    def x(size):
        return left + (math.log2(size) - 4) / 20 * (width - left - 170)

    def y(value):
        place = (min(max(math.log2(value), low), high) - low) / (high - low)
        return bottom - place * (bottom - top)

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             'font-family="sans-serif" font-size="12">',
             '<rect width="100%" height="100%" fill="white"/>',
             f'<text x="{left}" y="20" font-size="14">np.empty(n) and drop: time over NumPy\'s '
             'default handler</text>']
    for power in range(-1, 7):
        at = y(2.0 ** power)
        lines.append(f'<line x1="{left}" x2="{width - 170}" y1="{at:.1f}" y2="{at:.1f}" '
                     f'stroke="{"#888" if power == 0 else "#ddd"}"/>'
                     f'<text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">'
                     f'{2.0 ** power:g} x</text>')
    for size in SIZES:
        lines.append(f'<text x="{x(size):.1f}" y="{bottom + 18}" text-anchor="middle" '
                     f'font-size="10">{shown(size)}</text>')
    for place, (name, figures) in enumerate(named):
        colour = colours[place % len(colours)]
        points = " ".join(f"{x(r['size']):.1f},{y(r['ratio']):.1f}" for r in figures["rows"]
                          if r["what"] == "empty" and r["threads"] == 1)
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" '
                     'stroke-width="2"/>'
                     f'<text x="{width - 155}" y="{top + 10 + 20 * place}" fill="{colour}">'
                     f'{name}</text>')
    return "\n".join(lines + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    built = os.environ.get("top_builddir")
    parser.add_argument("--svg", default=built and os.path.join(built, "docs", "arrays.svg"),
                        help="write a chart there (under make bench: docs/arrays.svg)")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("handlers", nargs="*")
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.rounds)))
        return 0
    top = os.environ.get("top_builddir", ".")
    paths = arguments.handlers or sorted(glob.glob(os.path.join(top, "handlers/.libs/*.so")))
    results = {}
    for path in paths:
        name = os.path.basename(path).removesuffix(".so")
        done = subprocess.run([sys.executable, "-B", __file__, "--measure", os.path.abspath(path),
                               "--rounds", str(arguments.rounds)], stdout=subprocess.PIPE)
        if done.returncode:
            print(f"{name}: the process that measures it ended with {done.returncode}")
            return 1
        results[name] = json.loads(done.stdout)
        show(name, results[name])
    if arguments.svg:
        os.makedirs(os.path.dirname(os.path.abspath(arguments.svg)), exist_ok=True)
        with open(arguments.svg, "w", encoding="utf-8") as file:
            file.write(chart(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
