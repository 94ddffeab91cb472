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
import sys

import elf
import suite

KILLS = {"FAIL", "WARN", "CRASH", "TIMEOUT"}
START = 0.05  # what a start of conform takes, as a part of the whole suite's time
AT_ONCE = (os.cpu_count() or 2) + 2  # some only wait for what hangs
PREFIX = "kills_"

# A race shows in one run more likely than not, on a busy machine a little less: a mutant that
# survives has so many rounds more.
ROUNDS = 20

MATRIX = os.path.join(suite.SOURCE, "docs", "kill-matrix.md")
MATRIX_HEAD = """\
# Kill matrix

<!-- Made by `tests/mutants.py --write`; not edited by hand. -->

A property is known to work when a handler that breaks its clause, on purpose and nowhere else,
does not pass it.  Each mutant in `handlers/faulty/` names the properties that have to kill it, and
`make check` sees that they do, and that the table is still this one.

A mutant may be killed by others as well: where the defect hangs the process or overwrites memory,
and where their clause is broken too.  A call that goes wrong is attributed to the property about
such calls.  A property about one thing (another thread, a fork, a refused request) first does the
same without it, and where that goes wrong another one answers for it, if there is one.
`tests/mutants.py --whole` tells which they are.

%d mutants, %d properties about the handler.

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
    """The properties by their ids, and the reasons of those that this NumPy or this machine has no
    test for."""
    result = suite.conform("--handler=aligned", "--json=-", timeout=600)  # also on a busy machine
    tap.point(result.code == 0, "a sound handler passes what the mutants are to fail", result)
    report = json.loads(result.stdout)
    print("# Python %(python)s, NumPy %(numpy)s, %(executable)s" % report["environment"])
    properties = report["properties"]
    skipped = {p["id"]: p["message"] for p in properties if p["verdict"] == "SKIP"}
    return {p["id"]: p for p in properties}, skipped


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


def starts(mutants, known):
    """Lists of mutants for one start of conform, and the properties to run on each of them: those
    that name the same, and others while that takes less time than a start of their own."""
    groups = {}
    for mutant in mutants:
        groups.setdefault(frozenset(mutant[2]), []).append(mutant)

    whole = sum(each["seconds"] for each in known.values())

    def cost(ids, count):
        return count * sum(known[each]["seconds"] for each in ids if each in known) / whole

    planned = []
    for ids, group in groups.items():
        extra = [cost(ids - others, len(there)) + cost(others - ids, len(group))
                 for others, there in planned]
        best = min(range(len(planned)), key=extra.__getitem__, default=None)
        if best is None or extra[best] > START:
            planned.append((ids, group))
        else:
            planned[best] = (planned[best][0] | ids, planned[best][1] + group)
    return [(group, ["--run=" + each for each in sorted(ids)]) for ids, group in planned]


def print_matrix(killers, beside):
    """For each property the mutants that it kills; in brackets those that do not name it."""
    for each in sorted(killers):
        words = sorted(killers[each]) + ["(%s)" % name for name in sorted(beside.get(each, []))]
        if words:
            print("# %-34s %s" % (each, " ".join(words)))


def matrix_page(killers, known, count):
    """docs/kill-matrix.md, from the mutants that each property kills."""
    rows = ["| %s | %s |\n" % (each, ", ".join(sorted(killers.get(each, []))))
            for each in sorted(known)]
    return MATRIX_HEAD % (count, len(rows)) + "".join(rows)


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
    with open(MATRIX, "w", encoding="utf-8") as file:
        mutants = list(find_mutants()) + list(find_mutants(elsewhere=True))
        file.write(matrix_page(named(mutants), known, len(mutants)))


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
        planned = [([each], []) for each in mutants] if whole else starts(mutants, known)
        runs = [(group, pool.submit(verdicts_of, [handler for _, handler, _ in group], filters))
                for group, filters in planned]
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
