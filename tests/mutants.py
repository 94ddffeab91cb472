# SPDX-License-Identifier: BSD-3-Clause
"""The kill matrix: each faulty handler against the properties that have to catch it.

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

# A race shows in one run more likely than not, on a busy machine a little less: a mutant that
# survives has so many rounds more.
ROUNDS = 20

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


def read_catalogue(tap):
    """The ids of the properties, and the reasons of those that this NumPy or this machine has no
    test for."""
    result = suite.conform("--handler=aligned", "--json=-", timeout=600)  # also on a busy machine
    tap.point(result.code == 0, "a sound handler passes what the mutants are to fail", result)
    report = json.loads(result.stdout)
    print("# Python %(python)s, NumPy %(numpy)s, %(executable)s" % report["environment"])
    properties = report["properties"]
    skipped = {p["id"]: p["message"] for p in properties if p["verdict"] == "SKIP"}
    return [p["id"] for p in properties], skipped


def verdicts_of(handlers, filters, seconds=3):
    """For each the verdict of each property that was run, and what conform printed."""
    words = ["--handler=" + handler for handler in handlers]
    result = suite.conform(*words, "--jobs=1", "--timeout=%d" % seconds, "--json=-", *filters,
                           timeout=600)
    try:
        reports = json.loads(result.stdout)
    except ValueError:
        return [{} for _ in handlers], result
    return [{each["id"]: verdict_of(each) for each in report["properties"]}
            for report in (reports if len(handlers) > 1 else [reports])], result


def verdict_of(each):
    """A SKIP excuses a mutant where this NumPy or this machine has no test for it, and no other."""
    left_out = "caused_by" in each or "unclaimed" in each
    return "LEFT OUT" if left_out else each["verdict"]


def survivors(handler, ids, verdicts, skipped):
    """The properties that did not kill it, alone and with more time either, and, if they pass, in
    more rounds."""
    alive = [each for each in ids if verdicts.get(each) not in KILLS
             and not (each in skipped and verdicts.get(each) == "SKIP")]
    for each in list(alive):
        for rounds in (1, ROUNDS):
            (more,), _ = verdicts_of(
                [handler], ["--run=" + each, "--repeat=%d" % rounds, "--until-fail", "--strict"],
                seconds=60)
            if more.get(each) != "PASS":
                break
        if more.get(each) in KILLS:
            verdicts[each] = more[each]
            alive.remove(each)
    return alive


def judge(tap, mutant, verdicts, result, known, skipped):
    name, handler, ids = mutant
    unknown = [each for each in ids if each not in known]
    alive = survivors(handler, ids, verdicts, skipped)
    why = "%s\n%s" % (" ".join("%s: %s" % (i, verdicts.get(i)) for i in alive), result.stderr)
    if unknown or not ids:
        why = "it names %s" % (unknown or "no property")
    excused = [each for each in ids if each not in alive and verdicts.get(each) not in KILLS]
    what = "%s is killed by %s" % (name, ", ".join(each for each in ids if each not in excused))
    if ids and excused == ids:
        tap.skip("%s is killed by %s" % (name, ", ".join(ids)), skipped[ids[0]])
        return
    if excused:
        what += "; no test here: " + ", ".join(excused)
    tap.point(ids and not alive, what, why)


def groups(mutants, whole):
    """Lists of mutants for one start of conform each: they name the same properties."""
    of_ids = {}
    for mutant in mutants:
        of_ids.setdefault(mutant[0] if whole else tuple(mutant[2]), []).append(mutant)
    return list(of_ids.values())


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
    known, _ = read_catalogue(suite.Tap())
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
    known, skipped = read_catalogue(tap)
    mutants = chosen(asked_for)
    killers = {each: [] for each in known}
    beside = {}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        runs = [(group, pool.submit(verdicts_of, [handler for _, handler, _ in group],
                                    [] if whole else ["--run=" + each for each in group[0][2]]))
                for group in groups(mutants, whole)]
        for group, run in runs:
            found, result = run.result()
            for mutant, verdicts in zip(group, found):
                name, _, ids = mutant
                judge(tap, mutant, verdicts, result, known, skipped)
                for each, verdict in verdicts.items():
                    if verdict in KILLS:
                        (killers if each in ids else beside).setdefault(each, []).append(name)
    elsewhere = chosen(asked_for, elsewhere=True)
    for name, _, ids in elsewhere:
        tap.skip("%s is killed by %s" % (name, ", ".join(ids)), "a size_t has 32 bits")
    skipped.update((each, "a size_t has 32 bits") for each in named(elsewhere))
    for each in sorted(known) if not asked_for else []:
        if each in skipped and not killers[each]:
            tap.skip("%s kills a mutant" % each, skipped[each])
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
