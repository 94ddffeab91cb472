# SPDX-License-Identifier: BSD-3-Clause
"""How often a race is found, by the width of its window in instructions.

The mutants are those of handlers/faulty/races.c.  Each run has a seed of its own; BENCH_RACES is
how many there are for each mutant.
"""

import json
import os
import statistics
import subprocess

import machine
import suite

RUNS = int(os.environ.get("BENCH_RACES", "100"))
PROPERTY = "threads.concurrent"
FAULTY = os.path.join(suite.FAULTY, "faulty.so")
WINDOWS = (10, 20, 35, 50, 75, 100, 150, 200, 300, 500)
MUTANTS = ["race_of_%d_instructions" % window for window in WINDOWS] + [
    "list_takes_the_same_first_for_the_same_list",
]


def run(mutant, seed):
    """Whether it was found, and the seconds that the property took."""
    result = subprocess.run(
        [os.environ["CONFORM"], "--handler=%s:%s" % (FAULTY, mutant), "--run=" + PROPERTY,
         "--seed=%d" % seed, "--jobs=1", "--json=-"], capture_output=True, text=True, check=False)
    found, = json.loads(result.stdout)["properties"]
    return found["verdict"] in ("FAIL", "CRASH", "TIMEOUT"), found["seconds"]


def main():
    print(machine.describe())
    for mutant in MUTANTS:
        ends = [run(mutant, seed) for seed in range(1, RUNS + 1)]
        print("%-43s found in %3d of %d runs, %.0f ms (median)"
              % (mutant, sum(found for found, _ in ends), RUNS,
                 statistics.median(seconds for _, seconds in ends) * 1e3), flush=True)


main()
