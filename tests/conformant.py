# SPDX-License-Identifier: BSD-3-Clause
"""Whole batteries: sound handlers pass.

The handlers are the reference ones, those with each setting that they have, and those of
handlers/sound, which are as unusual as a correct handler can be, or allocators that others made;
and the allocators that deep mutants are made of.
"""

import concurrent.futures
import glob
import itertools
import json
import os

import elf
import suite
from suite import CANNOT_WORK_HERE, CONFORMANT

SOUND = os.path.join(suite.BUILD, "handlers", "sound")
DEEP = os.path.join(suite.FAULTY, "deep.so")
USUAL = {"nep49_handler", "nep49_get_handler"}

# These take minutes for a battery, and are tried as far as they come in some seconds.
SLOW = {"slow", "very_slow"} if suite.LONG else {"very_slow"}
SHORT = "--max-time=8"

# This takes ten times what others do, and waits for `make check-long`, as most settings do.
HEAVY = {"guard"}

# A thread of theirs may be in malloc at a fork, or begin there: a sanitizer's is then locked in the
# child.
BUSY = {"crew_and_files", "helper_thread"}

# So many have their batteries with one start of conform.
AT_ONCE = 5

# What NumPy does with a handler is seen with these, one of which is unusual in what NumPy sees of
# it, and with the first of SETTINGS: the others wait with it for `make check-long`.
TO_NUMPY = {"always_moves", "shift_header"}
# So many of the sound ones, each as unusual as it can be: the others wait as well.
SOUND_ALWAYS = {"always_moves", "null_for_zero", "quota_64_mib", "takes_the_gil"}
PART = ["--skip=%s.*" % group
        for group in ("context", "interop", "numpy", "owndata", "runtime", "scenarios")]

# Good practice that an unusual handler may leave: only the reference ones are held to it.
PRACTICE = {"performance.large-blocks-advised"}

# What a library does itself: the handler, what the handler needs then, and what is a WARN for it.
OF_LIBRARIES = [("mimalloc", b"libmimalloc.so.3", {"free.reclaims-huge"})]

# These differ in where their memory comes from; `make check-long` runs all of the properties.
BY_ORIGIN = {"hugepage", "jemalloc", "mimalloc", "numa", "pinned", "trace"}
SMALL = ["--run=%s.*" % group for group in ("abi", "calloc", "claim")]

# The name of a reference handler, options, environment.  tests/reports.py always has the first.
SETTINGS = [
    ("aligned", ["--strict", "--seed=2", "--jobs=4"], {}),
    ("aligned", [], {"NEP49_ALIGNMENT": "16"}),
    ("aligned", ["--strict", "--seed=1", "--jobs=1"], {}),
    ("aligned", [], {"NEP49_ALIGNMENT": "4096"}),
    ("aligned", [], {"NEP49_ALIGNMENT": "2097152"}),
    ("shift_header", ["--strict", "--seed=3"], {}),
    ("shift_header", ["--repeat=3"], {}),
    ("arena", [], {"NEP49_ARENA_SIZE": "4K"}),
    ("cache", [], {"NEP49_CACHE_BLOCKS": "0"}),
    ("guard", [], {"NEP49_GUARD": "before"}),
    ("guard", [], {"NEP49_GUARD_KEEP": "0"}),
    ("hugepage", [], {"NEP49_HUGEPAGE_FROM": "1"}),
    ("hugepage", [], {"NEP49_HUGEPAGE_POOL": "1"}),
    ("numa", [], {"NEP49_NUMA": "bind:0", "NEP49_NUMA_FROM": "64K"}),
    ("numa", [], {"NEP49_NUMA": "interleave"}),
    ("shm", [], {"NEP49_SHM_FROM": "1"}),
    ("trace", [], {"NEP49_TRACE_DEPTH": "1"}),
]


def reference_handlers():
    """What each is called, and its --handler."""
    for name in suite.conform("handlers").stdout.split():
        if suite.LONG or name not in HEAVY | {SETTINGS[0][0]}:  # which runs whole anyway
            yield name, name


def sound_handlers():
    for path in sorted(glob.glob(os.path.join(SOUND, "*.so"))):
        symbols = set(elf.Object(path).symbols)
        if symbols & USUAL and suite.LONG:
            yield "sound " + os.path.basename(path), path
        for name in sorted(symbols - USUAL - SLOW - (BUSY if suite.SANITIZED else set())):
            if not name.startswith("_") and (suite.LONG or name in SOUND_ALWAYS):
                yield "sound " + name, path + ":" + name
    deep = sorted(name for name in elf.Object(DEEP).symbols
                  if name.endswith("_sound") and not name.startswith("_"))
    for name in deep if suite.LONG else []:  # tests/deep.py has all of them do much
        yield "sound deep " + name, DEEP + ":" + name


def sound_runs():
    """Handlers, options and environment of each run that has to go well."""
    all_of_them = [*reference_handlers(), *sound_handlers()]
    whole = [each for each in all_of_them if suite.LONG or each[1].rpartition(":")[2] in TO_NUMPY]
    small = [each for each in all_of_them if each[0] in BY_ORIGIN and not suite.LONG]
    rest = [each for each in all_of_them if each not in whole + small]
    for handlers, options in ((iter(whole), []), (iter(rest), PART), (iter(small), SMALL)):
        while some := list(itertools.islice(handlers, AT_ONCE)):
            yield some, options, {}
    for name, options, env in SETTINGS if suite.LONG else []:
        words = options + ["%s=%s" % pair for pair in env.items()]
        yield [("%s %s" % (name, " ".join(words)), name)], options, env


def batteries(handlers, options, env):
    """Of each how it ended, and what each property that did not pass had to say.

    Several run at once, on a machine that may be busy: they have more time than usual, for one that
    ran out of it would be INCOMPLETE.
    """
    words = ["--handler=" + handler for _, handler in handlers]
    result = suite.conform("--json=-", "--jobs=1", "--timeout=60", "--max-time=280", *words,
                           *options, timeout=300 * len(handlers), env=env)
    try:
        reports = json.loads(result.stdout)
    except ValueError:
        return [(result, None, [])] * len(handlers)
    return [found_in(report, result.stderr)
            for report in (reports if len(handlers) > 1 else [reports])]


def found_in(report, stderr):
    others = [p for p in report["properties"] if p["verdict"] not in ("PASS", "SKIP")]
    told = "\n".join("%(verdict)s %(id)s: %(message)s" % each for each in others)
    return (suite.Result(report["exit_code"], told, stderr), report,
            [p["id"] for p in others if p["target"] == "handler"])


def judge_sound(tap, what, result, report, others):
    if result.code == CANNOT_WORK_HERE:
        tap.skip(what, report["properties"][0]["message"] if report else result.stderr.strip())
        return
    others = set(others) - (PRACTICE if what.startswith("sound ") else set())
    if what == "sound pymem_raw":  # Python counts its blocks, and so does NumPy
        others.discard("numpy.tracemalloc-once")
    for name, library, known in OF_LIBRARIES:
        if what == name and report:
            with open(report["subject"]["file"], "rb") as file:
                others -= known if library in file.read() else set()
    held = result.code == CONFORMANT and report is not None and report["conformant"] and not others
    reasons = report and all(p["message"] for p in report["properties"] if p["verdict"] == "SKIP")
    tap.point(held and reasons, what + " is conformant", result)


def slow_battery(name):
    return batteries([(name, os.path.join(SOUND, "sound.so:" + name))], [SHORT], {})[0]


def judge_slow(tap, name, result, report, others):
    """A handler that takes its time is not wrong: what it does not come to is INCOMPLETE."""
    bad = [p["id"] for p in report["properties"] if p["id"] in others
           and p["verdict"] != "INCOMPLETE" and p["id"] not in PRACTICE] if report else others
    tap.point(report and result.code == suite.INCOMPLETE and not bad,
              name + " is not called wrong for it", result)


def main():
    tap = suite.Tap()
    executor = concurrent.futures.ThreadPoolExecutor
    with executor() as waits, executor(os.cpu_count() or 2) as pool:
        slow = [(name, waits.submit(slow_battery, name)) for name in sorted(SLOW)]
        runs = [(each[0], pool.submit(batteries, *each)) for each in sound_runs()]
        for handlers, run in runs:
            for (what, _), found in zip(handlers, run.result()):
                judge_sound(tap, what, *found)
        for name, run in slow:
            judge_slow(tap, name, *run.result())
    tap.end()


main()
