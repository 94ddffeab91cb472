# SPDX-License-Identifier: BSD-3-Clause
"""Subjects that do their worst: what it costs, and that it costs nothing else.

Whatever the subject does, the reports are complete and agree, the exit code is right, the run ends
in time, and nothing of it is left: no process, no file.
"""

import json
import os
import re
import sys
import time
import xml.etree.ElementTree

import suite

FOLDER = os.path.join(suite.SOURCE, "handlers", "faulty", "hostile")

# What is run: the first property, those that call calloc, and one that does not.
CHOSEN = ["--run=abi.loads", "--run=calloc.*", "--run=malloc.extent"]
AT_MOST = 60  # seconds for a run of these, on a slow and busy machine

ANY = set(suite.VERDICTS) - {"BROK"}
CRASH, TIMEOUT = {"CRASH"}, {"TIMEOUT"}
GOES_ON = {"PASS"}

# The act, what it may cost abi.loads when it is done while the object is loaded, and what it may
# cost a property that calls calloc.  Properties that do not must not notice.
ACTS = [
    ("exits", CRASH, CRASH),
    ("exits_in_order", CRASH, CRASH),
    ("exits_with_3", CRASH, CRASH),
    ("aborts", CRASH, CRASH),
    ("writes_to_null", CRASH, CRASH),
    ("kills_itself", CRASH, CRASH),
    ("kills_itself_namelessly", CRASH, CRASH),
    ("becomes_another_program", CRASH, CRASH),
    ("overflows_the_stack", CRASH, CRASH),
    ("jumps", ANY, ANY),
    ("hangs", TIMEOUT, TIMEOUT),
    ("spins", TIMEOUT, TIMEOUT),
    ("stops_itself", TIMEOUT, TIMEOUT),
    ("hangs_deaf", TIMEOUT, TIMEOUT),
    ("crashes_for_ever", TIMEOUT, TIMEOUT),
    ("hides_in_its_parents_group", TIMEOUT, TIMEOUT),
    ("floods", GOES_ON, GOES_ON),
    ("floods_until_taken", TIMEOUT, TIMEOUT),
    ("floods_stdio", GOES_ON, GOES_ON),
    ("closes_descriptors", GOES_ON, GOES_ON),
    ("closes_all_descriptors", GOES_ON, GOES_ON),
    ("takes_the_signals", GOES_ON, GOES_ON),
    ("forks_and_both_return", GOES_ON, GOES_ON),
    ("leaves_a_process", GOES_ON, GOES_ON),
    ("leaves_a_chain", GOES_ON, GOES_ON),
    ("scribbles_over_shared_memory", ANY, ANY),
    ("scribbles_and_exits", CRASH, CRASH),
    ("leaves_a_process_that_scribbles", ANY | {"BROK"}, ANY | {"BROK"}),
    ("kills_its_parent", CRASH, CRASH),
    ("kills_its_parent_and_stays", CRASH, CRASH),
    ("stops_its_parent", TIMEOUT, TIMEOUT),
    ("kills_its_group", CRASH, CRASH),
    ("kills_its_parents_group", CRASH, CRASH),
]


def expected_ids():
    listed = suite.conform("--list", *CHOSEN)
    return [line.split()[0] for line in listed.stdout.splitlines()]


def read_json(path):
    with open(path) as file:
        report = json.load(file)
    return report, {each["id"]: each["verdict"] for each in report["properties"]}


def read_tap(path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    return [m.group(2) for m in (re.match(r"(not )?ok \d+ - (\S+)", line) for line in lines) if m]


def read_junit(path):
    return [case.get("name") for case in xml.etree.ElementTree.parse(path).iter("testcase")]


def is_bad(verdict):
    return verdict in ("FAIL", "CRASH", "TIMEOUT")


def complaints(result, ids, when, allowed):
    """What is wrong with the reports of a run."""
    if result.code not in (0, 1, 4):
        return ["exit code"]
    wrong = []
    report, verdicts = read_json("r.json")
    if list(verdicts) != ids or len(report["properties"]) != report["expected"]:
        wrong.append("JSON has %s" % list(verdicts))
    if read_tap("r.tap") != ids or read_junit("r.xml") != ids:
        wrong.append("TAP or JUnit has other properties")
    code = 1 if any(map(is_bad, verdicts.values())) else 4 if "BROK" in verdicts.values() else 0
    if result.code != code or report["exit_code"] != code:
        wrong.append("the exit code should be %d" % code)
    if report["conclusion"] not in result.stdout:
        wrong.append("the text should conclude " + report["conclusion"])
    if result.stderr or re.search(r"[\x00-\x09\x0b-\x1f\x7f]", result.stdout):
        wrong.append("there should be no stderr, and no control characters")
    for name, verdict in verdicts.items():
        mine = allowed if name.startswith("calloc.") == (when == "late") else {"PASS"}
        if when == "early" and name != "abi.loads":
            mine = ANY if verdicts["abi.loads"] == "PASS" else {"SKIP"}
        if verdict not in mine:
            wrong.append("%s: %s, and not %s" % (name, verdict, " or ".join(sorted(mine))))
    return wrong


def play(tap, act, when, allowed, ids):
    handler = suite.build(os.path.join(FOLDER, when + ".c"), "hostile.so", "-w", "-DDOES=" + act)
    begin = time.monotonic()
    result = suite.conform("--handler=./" + handler, "--timeout=%d" % suite.PATIENCE, "--jobs=2",
                           "--json=r.json", "--tap=r.tap", "--junit=r.xml", *CHOSEN,
                           timeout=AT_MOST)
    seconds = time.monotonic() - begin
    wrong = complaints(result, ids, when, allowed)
    time.sleep(0.05)
    left = suite.end_orphans()
    if left:
        wrong.append("%d processes are left" % left)
    files = set(os.listdir(".")) - {"hostile.so", "r.json", "r.tap", "r.xml"}
    if files:
        wrong.append("files are left: %s" % files)
    name = "%s, %s: %.1f s" % (when, act.replace("_", " "), seconds)
    tap.point(not wrong, name, "%s\n%s" % ("\n".join(wrong), result))


def main():
    tap = suite.Tap()
    suite.adopt_orphans()
    ids = expected_ids()
    asked_for = sys.argv[1:]
    with suite.scratch() as folder:
        os.chdir(folder)
        for act, early, late in ACTS:
            if not asked_for or act in asked_for:
                play(tap, act, "early", early, ids)
                play(tap, act, "late", late, ids)
        os.chdir("..")
    tap.end()


if __name__ == "__main__":
    main()
