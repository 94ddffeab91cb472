# SPDX-License-Identifier: BSD-3-Clause
"""The kill matrix: each faulty handler against the properties that have to catch it.

The mutants of handlers/faulty/controls.c fail in the control of the first property that they name,
which has to say so.

A mutant names them in its kills_* symbol (handlers/faulty/mutant.h), and each has to say FAIL,
WARN, CRASH or TIMEOUT.  Each handler property has to kill a mutant, or nobody knows whether it
works.

The matrix that was found has to be the one in docs/kill-matrix.md.

By hand, `make check TESTS=tests/mutants.py` or, with more to see, `make try TEST="..."` of one of
these, and PYTHON=PATH for another interpreter:

    tests/mutants.py [MUTANT...]             those alone
    tests/mutants.py --whole [MUTANT...]     all properties on each, and which others kill it
    tests/mutants.py --write                 docs/kill-matrix.md anew
"""

import concurrent.futures
import functools
import glob
import json
import os
import re
import sys

import elf
import suite

KILLS = {"FAIL", "WARN", "CRASH", "TIMEOUT"}
AT_ONCE = (os.cpu_count() or 2) + 2  # some only wait for what hangs
PREFIX = "kills_"

CONTROLS = os.path.join(suite.SOURCE, "handlers", "faulty", "controls.c")
IN_CONTROL = "it is so already "

# A race shows in one run more likely than not, on a busy machine a little less: a mutant that
# survives has so many rounds more.
ROUNDS = 20

# A start of Python costs as much as this many properties of one handler.
START = 6

MATRIX = os.path.join(suite.SOURCE, "docs", "kill-matrix.md")
TABLE = """%d mutants, %d properties about the handler.

| property | killed by it |
| --- | --- |
"""


def find_mutants(elsewhere=False):
    """Name, value for --handler, and the ids of the properties that have to kill it; or of those
    that kill it elsewhere, where size_t has more bits: they follow "!"."""
    for path in sorted(glob.glob(os.path.join(suite.FAULTY, "*.so"))):
        shared = elf.Object(path)
        for symbol in sorted(shared.symbols):
            if symbol.startswith(PREFIX):
                name = symbol[len(PREFIX):]
                handler = path + ":" + name if name in shared.symbols else path
                here, mark, there = shared.text(symbol).partition("!")
                ids = there if elsewhere else here
                if ids.strip() or not (elsewhere or mark):
                    yield name, handler, ids.split()


def read_catalogue():
    """Returns the ids of the properties."""
    return suite.listed_ids()


@functools.lru_cache(maxsize=None)
def skip_reason(id_):
    """Returns why a sound handler skips the property: this NumPy or this machine has no test for
    it.  None if it does not."""
    result = suite.conform("--handler=aligned", "--json=-", "--run=" + id_)
    (found,) = json.loads(result.stdout)["properties"]
    return found["message"] if found["verdict"] == "SKIP" else None


def verdicts_of(handlers, filters, seconds=3):
    """For each the properties that were run, by id, and what conform printed."""
    words = ["--handler=" + handler for handler in handlers]
    result = suite.conform(*words, "--jobs=1", "--timeout=%d" % seconds, "--json=-", *filters,
                           timeout=600)
    try:
        reports = json.loads(result.stdout)
    except ValueError:
        return [{} for _ in handlers], result
    return [{each["id"]: each for each in report["properties"]}
            for report in (reports if len(handlers) > 1 else [reports])], result


def verdict_of(each):
    """A property that fails because of another one is reported as a SKIP, but has killed.  A SKIP
    excuses a mutant if this NumPy or this machine has no test for it, and no other."""
    if "caused_by" in each:
        return "FAIL"
    return "LEFT OUT" if "unclaimed" in each else each["verdict"]


def survivors(handler, ids, verdicts):
    """The properties that did not kill it, alone and with more time either, and, if they pass, in
    more rounds."""
    alive = [each for each in ids if verdicts.get(each) not in KILLS
             and not (verdicts.get(each) == "SKIP" and skip_reason(each))]
    for each in list(alive):
        for rounds in (1, ROUNDS):
            (more,), _ = verdicts_of(
                [handler], ["--run=" + each, "--repeat=%d" % rounds, "--until-fail", "--strict"],
                seconds=60)
            verdict = verdict_of(more[each]) if each in more else None
            if verdict != "PASS":
                break
        if verdict in KILLS:
            verdicts[each] = verdict
            alive.remove(each)
    return alive


def judge(tap, mutant, verdicts, result, known):
    name, handler, ids = mutant
    unknown = [each for each in ids if each not in known]
    alive = survivors(handler, ids, verdicts)
    why = "%s\n%s" % (" ".join("%s: %s" % (i, verdicts.get(i)) for i in alive), result.stderr)
    if unknown or not ids:
        why = "it names %s" % (unknown or "no property")
    excused = [each for each in ids if each not in alive and verdicts.get(each) not in KILLS]
    what = "%s is killed by %s" % (name, ", ".join(each for each in ids if each not in excused))
    if ids and excused == ids:
        tap.skip("%s is killed by %s" % (name, ", ".join(ids)), skip_reason(ids[0]))
    else:
        what += "; no test here: " + ", ".join(excused) if excused else ""
        tap.point(ids and not alive, what, why)
    return {each: skip_reason(each) for each in excused}


def find_in_controls():
    """Returns the names of the mutants that fail in the control of a property."""
    with open(CONTROLS, encoding="utf-8") as file:
        words = set(re.findall(r"\b\w+", file.read()))
    return sorted(words & {name for name, _, _ in find_mutants()})


def judge_control(tap, mutant, properties):
    """The first property says that it failed in its control, alone if it was left out.  Memory that
    grows counts as it does for free.reclaims: a WARN if the property is a SHOULD."""
    name, handler, ids = mutant
    first = properties.get(ids[0], {})
    if IN_CONTROL not in str(first):
        (alone,), _ = verdicts_of([handler], ["--run=" + ids[0]], seconds=10)
        first = alone.get(ids[0], {})
    what = "%s fails in its control with %s" % (ids[0], name)
    if first.get("verdict") == "SKIP" and skip_reason(ids[0]):
        return tap.skip(what, first["message"])
    warns = name.startswith("keeps_") and first.get("level") == "SHOULD"
    right = first.get("verdict") in ({"WARN"} if warns else KILLS - {"WARN"})
    tap.point(right and IN_CONTROL in str(first), what, first)


def groups(mutants, whole):
    """Returns (mutants, ids) for each start of conform: mutants that name nearly the same."""
    of_ids = {}
    for mutant in mutants:
        of_ids.setdefault(mutant[0] if whole else frozenset(mutant[2]), []).append(mutant)
    if whole:
        return [(some, []) for some in of_ids.values()]
    found = []
    for ids, some in sorted(of_ids.items(), key=lambda each: (-len(each[0]), sorted(each[0]))):
        def added(group):
            return len(some) * len(group[1] - ids) + len(group[0]) * len(ids - group[1])
        best = min(found, key=added, default=None)
        if best and added(best) <= START:
            found.remove(best)
            some, ids = best[0] + some, best[1] | ids
        found.append((some, ids))
    return found


def print_matrix(killers, beside):
    """For each property the mutants that it kills; in brackets those that do not name it."""
    for each in sorted(killers):
        words = sorted(killers[each]) + ["(%s)" % name for name in sorted(beside.get(each, []))]
        if words:
            print("# %-34s %s" % (each, " ".join(words)))


def matrix_page(killers, known, count):
    """Returns docs/kill-matrix.md with a new table of the mutants that each property kills."""
    rows = ["| %s | %s |\n" % (each, ", ".join(sorted(killers.get(each, []))))
            for each in sorted(known)]
    with open(MATRIX, encoding="utf-8") as file:
        head = re.split(r"(?m)^\d+ mutants, ", file.read())[0]
    return head + TABLE % (count, len(rows)) + "".join(rows)


def named(mutants, among=None):
    """For each property the mutants that name it."""
    killers = {}
    for name, _, ids in mutants:
        for each in ids:
            if among is None or each in among:
                killers.setdefault(each, []).append(name)
    return killers


def compare_matrix(tap, page):
    with open(MATRIX, encoding="utf-8") as file:
        kept = file.read()
    tap.point(page == kept, "docs/kill-matrix.md is what was found", "run tests/mutants.py --write")


def write():
    known = read_catalogue()
    mutants = list(find_mutants()) + list(find_mutants(elsewhere=True))
    suite.write(MATRIX, matrix_page(named(mutants), known, len(mutants)))


def chosen(asked_for, elsewhere=False):
    """Those that are asked for, or all."""
    known = {name for each in (False, True) for name, _, _ in find_mutants(each)}
    if set(asked_for) - known:
        sys.exit("mutants.py: no such mutant: " + ", ".join(sorted(set(asked_for) - known)))
    return [m for m in find_mutants(elsewhere) if not asked_for or m[0] in asked_for]


def main():
    if suite.SANITIZED:
        suite.skip_all("with sanitizers the battery does less: loops are short, memory unmeasured")
    if sys.argv[1:] == ["--write"]:
        return write()
    whole = sys.argv[1:2] == ["--whole"]
    asked_for = sys.argv[2:] if whole else sys.argv[1:]
    tap = suite.Tap()
    known = read_catalogue()
    mutants = chosen(asked_for)
    killers = {each: [] for each in known}
    beside, skipped = {}, {}
    in_controls = find_in_controls()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        runs = [(group, pool.submit(verdicts_of, [handler for _, handler, _ in group],
                                    ["--run=" + each for each in ids]))
                for group, ids in groups(mutants, whole)]
        for group, run in runs:
            found, result = run.result()
            for mutant, properties in zip(group, found):
                name, _, ids = mutant
                verdicts = {each: verdict_of(told) for each, told in properties.items()}
                skipped.update(judge(tap, mutant, verdicts, result, known))
                if name in in_controls:
                    judge_control(tap, mutant, properties)
                for each, verdict in verdicts.items():
                    if verdict in KILLS:
                        (killers if each in ids else beside).setdefault(each, []).append(name)
    elsewhere = chosen(asked_for, elsewhere=True)
    for name, _, ids in elsewhere:
        tap.skip("%s is killed by %s" % (name, ", ".join(ids)), "a size_t has 32 bits")
    skipped.update(dict.fromkeys(named(elsewhere), "a size_t has 32 bits"))
    for each in sorted(known) if not asked_for else []:
        reason = None if killers[each] else skipped.get(each) or skip_reason(each)
        if reason:
            tap.skip("%s kills a mutant" % each, reason)
        else:
            tap.point(killers[each], "%s kills a mutant" % each, "none names it and dies")
    print_matrix(killers, beside)
    if not asked_for:
        # what cannot be tested here is believed
        mutants += elsewhere
        found = dict({k: v for k, v in killers.items() if v}, **named(mutants, skipped))
        count = len({name for name, _, _ in mutants})
        compare_matrix(tap, matrix_page(found, known, count))
    tap.end()


if __name__ == "__main__":
    main()
