# SPDX-License-Identifier: BSD-3-Clause
"""What searching finds, how soon, and how short it makes what it shows.

Each mutant is searched alone, with one worker a core, for the longest of the times: those that are
about the four functions (handlers/faulty, by the properties that have to kill them), and those that
are wrong in deep states only (handlers/faulty/deep).

    make bench-search                           in 1 and in 10 seconds
    make bench-search SEARCH="--seconds 1,10,60"
    make bench-search SEARCH="--only 'slab_*' --every 4"

Those of the four functions that damage memory (CORRUPTION) are counted apart as well, and searched
alone with --set corruption: nothing that a search judges tells of a leak, or of an exception.
Those of controls.c are not among them: they abort or refuse at the very sizes of one property's
control.
"""

import argparse
import fnmatch
import itertools
import os
import re
import statistics
import time

import elf
import suite

FAULTY = os.path.join(suite.FAULTY, "faulty.so")
DEEP = os.path.join(suite.FAULTY, "deep.so")
FUNCTIONS = ("malloc.", "calloc.", "realloc.", "free.")
# What a program's memory is damaged by; a mutant is about that where one of these has to kill it.
CORRUPTION = {
    "malloc.disjoint", "malloc.neighbours", "calloc.overflow", "calloc.product", "calloc.zeroed",
    "calloc.zeroed", "free.leaves-recycled-alone", "free.poison-stays-inside",
    "malloc.disjoint", "malloc.extent", "malloc.live-past-4gib", "malloc.neighbours",
    "malloc.past-4gib", "realloc.failure-keeps-block", "realloc.grown-part-usable",
    "realloc.keeps-contents", "realloc.keeps-contents", "malloc.neighbours",
    "realloc.of-calloc", "realloc.past-2gib"}
FUNCTIONS_TITLE = "the four functions"
GOAL_CALLS = 10

# "FAIL    malloc.disjoint  4 steps, of 2037"; the seconds that it took are in the line before.
SHOWN = re.compile(r"^(FAIL|CRASH|TIMEOUT|WARN) +(\S+)  (\d+) steps?, of \d+", re.M)


def mutants_of(path, prefix, wanted):
    """Each with the words that stand at its symbol, where they are wanted."""
    shared = elf.Object(path)
    for symbol in sorted(shared.symbols):
        if symbol.startswith(prefix) and wanted(shared.text(symbol).split()):
            yield symbol[len(prefix):], shared.text(symbol).split()


def about_functions(ids):
    return all(each.startswith(FUNCTIONS) for each in ids)


def of_controls():
    path = os.path.join(suite.SOURCE, "handlers", "faulty", "controls.c")
    with open(path, encoding="utf-8") as file:
        return set(re.findall(r"(?m)^[A-Z_0-9]+\((\w+),", file.read()))


def about_corruption(ids):
    return about_functions(ids) and not CORRUPTION.isdisjoint(ids)


class Found:
    """How long it took, or None; what it was attributed to, and in how many calls it is shown."""

    def __init__(self, seconds, property_id="", calls=None):
        self.seconds, self.property, self.calls = seconds, property_id, calls


def search(handler, seconds):
    """With its whole time for the search; what is shown is cut short after that."""
    begin = time.monotonic()
    result = suite.conform("search", "--handler=" + handler, "%g" % seconds, timeout=seconds + 120)
    took = time.monotonic() - begin
    shown = SHOWN.search(result.stdout)
    if result.code != suite.NOT_CONFORMANT or shown is None:
        return Found(None)
    searched = re.search(r" calls in ([0-9.]+) s", result.stdout)
    took = float(searched[1]) if searched else took
    return Found(took, shown[2], int(shown[3]))


def share(found, within):
    count = sum(each.seconds is not None and each.seconds <= within for each in found)
    return "%3d of %d (%.0f %%)" % (count, len(found), 100 * count / len(found))


def tell(title, found, times):
    print("%-34s %s" % (title, ", ".join("%s in %g s" % (share(found, each), each)
                                         for each in times)))
    calls = sorted(each.calls for each in found if each.calls is not None)
    if calls:
        few = sum(each <= GOAL_CALLS for each in calls)
        print("%-34s %g calls (median), at most %d for %.0f %%"
              % ("    shrunken histories:", statistics.median(calls), GOAL_CALLS,
                 100 * few / len(calls)))


def in_words(found, may_be):
    """In a line of the table.  A crash or a hang is told as scenarios.blocks."""
    if found.seconds is None or found.calls is None:
        return "-" if found.seconds is None else "%.1f s" % found.seconds
    ends = found.property == "scenarios.blocks" and {"crash", "hang"} & set(may_be)
    return "%.1f s %s%s in %d" % (found.seconds, found.property, "" if ends
                                  or found.property in may_be else " (?)", found.calls)


def bench(title, path, mutants, times):
    """Prints a line for each mutant and what was found; with a question mark if the mutant does not
    name it."""
    found = []
    print("\n%s: %d mutants" % (title, len(mutants)))
    for name, may_be in mutants:
        found.append(search("%s:%s" % (path, name), max(times)))
        print("  %-44s %s" % (name, in_words(found[-1], may_be)), flush=True)
    corrupting = [not CORRUPTION.isdisjoint(may_be) for _, may_be in mutants]
    tell(title, found, times)
    if any(corrupting) and title == FUNCTIONS_TITLE:
        tell("  of which damage memory", list(itertools.compress(found, corrupting)), times)


def arguments():
    parser = argparse.ArgumentParser(usage="bench_search.py [--seconds 1,10] [--only GLOB] ...")
    parser.add_argument("--seconds", default="1,10")
    parser.add_argument("--only", default="*", help="mutants of such names")
    parser.add_argument("--every", type=int, default=1, help="each N-th of them")
    parser.add_argument("--set", default="both",
                        choices=["functions", "corruption", "deep", "both"])
    return parser.parse_args()


def main():
    options = arguments()
    times = [float(each) for each in options.seconds.split(",")]
    sets = {"deep": ("deep states", DEEP, "searched_", lambda ids: True),
            "functions": (FUNCTIONS_TITLE, FAULTY, "kills_", about_functions),
            "corruption": ("damage to memory", FAULTY, "kills_", about_corruption)}
    for key in ["deep", "functions"] if options.set == "both" else [options.set]:
        title, path, prefix, wanted = sets[key]
        left_out = of_controls() if wanted is about_corruption else set()
        mutants = [each for each in mutants_of(path, prefix, wanted) if each[0] not in left_out
                   and fnmatch.fnmatch(each[0], options.only)][::options.every]
        if mutants:
            bench(title, path, mutants, times)


main()
