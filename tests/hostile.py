# SPDX-License-Identifier: BSD-3-Clause
"""Subjects that do their worst: what it costs, and that it costs nothing else.  Interpreters, too.

Whatever the subject does, the reports are complete, well-formed, clean and agree with each other,
the exit code is right, the run ends in time, and nothing of it is left: no process, no file.

    tests/hostile.py [ACT...]
"""

import multiprocessing
import os
import resource
import subprocess
import sys
import time
import traceback

import readers
import suite
from suite import CANNOT_LOAD, USAGE

HANDLER = os.path.join(suite.SOURCE, "handlers", "faulty", "hostile", "hostile.c")

# What is run: the first property, some that call calloc or, where there is time, all that do, and
# one that does not.
CALLING = ["zeroed", "overflow"] if not suite.LONG else ["*"]
CALLING = ["calloc." + each for each in CALLING]
CHOSEN = ["--run=" + each for each in ["abi.loads", *CALLING, "malloc.extent"]]
AT_MOST = 60  # seconds for a run of these, on a slow and busy machine
AT_ONCE = 4  # acts: most of the time they wait for a limit

ANY = set(suite.VERDICTS) - {"BROK"}
CRASH, TIMEOUT = {"CRASH"}, {"TIMEOUT"}
GOES_ON = {"PASS"}
CHANGED = {"FAIL", "SKIP"}  # the struct is looked at when a property ends

# The act, what it may cost abi.loads when it is done while the object is loaded, and what it may
# cost a property that calls calloc.  Properties that do not must not notice.
ACTS = [
    ("exits", CRASH, CRASH),
    ("exits_in_order", CRASH, CRASH),
    ("aborts", CRASH, CRASH),
    ("writes_to_null", CRASH, CRASH),
    ("kills_itself", CRASH, CRASH),
    ("kills_itself_namelessly", CRASH, CRASH),
    ("becomes_another_program", CRASH, CRASH),
    ("overflows_the_stack", CRASH, CRASH),
    ("throws_an_exception", CRASH, CRASH),
    # A thread that ends inside a call leaves frames, which AddressSanitizer reports
    ("ends_its_thread", CRASH, CRASH | TIMEOUT | ({"FAIL"} if suite.SANITIZED else set())),
    ("hangs", TIMEOUT, TIMEOUT),
    ("spins", TIMEOUT, TIMEOUT),
    ("stops_itself", TIMEOUT, TIMEOUT),
    ("hangs_deaf", TIMEOUT, TIMEOUT),
    ("crashes_for_ever", TIMEOUT, TIMEOUT),
    ("hides_in_its_parents_group", TIMEOUT, TIMEOUT),
    ("floods", GOES_ON, GOES_ON),
    ("floods_until_taken", TIMEOUT, TIMEOUT),
    ("prints_a_gigabyte", GOES_ON, GOES_ON),
    ("replaces_descriptors", GOES_ON, GOES_ON),
    ("closes_all_descriptors", GOES_ON, GOES_ON),
    ("takes_the_signals", GOES_ON, GOES_ON),
    ("eats_all_memory", ANY | {"BROK"}, ANY | {"BROK"}),
    ("forks_and_both_return", GOES_ON, ANY),  # both processes then write the results of rows
    ("leaves_a_chain", GOES_ON, GOES_ON),
    ("scribbles_over_shared_memory", ANY, ANY),
    ("scribbles_and_exits", CRASH, CRASH),
    ("leaves_a_process_that_scribbles", ANY | {"BROK"}, ANY | {"BROK"}),
    ("renames_itself_with_controls", GOES_ON, CHANGED),
    ("renames_itself_with_markup", GOES_ON, CHANGED),
    ("renames_itself_with_a_point", GOES_ON, CHANGED),
    ("renames_itself_with_broken_utf8", GOES_ON, CHANGED),
    ("renames_itself_without_end", GOES_ON, CHANGED),
    ("kills_its_parent", CRASH, CRASH),
    ("kills_its_parent_and_stays", CRASH, CRASH),
    ("stops_its_parent", TIMEOUT, TIMEOUT),
    ("kills_its_group", CRASH, CRASH),
    ("kills_its_parents_group", CRASH, CRASH),
]

# These reach other processes than their own, so that there is a second worker.  It is there besides
# where one would wait for a hang after the other.
REACH_OTHERS = {
    "eats_all_memory", "hides_in_its_parents_group", "kills_its_group", "kills_its_parent",
    "kills_its_parent_and_stays", "kills_its_parents_group", "leaves_a_process_that_scribbles",
    "scribbles_and_exits", "scribbles_over_shared_memory", "stops_its_parent",
}


def limit_memory():
    """Of conform and all of its processes, each: Python and NumPy want 300 MiB of addresses."""
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


def expected_ids():
    return suite.listed_ids(*CHOSEN)


def is_bad(verdict):
    return verdict in ("FAIL", "CRASH", "TIMEOUT")


def right_code(properties):
    verdicts = [each["verdict"] for each in properties]
    if any(map(is_bad, verdicts)):
        return 1
    short = any(p["verdict"] == "INCOMPLETE" and p["level"] == "MUST" and p["target"] == "handler"
                for p in properties)
    return 4 if "BROK" in verdicts else 5 if short else 0


class Findings:
    """As suite.Tap, of what did not hold alone."""

    def __init__(self):
        self.wrong = []

    def point(self, held, name, why=""):
        if not held:
            self.wrong.append("%s: %s" % (name, why))

    def skip(self, name, reason):
        pass


def read_all(report, ids):
    """What is wrong with the reports as such."""
    findings = Findings()
    told = [each["id"] for each in report.json["properties"]]
    findings.point(told == ids and report.json["expected"] == len(ids), "complete", told)
    readers.same_verdicts(findings, "", report)
    readers.clean(findings, "", report)
    findings.point(report.json["exit_code"] == report.result.code, "the code in JSON")
    if report.result.code != CANNOT_LOAD:
        readers.counts(findings, "", report)
        findings.point(not report.result.stderr, "no stderr")
    return findings.wrong


def complaints(report, when, allowed):
    """What is not true in them."""
    verdicts = {each["id"]: each["verdict"] for each in report.json["properties"]}
    causes = {each["id"]: each["caused_by"] for each in report.json["properties"]
              if "caused_by" in each}
    wrong = []
    if report.result.code != right_code(report.json["properties"]):
        wrong.append("the exit code should be %d" % right_code(report.json["properties"]))
    for name, verdict in verdicts.items():
        mine = allowed if name.startswith("calloc.") == (when == "late") else {"PASS"}
        if when == "early" and name != "abi.loads":
            mine = ANY | allowed if verdicts["abi.loads"] == "PASS" else {"SKIP"}
        if verdict == "SKIP":  # what a failed property caused counts as that one
            verdict = verdicts.get(causes.get(name), verdict)
        if verdict not in mine:
            wrong.append("%s: %s, and not %s" % (name, verdict, " or ".join(sorted(mine))))
    return wrong


def run(ids, handler, seconds=10, jobs=1, **more):
    report = readers.Report(handler, "--timeout=%d" % (seconds * suite.SLOWDOWN),
                            "--jobs=%d" % jobs, *CHOSEN, timeout=AT_MOST, **more)
    wrong = read_all(report, ids)
    time.sleep(0.05)
    left = suite.end_orphans()
    if left:
        wrong.append("%d processes are left" % left)
    files = set(os.listdir(".")) - {"r.json", "r.tap", "r.xml"}
    if files:
        wrong.append("files are left: %s" % files)
    return report, wrong


def build_handlers():
    """Each has all acts, of which its environment names one."""
    acts = " ".join("ACT_NAMED(%s)" % act for act, _, _ in ACTS)
    for when in ("early", "late"):
        suite.build(HANDLER, when + ".so", "-w", "-D" + when.upper(), "-DACTS=" + acts)


def play(act, when, allowed, ids):
    begin = time.monotonic()
    limit = limit_memory if act == "eats_all_memory" else None
    late_hang = allowed == TIMEOUT and when == "late"
    report, wrong = run(ids, os.path.join("..", when + ".so"), 2 if allowed == TIMEOUT else 10,
                        2 if late_hang or act in REACH_OTHERS else 1,
                        env={"HOSTILE_ACT": act}, preexec_fn=limit)
    wrong += complaints(report, when, allowed)
    name = "%s, %s: %.1f s" % (when, act.replace("_", " "), time.monotonic() - begin)
    return (not wrong, name, "%s\n%s" % ("\n".join(wrong), report.result)), report


def one(what, when, ids):
    """In a process of its own, whose orphans are those of this act: a test point, and for prove the
    name of a file and what is to be counted there."""
    suite.adopt_orphans()
    acts = {act: {"early": early, "late": late} for act, early, late in ACTS}
    with suite.scratch() as folder:
        os.chdir(folder)
        try:
            point, report = play(what, when, acts[what][when], ids)
            kept = ("%s, %s.tap" % (when, what)).replace(" ", "_")
            os.rename("r.tap", os.path.join("..", kept))
            return point, {kept: (len(ids), readers.to_fail(report))}
        except Exception:
            return (False, "%s, %s" % (when, what), traceback.format_exc()), {}
        finally:
            os.chdir("..")


# What is named as an interpreter, never ends, and prints so much: nothing, nothing and says so,
# without end, a bit now and then, or all that a Python would.
INTERPRETERS = {
    "does not answer": ("exec sleep 600", "does not answer within "),
    "closes its output": ("exec >&- 2>&- sleep 600", "does not answer within "),
    "prints now and then": ("while sleep 1; do echo; done", "does not answer within "),
    "answers and goes on": ("%s \"$@\"; exec >&- sleep 600" % suite.PYTHON,
                            "does not answer within "),
    "prints without end": ("exec yes", "is not a Python interpreter"),
}


def begin_without_end():
    """All at once, for each takes 20 seconds or more; the other tests are run meanwhile."""
    running = {}
    for number, (name, (commands, _)) in enumerate(INTERPRETERS.items()):
        path = "./endless-%d" % number
        with open(path, "w") as file:
            file.write("#!/bin/sh\n%s\n" % commands)
        os.chmod(path, 0o755)
        running[name] = subprocess.Popen([suite.CONFORM, "-Haligned", "--python=" + path],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return running


def interpreters_without_end(tap, running):
    busy = max(1, os.getloadavg()[0] / os.cpu_count())
    for name, process in running.items():
        try:
            err = suite.decode(process.communicate(timeout=60 * suite.SLOWDOWN * busy)[1])
        except subprocess.TimeoutExpired:
            process.kill()
            err = suite.decode(process.communicate()[1])
        held = (process.returncode == USAGE and err.count("\n") == 1
                and INTERPRETERS[name][1] in err)
        tap.point(held, "--python of what %s" % name, err)
    suite.end_orphans()


def main():
    tap = suite.Tap()
    asked_for = sys.argv[1:]
    # those that wait for limits first, so that none is alone at the end
    runs = [(act, when) for act, _, _ in sorted(ACTS, key=lambda act: act[2] != TIMEOUT)
            for when in ("early", "late")]
    runs = [(what, when) for what, when in runs if not asked_for or what in asked_for]
    if not suite.LONG:  # tests/reports.py has objects that are loaded with such names
        runs = [(what, when) for what, when in runs if what[:7] != "renames" or when == "late"]
    if suite.SANITIZED:  # which want terabytes of addresses
        runs = [(what, when) for what, when in runs if what != "eats_all_memory"]
    ids = expected_ids()
    suite.adopt_orphans()
    with suite.scratch() as folder:
        os.chdir(folder)
        running = {} if asked_for else begin_without_end()
        build_handlers()
        with multiprocessing.get_context("fork").Pool(AT_ONCE, maxtasksperchild=1) as pool:
            kept = {}
            for each in [pool.apply_async(one, (*each, ids)) for each in runs]:
                point, file = each.get(timeout=5 * AT_MOST)
                tap.point(*point)
                kept.update(file)
        readers.prove(tap, "of all", kept)
        interpreters_without_end(tap, running)
        os.chdir("..")
    tap.end()


if __name__ == "__main__":
    main()
