# SPDX-License-Identifier: BSD-3-Clause
"""How long the battery takes, and what of it is the runner's own work.

The runner's own work is measured on properties that do nothing (bench_runner.c): what
one of them costs under the runner, beside what one bare fork of the same process costs;
and the same again with the handler loaded in each.  The least of several times is taken
there, which is what a busy machine disturbs the least.

And what it takes to find an interpreter and to open its libpython: the processor time of one
property, beside that of a program that is linked to the same libpython and imports NumPy.
"""

import os
import statistics
import resource
import subprocess
import tempfile
import time

import machine

ROUNDS = 7
COUNT = 400  # the properties of each sort in bench_runner

TOP = os.environ["top_builddir"]
RUNNER = os.path.join(TOP, "tests", "bench_runner")
HANDLER = os.path.join(TOP, "handlers", "aligned.so")

CONFORM = [RUNNER, "-H", HANDLER, "--quiet", "--jobs", "1", "--run"]

COMMANDS = {
    "battery": [os.environ["CONFORM"], "--handler", "aligned", "--quiet"],
    "runner": CONFORM + ["abi.loads"],
    "runner, nothing": CONFORM + ["nothing.*"],
    "runner, loading": CONFORM + ["loading.*"],
    "forks": [RUNNER, "forks", "0"],
    "forks, nothing": [RUNNER, "forks", str(COUNT)],
    "forks, loading": [RUNNER, "forks", str(COUNT), HANDLER],
}


def seconds(command):
    begin = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - begin


def measure():
    """The times of each command, taken in turn, so that a busy moment touches all."""
    times = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        for name, command in COMMANDS.items():
            times[name].append(seconds(command))
    return times


STARTS = 40
LINKED = os.path.join(TOP, "embed_demo", "minimal")
PROGRAM = "import gc, os\ngc.disable()\nimport numpy\nos._exit(0)\n"  # no end, as a worker's


def processor_time(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def starts():
    """The least of each, in turn: linked, and one property."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(PROGRAM)
        script.flush()
        commands = ([LINKED, script.name],
                    [os.environ["CONFORM"], "--handler", "aligned", "--quiet", "--jobs=1",
                     "--run=abi.loads", "--python=" + os.environ["PYTHON"]])
        taken = [[processor_time(command) for command in commands] for _ in range(STARTS)]
    return map(min, zip(*taken))


def main():
    print(machine.describe())
    times = measure()

    def one(who, what):
        """Milliseconds for each, without what starting and ending costs."""
        return (min(times[who + ", " + what]) - min(times[who])) / COUNT * 1e3

    battery = times["battery"]
    spread = (statistics.median(battery), ROUNDS, min(battery), max(battery))
    print("the battery on aligned        %5.3f s (median of %d, %.3f to %.3f)" % spread)
    print("Python and NumPy, up and down %5.3f s" % min(times["forks"]))
    if os.path.exists(LINKED):
        linked, one_property = starts()
        print("processor time of one property %.1f ms; of a linked program %.1f ms; %+.1f ms"
              % (one_property * 1e3, linked * 1e3, (one_property - linked) * 1e3))
    for what, words in (("nothing", "that does nothing"), ("loading", "that loads the handler")):
        runner, fork = one("runner", what), one("forks", what)
        print("a property %-23s %5.3f ms; a fork %-23s %5.3f ms; ratio %.2f"
              % (words, runner, words, fork, runner / fork))


main()
