# SPDX-License-Identifier: BSD-3-Clause
"""How long the battery takes, and what of it is the runner's own work.

The runner's own work is measured on properties that do nothing (bench_runner.c): what
one of them costs under the runner, beside what one bare fork of the same process costs,
with nothing in it, and with no more in it than the loading of the handler.  The least of
several times is taken there, which is what a busy machine disturbs the least.
"""

import os
import statistics
import subprocess
import time

import machine

ROUNDS = 7
COUNT = 400  # the properties of bench_runner that do nothing

TOP = os.environ["top_builddir"]
RUNNER = os.path.join(TOP, "tests", "bench_runner")
HANDLER = os.path.join(TOP, "handlers", ".libs", "aligned.so")

COMMANDS = {
    "battery": [os.environ["CONFORM"], "--handler", "aligned", "--quiet"],
    "runner, one": [RUNNER, "-H", HANDLER, "--quiet", "--jobs", "1", "--run", "abi.loads"],
    "runner, all": [RUNNER, "-H", HANDLER, "--quiet", "--jobs", "1"],
    "forks, none": [RUNNER, "forks", "0"],
    "forks": [RUNNER, "forks", str(COUNT)],
    "forks that load": [RUNNER, "forks", str(COUNT), HANDLER],
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


def main():
    print(machine.describe())
    times = measure()

    def one(name, without):
        return (min(times[name]) - min(times[without])) / COUNT * 1e3

    runner = one("runner, all", "runner, one")
    bare = one("forks", "forks, none")
    loading = one("forks that load", "forks, none")
    battery = times["battery"]
    spread = (statistics.median(battery), ROUNDS, min(battery), max(battery))
    print("the battery on aligned        %5.3f s (median of %d, %.3f to %.3f)" % spread)
    print("Python and NumPy, up and down %5.3f s" % min(times["forks, none"]))
    print("an empty property, runner     %5.3f ms" % runner)
    for what, fork in (("fork that loads the handler", loading), ("bare fork", bare)):
        print("a %-27s %5.3f ms; runner / fork = %.2f" % (what, fork, runner / fork))


main()
