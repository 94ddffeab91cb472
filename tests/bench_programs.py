# SPDX-License-Identifier: BSD-3-Clause
"""What it costs a program to be watched: by the auditor, and by other tools.

    bench_programs.py [--rounds N] [--only PROGRAM] [--without TOOL]

The same programs run under plain python3, under `conform --exec` with `aligned`, tracemalloc,
memray and valgrind, in turns.  A program times its own work, so that starting up is not in it;
a figure is the median over the rounds of the ratio to plain python3, once by the wall's clock and
once by the processor's, which a busy machine disturbs less.  valgrind runs once, at a fiftieth of
the work, beside plain python3 with as much.  memray is PYTHON's own, or is put into a virtual
environment in the build tree; what cannot be run is said.  Part of `make bench`.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

import machine

# Each is given numpy and how much to do: 1 is about a second.
PROGRAMS = {
    "matrix products": """
a = np.random.default_rng(1).random((500, 500))
def work(much):
    for _ in range(int(150 * much)):
        a @ a
""",
    "FFT": """
a = np.random.default_rng(1).random(1 << 16)
def work(much):
    for _ in range(int(1000 * much)):
        np.fft.fft(a)
""",
    "sorting 10^7": """
a = np.random.default_rng(1).random(10 ** 7)
def work(much):
    np.sort(a[:int(len(a) * much)])
""",
    "adding tens": """
a = np.arange(10.0)
def work(much):
    for _ in range(int(4000000 * much)):
        a + a
""",
}
LIMITS = {"matrix products": 1.05, "FFT": 1.05, "sorting 10^7": 1.05, "adding tens": 2.0}
FRAME = """
import sys, time
import numpy as np
{program}
work(0.01)
start, busy = time.perf_counter(), time.process_time()
work({much})
took = [time.perf_counter() - start, time.process_time() - busy]
with open({result!r}, "w") as file:
    file.write(repr(took[0]) + " " + repr(took[1]))
"""
LITTLE = 0.02  # for valgrind

PYTHON = os.environ["PYTHON"]
BUILD = os.environ["top_builddir"]


def last_line(text):
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else "it said nothing"


def memray():
    """(the Python that has memray, None), or (None, why there is none)."""
    if not subprocess.call([PYTHON, "-c", "import memray"], stderr=subprocess.DEVNULL):
        return PYTHON, None
    folder = os.path.join(BUILD, "tests", "bench-venv")
    python = os.path.join(folder, "bin", "python")
    for command in ([PYTHON, "-m", "venv", "--system-site-packages", folder],
                    [python, "-m", "pip", "install", "-q", "memray"]):
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except OSError as error:
            return None, str(error)
        if done.returncode:
            return None, " ".join(command[1:4]) + ": " + last_line(done.stdout)
    return python, None


def tools():
    """The commands to be followed by a script, by name; and (name, why) of those that are not."""
    with_memray, why = memray()
    found = {"plain": [PYTHON, "-B"],
             "conform": [os.environ["CONFORM"], "-H", "aligned", "-q", "--exec", "--", "-B"],
             "tracemalloc": [PYTHON, "-B", "-X", "tracemalloc"]}
    missing = [] if with_memray else [("memray", why)]
    if with_memray:
        found["memray"] = [with_memray, "-B", "-m", "memray", "run", "-q", "-f", "-o", os.devnull]
    if os.environ.get("VALGRIND"):
        found["valgrind"] = [os.environ["VALGRIND"], "-q", PYTHON, "-B"]
    else:
        missing.append(("valgrind", "configure did not find it"))
    return found, missing


def seconds(command, program, much, folder):
    """How long the program's work took: on the wall, and of the processor."""
    script, result = (os.path.join(folder, name) for name in ("program.py", "seconds"))
    with open(script, "w") as file:
        file.write(FRAME.format(program=program, much=much, result=result))
    done = subprocess.run(command + [script], env=dict(os.environ, OPENBLAS_NUM_THREADS="1"),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit("bench_programs: %s: %s" % (command[0], last_line(done.stdout)))
    with open(result) as file:
        return [float(number) for number in file.read().split()]


def measure(program, found, rounds, folder):
    """For each of the two clocks the ratios to plain python3 by tool, and plain python3's median in
    seconds."""
    names = [name for name in found if name != "valgrind"]
    took = {name: [] for name in names}
    for n in range(rounds):
        for name in names[n % len(names):] + names[:n % len(names)]:
            took[name].append(seconds(found[name], program, 1, folder))
    if "valgrind" in found:
        little = [seconds(found["plain"], program, LITTLE, folder) for _ in range(3)]
        slow = seconds(found["valgrind"], program, LITTLE, folder)
    clocks = []
    for clock in range(2):
        plain = [times[clock] for times in took["plain"]]
        ratios = {name: statistics.median(a[clock] / b for a, b in zip(times, plain))
                  for name, times in took.items()}
        if "valgrind" in found:
            ratios["valgrind"] = slow[clock] / statistics.median(each[clock] for each in little)
        clocks.append((ratios, statistics.median(plain)))
    return clocks


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=PROGRAMS, action="append", help="measure these programs")
    parser.add_argument("--without", action="append", default=[], help="leave out this tool")
    arguments = parser.parse_args()
    found, missing = tools()
    found = {name: command for name, command in found.items() if name not in arguments.without}
    print("programs that are watched, as multiples of plain python3's time\n" +
          machine.describe())
    for name, why in missing:
        print("%s: not measured: %s" % (name, why))
    watchers = [name for name in found if name != "plain"]
    print("%-16s %9s" % ("", "plain") + "".join("%13s" % name for name in watchers))
    with tempfile.TemporaryDirectory() as folder:
        for program in arguments.only or PROGRAMS:
            clocks = measure(PROGRAMS[program], found, arguments.rounds, folder)
            bounds = ["   (conform to be at most %.2f x)" % LIMITS[program], ""]
            for (ratios, plain), title, bound in zip(clocks, (program, "  processor"), bounds):
                shown = ["%.*f x" % (2 if ratios[name] < 10 else 0, ratios[name])
                         for name in watchers]
                print("%-16s %7.2f s" % (title, plain) +
                      "".join("%13s" % text for text in shown) + bound, flush=True)


if __name__ == "__main__":
    main()
