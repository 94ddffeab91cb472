# SPDX-License-Identifier: BSD-3-Clause
"""What searching finds, how soon, and how short it makes what it shows.

Each mutant is searched alone, with one worker a core, for the longest of the times: those that are
about the four functions (handlers/faulty, by the properties that have to kill them), and those that
are wrong in deep states only (handlers/faulty/deep).  If there is a clang, the same
search runs on mutants that were compiled with its coverage.

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
import shutil
import statistics
import subprocess
import time

import elf
import suite

FAULTY = os.path.join(suite.FAULTY, "faulty.so")
DEEP = os.path.join(suite.FAULTY, "deep.so")
FUNCTIONS = ("malloc.", "calloc.", "realloc.", "free.")
# What a program's memory is damaged by; a mutant is about that where one of these has to kill it.
CORRUPTION = {
    "calloc.disjoint", "calloc.neighbours", "calloc.overflow", "calloc.product", "calloc.zeroed",
    "calloc.zeroed-when-reused", "free.leaves-recycled-alone", "free.poison-stays-inside",
    "malloc.disjoint", "malloc.extent", "malloc.live-past-4gib", "malloc.neighbours",
    "malloc.past-4gib", "realloc.failure-keeps-block", "realloc.grown-part-usable",
    "realloc.keeps-contents", "realloc.keeps-contents-again", "realloc.neighbours",
    "realloc.of-calloc", "realloc.past-2gib"}
FUNCTIONS_TITLE = "the four functions"
GOAL_CALLS = 10

# "FAIL    malloc.disjoint  4 steps, of 2037"; the seconds that it took are in the line before.
SHOWN = re.compile(r"^(FAIL|CRASH|TIMEOUT|WARN) +(\S+)  (\d+) steps?, of \d+", re.M)
CLANG = os.environ.get("FUZZ_CC", "clang")
COVERAGE = ["-fsanitize-coverage=trace-pc-guard", "-O2", "-g", "-pthread", "-fvisibility=hidden",
            "-std=gnu11", "-w"]


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


def sources_of(path):
    """What the Makefile makes the object of."""
    faulty = os.path.join(suite.SOURCE, "handlers", "faulty")
    name = os.path.basename(path).partition(".")[0]
    with open(os.path.join(faulty, "Makefile.am"), encoding="utf-8") as file:
        listed = re.search(name + r"_la_SOURCES = \\\n((?:.*\\\n)*.*)", file.read())[1]
    return [os.path.join(faulty, each) for each in re.findall(r"\S+\.c\b", listed)]


def compile_with_coverage(path, folder):
    """The same object, or None where clang cannot."""
    if shutil.which(CLANG) is None:
        return None
    output = os.path.join(folder, os.path.basename(path))
    built = subprocess.run(
        [CLANG, "-shared", "-fPIC", "-iquote", os.path.join(suite.SOURCE, "handlers"),
         "-o", output] + COVERAGE + sources_of(path), capture_output=True, text=True, check=False)
    if built.returncode != 0:
        print("# with coverage: " + built.stderr.splitlines()[0])
    return output if built.returncode == 0 else None


class Found:
    """How long it took, or None; what it was attributed to, and in how many calls it is shown."""

    def __init__(self, seconds, property_id="", calls=None):
        self.seconds, self.property, self.calls = seconds, property_id, calls


def search(handler, seconds):
    """With its whole time for the search; what is shown is cut short after that."""
    begin = time.monotonic()
    result = suite.conform("--handler=" + handler, "--search=%g" % seconds, timeout=seconds + 120)
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
    """In a line of the table.  A crash or a hang is told as search.model."""
    if found.seconds is None or found.calls is None:
        return "-" if found.seconds is None else "%.1f s" % found.seconds
    ends = found.property == "search.model" and {"crash", "hang"} & set(may_be)
    return "%.1f s %s%s in %d" % (found.seconds, found.property, "" if ends
                                  or found.property in may_be else " (?)", found.calls)


def bench(title, mutants, ways, times):
    """Prints a line for each mutant, and what was found in each way; with a question mark where the
    mutant does not name it."""
    found = {way: [] for way in ways}
    print("\n%s: %d mutants" % (title, len(mutants)))
    for name, may_be in mutants:
        words = []
        for way, (drive, path) in ways.items():
            each = drive("%s:%s" % (path, name), max(times))
            found[way].append(each)
            words.append("%s %s" % (way, in_words(each, may_be)))
        print("  %-44s %s" % (name, "; ".join(words)), flush=True)
    corrupting = [not CORRUPTION.isdisjoint(may_be) for _, may_be in mutants]
    for way in ways:
        tell("%s, %s" % (title, way), found[way], times)
        if any(corrupting) and title == FUNCTIONS_TITLE:
            tell("  of which damage memory",
                 list(itertools.compress(found[way], corrupting)), times)


def arguments():
    parser = argparse.ArgumentParser(usage="bench_search.py [--seconds 1,10] [--only GLOB] ...")
    parser.add_argument("--seconds", default="1,10")
    parser.add_argument("--only", default="*", help="mutants of such names")
    parser.add_argument("--every", type=int, default=1, help="each N-th of them")
    parser.add_argument("--set", default="both",
                        choices=["functions", "corruption", "deep", "both"])
    parser.add_argument("--no-coverage", action="store_true")
    return parser.parse_args()


def ways_for(options, path, folder):
    """The name of each, and what it drives and on which object."""
    ways = {"search": (search, path)}
    covered = None if options.no_coverage else compile_with_coverage(path, folder)
    if covered is not None:
        ways["with coverage"] = (search, covered)
    return ways


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
        with suite.scratch() as folder:
            if mutants:
                bench(title, mutants, ways_for(options, path, folder), times)


main()
