# SPDX-License-Identifier: BSD-3-Clause
"""search: histories that are made up, judged, and cut short; on sound handlers and on mutants."""

import glob
import os
import platform
import re
import signal
import subprocess
import tempfile
import time

import suite

FAULTY = os.path.join(suite.FAULTY, "faulty.so")
SOUND = os.path.join(suite.BUILD, "handlers", "sound", "sound.so")

# Handlers, and what is found: the id, the most steps that are left, and words of them.  How short a
# long history gets depends on how fast the machine is: bench-search measures that.
ANY = 1 << 20
LONGEST = 180  # seconds; half of the searches for a rare defect find it in 30
FEW = 4  # of what is quiet
FOUND = {
    "realloc_does_not_copy": ("realloc.keeps-contents", 3, r"= realloc\("),
    "calloc_ignores_elsize": (r"calloc\.zeroed|malloc\.too-large", 3, r"= calloc\("),
    # Another block shows it, or the block itself when it moves.
    "malloc_mirrors_its_half": (r"malloc\.neighbours|realloc\.keeps-contents", 2, r"= \w*alloc\("),
    "shrink_leaves_pages_to_calloc": ("calloc.zeroed", 4, r"= realloc\("),
    # Which of libc's blocks it spoils is the same each time it is tried.
    "free_poisons_rounded_size": (r"[a-z.-]+", 4, "free"),
    "long_run_widens_its_header": (r"[a-z]+\.alignment", ANY, ""),  # after 100,000 calls
    "search_takes_the_resized_for_clean": (r"[a-z.-]+", ANY, ""),
    "thread_number_six_is_refused": ("malloc.lasts", ANY, r"a new thread, which then ends:"),
    "thread_is_refused_at_its_end": ("malloc.lasts", ANY, r"while its variables are destroyed:"),
}

QUIET_ONES = ["aligned", "arena", "cache"] + [
    SOUND + ":" + name for name in ("always_moves", "null_for_zero", "size_classes", "pymem_raw")]
MORE_QUIET_ONES = ["guard", "shift_header", "trace", "jemalloc", "mimalloc"] + [
    SOUND + ":" + name for name in ("guard_pages", "helper_thread", "quota_16_mib", "slow",
                                    "spins", "thread_arenas", "keeps_32_mib")]

SEARCH_LINE = (r"\d+ histor(?:y|ies) of \d+ calls in [\d.]+ s, "
               r"[\d.]+ million a second of a process; "
               r"\d+ kinds of calls, \d+ edges of sizes; seed \d+\n")


def quiet_ones(tap):
    """No sound handler is blamed."""
    seconds = 10 if suite.LONG else 0.3
    for handler in QUIET_ONES + MORE_QUIET_ONES if suite.LONG else QUIET_ONES[::FEW]:
        result = suite.conform("search", "-H", handler, "%g" % seconds)
        good = result.code == 0 and re.match(SEARCH_LINE, result.stdout)
        tap.point(good, "nothing is found in " + os.path.basename(handler), result)


def found_ones(tap):
    for name, (id_, most, words) in FOUND.items():
        if most == ANY and not suite.LONG:
            continue  # it has half a minute to be cut short
        if suite.SANITIZED and name == "calloc_ignores_elsize":
            continue  # ends by the sanitizer, and not by the model
        seconds = LONGEST * suite.SLOWDOWN  # it ends once something is found
        result = suite.conform("search", "-H", FAULTY + ":" + name, "%d" % seconds,
                               timeout=2 * LONGEST)
        told = re.search(r"(?m)^(?:FAIL|CRASH) +(\S+)  (\d+) steps?, of \d+", result.stdout)
        good = (result.code == 1 and told and re.fullmatch(id_, told[1]) and int(told[2]) <= most
                and re.search(words, result.stdout))
        tap.point(good, "%s is found and cut short" % name, result)


def hangs(tap):
    """A call that does not come back is told, however little of the search's time is left."""
    handler = FAULTY + ":malloc_failure_keeps_its_lock"
    result = suite.conform("search", "-H", handler, "2", "--timeout=2")
    tap.point(result.code == 1 and re.search(r"(?m)^TIMEOUT +scenarios\.blocks  ", result.stdout),
              "a hang is found in a search that is no longer than a call may take", result)


def starved(tap):
    """One that others leave no processor is not taken for one that hangs.  Nor is one that maps
    each block, with hundreds of threads."""
    busy = [subprocess.Popen([suite.PYTHON, "-c", "while True: pass"])
            for _ in range(3 * os.cpu_count())]
    idle = {"preexec_fn": lambda: os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))}
    try:
        # Shrinking may take half a minute more.
        results = [suite.run([suite.CONFORM, "search", "-H", handler, "%d" % seconds,
                              "--timeout=%g" % limit], timeout=300, **more)
                   for handler, seconds, limit, more in (("aligned", 6, 0.3, idle),
                                                         (SOUND + ":guard_pages", 20, 1, {}),
                                                         (SOUND + ":always_moves", 20, 1, {}))]
    finally:
        for each in busy:
            each.kill()
            each.wait()
    # 5: what seemed to hang did not, and there was no time to see that again.
    for result, name in zip(results, ("a search that is starved blames nobody",
                                      "nor one of a handler that is slow",
                                      "nor of one that fills the gigabytes it frees")):
        tap.point(result.code in (0, 5)
                  and not re.search(r"(?m)^(FAIL|CRASH|TIMEOUT)", result.stdout), name, result)


def stopped_one(tap):
    """What shows where a thread is stopped between two instructions and nowhere else."""
    if suite.SANITIZED or platform.machine() != "x86_64":
        tap.skip("a list without tags is found", "no call is stopped here")
        return
    handler = os.path.join(suite.FAULTY, "deep.so:stack_has_no_tag")
    result = suite.conform("search", "-H", handler, "%d" % LONGEST, "--seed=1",
                           "--repro=folder", timeout=2 * LONGEST)
    told = re.search(r"(?m)^(?:FAIL|CRASH) +\S+  (\d+) steps, of \d+", result.stdout)
    tap.point(result.code == 1 and told and int(told[1]) <= 20
              and re.search(r"(?m), stopped at \+0x[0-9a-f]+ of its object; meanwhile$",
                            result.stdout), "a list without tags is found", result)
    tap.point(not re.search(r"block \d{6}", result.stdout), "blocks are few, and have such numbers",
              result)
    tap.point("no file of C: " in result.stdout,
              "and why there is no file of C", result)


def other_formats(tap):
    """As a trace and as a file of C, which show it too."""
    handler = FAULTY + ":realloc_does_not_copy"
    result = suite.conform("search", "-H", handler, "--trace=x.trace", "--repro=folder")
    tap.point(result.code == 1 and os.path.exists("x.trace"), "a trace is written", result)
    result = suite.conform("replay", "-H", handler, "x.trace")
    tap.point(result.code == 1 and "FAIL    realloc.keeps-contents" in result.stdout,
              "replay of it shows the same", result)
    result = suite.conform("replay", "-H", "aligned", "x.trace")
    tap.point(result.code == 0, "and nothing of a sound handler", result)
    files = glob.glob("folder/*.c")
    tap.point(files == ["folder/realloc.keeps-contents.c"], "a file of C is written", files)
    for file in [] if suite.SANITIZED else files:
        suite.build(file, "reproducer", "-ldl", "-lm", "-pthread", shared=False)
        result = suite.run(["./reproducer"])
        shown = result.code == 1 and "reproduced: contents lost by realloc" in result.stdout
        tap.point(shown, "which shows it", result)


def seeds(tap):
    """The same seed makes the same histories."""
    name = "search_takes_the_resized_for_clean" if suite.LONG else "realloc_copies_words"
    handler = FAULTY + ":" + name
    shown = [suite.conform("search", "-H", handler, "-j1", "--seed=%d" % seed, "-q").stdout
             for seed in (5, 5, 6)]
    shrunk = [re.sub(r"(?m), of \d+$| at 0x[0-9a-f]+", "", text) for text in shown]
    if suite.SANITIZED:
        tap.skip("the same seed, the same history",
                 "AddressSanitizer places blocks at random, from which sizes are learned")
    else:
        tap.point(shrunk[0] and shrunk[0] == shrunk[1], "the same seed, the same history", shown)


def unwritable_trace(tap):
    """It is said before anything is searched."""
    result = suite.conform("search", "-H", "aligned", "9", "--trace=nowhere/x.trace")
    told = re.fullmatch(r"conform: --trace=nowhere/x\.trace: No such file.*\n", result.stderr)
    tap.point(result.code == 2 and told, "a trace that cannot be written", result)
    suite.conform("search", "-H", "aligned", "0.1", "--trace=y.trace")
    tap.point(not os.path.exists("y.trace"), "no trace is left where nothing is found")


def interrupted(tap):
    process = subprocess.Popen(  # what a shell starts behind & ignores SIGINT
        [suite.CONFORM, "search", "-H", "aligned", "60"], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=20 * suite.SLOWDOWN)
    good = process.returncode == -signal.SIGINT and re.match(SEARCH_LINE, stdout)
    tap.point(good and stderr == "conform: interrupted\n", "Ctrl-C tells what was done",
              "%d %s %s" % (process.returncode, stdout, stderr))


def main():
    tap = suite.Tap()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        found_ones(tap)
        if suite.LONG:
            stopped_one(tap)
            starved(tap)
            hangs(tap)
        other_formats(tap)
        seeds(tap)
        unwritable_trace(tap)
        interrupted(tap)
        quiet_ones(tap)
        os.chdir("/")
    tap.end()


main()
