# SPDX-License-Identifier: BSD-3-Clause
"""compare and --baseline: what is new, fixed, changed and gone between two reports, and nothing
else, whatever the files are."""

import json
import os
import re

import suite
from suite import CONFORMANT, NOT_CONFORMANT, USAGE

FAULTY = os.path.join(suite.FAULTY, "faulty.so:calloc_wraps")
PART = ["--run=abi.v*", "--run=calloc.o*", "--run=calloc.z*", "--run=performance.large*"]


def verdicts(**changed):
    """A change of a report: those of its properties, by the second half of their ids."""
    def change(report):
        for p in report["properties"]:
            p["verdict"] = changed.get(p["id"].partition(".")[2].replace("-", "_"), p["verdict"])
    return change


def whole(report):
    report["whole"] = True


def without_version(report):
    report["properties"] = [p for p in report["properties"] if p["id"] != "abi.version"]


def another_seed(report):
    report["seed"] = "7"


def intermittent(report):
    for p in report["properties"]:
        p.update(runs=3, failed_runs=1)


def about_numpy(report):
    for p in report["properties"]:
        p["target"] = "runtime"


def interrupted(report):
    report["interrupted"] = True


def all_incomplete(report):
    for p in report["properties"]:
        p["verdict"] = "INCOMPLETE"


def unfit(report):
    report["exit_code"] = 77


def in_all(new, fixed, changed, gone):
    return "%d new, %d fixed, %d changed, 0 unstable, %d gone" % (new, fixed, changed, gone)


# changes of the earlier report, of the later one; lines, how many of each; status of --fail-on=new,
# with --strict too
CASES = [
    ([], [], [], in_all(0, 0, 0, 0), 0, 0),
    ([], [verdicts(version="FAIL")], ["NEW     abi.version: FAIL, was PASS"],
     in_all(1, 0, 0, 0), 1, 1),
    ([], [verdicts(version="TIMEOUT"), about_numpy],
     ["NEW     abi.version: TIMEOUT, was PASS (about NumPy, and not counted)"],
     in_all(1, 0, 0, 0), 0, 0),
    ([verdicts(version="SKIP", zeroed="INCOMPLETE")], [],
     ["CHANGED abi.version: PASS, was SKIP", "CHANGED calloc.zeroed: PASS, was INCOMPLETE"],
     in_all(0, 0, 2, 0), 0, 0),
    ([verdicts(version="SKIP")], [verdicts(version="WARN")],
     ["NEW     abi.version: WARN, was SKIP"], in_all(1, 0, 0, 0), 0, 1),
    ([verdicts(version="WARN")], [verdicts(version="CRASH")],
     ["NEW     abi.version: CRASH, was WARN"], in_all(1, 0, 0, 0), 1, 1),
    ([verdicts(version="FAIL", overflow="FAIL")], [verdicts(overflow="CRASH")],
     ["FIXED   abi.version: PASS, was FAIL", "CHANGED calloc.overflow: CRASH, was FAIL"],
     in_all(0, 1, 1, 0), 0, 0),
    ([], [verdicts(version="SKIP", overflow="BROK", zeroed="INCOMPLETE")],
     ["CHANGED abi.version: SKIP, was PASS", "CHANGED calloc.zeroed: INCOMPLETE, was PASS",
      "CHANGED calloc.overflow: BROK, was PASS"], in_all(0, 0, 3, 0)
     + "; of its properties 1 INCOMPLETE, 1 BROK", 4, 4),
    ([verdicts(overflow="BROK", zeroed="INCOMPLETE")],
     [verdicts(overflow="BROK", zeroed="INCOMPLETE", large_blocks_advised="INCOMPLETE")],
     ["CHANGED performance.large-blocks-advised: INCOMPLETE, was PASS"],
     in_all(0, 0, 1, 0) + "; of its properties 1 INCOMPLETE", 0, 5),
    ([verdicts(zeroed="SKIP")], [all_incomplete, interrupted, whole], [],
     in_all(0, 0, 0, 0) + "; of its properties 4 not run (interrupted)", 5, 5),
    ([], [unfit], [], in_all(0, 0, 0, 0), 77, 77),
    ([verdicts(version="FAIL")], [verdicts(version="WARN")],
     ["CHANGED abi.version: WARN, was FAIL"], in_all(0, 0, 1, 0), 0, 0),
    ([], [without_version], [],
     in_all(0, 0, 0, 0) + "; of its properties 1 left out", 0, 0),
    ([], [without_version, whole], ["GONE    abi.version: was PASS"],
     in_all(0, 0, 0, 1), 0, 0),
    ([without_version], [], [],
     in_all(0, 0, 0, 0) + "; of 1 property that it does not know 0 failed", 0, 0),
    ([without_version], [verdicts(version="FAIL")], ["UNKNOWN abi.version: FAIL"],
     in_all(0, 0, 0, 0) + "; of 1 property that it does not know 1 failed", 1, 1),
    ([all_incomplete, interrupted, whole], [verdicts(version="WARN")],
     ["UNKNOWN abi.version: WARN"],
     in_all(0, 0, 0, 0) + "; of 5 properties that it does not know 1 failed", 0, 1),
    ([without_version, whole], [verdicts(version="FAIL")], ["UNKNOWN abi.version: FAIL"],
     in_all(0, 0, 0, 0) + "; of 1 property that it does not know 1 failed", 0, 0),
    ([], [verdicts(version="INCOMPLETE", overflow="FAIL"), interrupted, whole],
     ["NEW     calloc.overflow: FAIL, was PASS"],
     in_all(1, 0, 0, 0) + "; of its properties 1 not run (interrupted)", 1, 1),
]


def changed(text, changes):
    report = json.loads(text)
    for change in changes:
        change(report)
    return report


def compare(*words):
    return suite.conform("compare", *words)


def cases(tap, text):
    for number, (before, after, lines, counts, code, strict) in enumerate(CASES):
        suite.write("old.json", changed(text, [*before, another_seed]))
        suite.write("new.json", changed(text, after))
        results = [compare("old.json", "new.json"),
                   compare("--fail-on=new", "old.json", "new.json"),
                   compare("old.json", "new.json", "--strict", "--fail-on", "new")]
        expected = "".join(line + "\n" for line in ["        Seed 7, now 49", *lines,
                                                    "since old.json: " + counts])
        held = ([result.code for result in results] == [0, code, strict]
                and all(result.stdout == expected and not result.stderr for result in results))
        tap.point(held, "comparison %d: %s" % (number, counts), "\n".join(map(str, results)))


def unstable(tap, text):
    """What differs by chance is not NEW."""
    suite.write("old.json", text)
    suite.write("new.json", changed(text, [verdicts(version="FAIL")]))
    alike = compare("old.json", "new.json", "--fail-on=new")
    suite.write("old.json", changed(text, [another_seed, intermittent, verdicts(version="CRASH")]))
    suite.write("new.json", text)
    other = compare("old.json", "new.json", "--fail-on=new")
    held = (alike.code == other.code == 0 and "UNSTABLE abi.version: FAIL, was PASS" in alike.stdout
            and "UNSTABLE abi.version: PASS, was CRASH" in other.stdout)
    tap.point(held, "unstable", "%s\n%s" % (alike, other))


def several(tap, text):
    """Each of several handlers is compared with its own."""
    reports = [changed(text, []), changed(text, [verdicts(version="FAIL")])]
    for name, report in zip(["/a.so", "/b.so"], reports):
        report["subject"]["file"] = name
    suite.write("old.json", reports)
    suite.write("new.json", reports[::-1])
    same = compare("old.json", "new.json")
    reports[0]["properties"][0]["verdict"] = "CRASH"
    suite.write("new.json", reports[:1])
    result = compare("old.json", "new.json")
    reports[0]["subject"]["file"] = "/c.so"
    suite.write("new.json", reports[:1])
    other = compare("old.json", "new.json", "--fail-on=new")
    tap.point(other.code == NOT_CONFORMANT and "/c.so was not there" in other.stdout,
              "one of several that was not there fails", other)
    refused = suite.conform("-Haligned", "--baseline=old.json")
    tap.point(refused.code == USAGE and "has several reports" in refused.stderr,
              "several are no baseline", refused)
    held = (same.stdout == "since old.json: 0 new, 0 fixed, 0 changed, 0 unstable, 0 gone\n"
            and "/b.so is not there now" in result.stdout
            and re.search(r"(?m)^UNSTABLE \S+: CRASH, was PASS, /a\.so$", result.stdout))
    tap.point(held, "several handlers", "%s\n%s" % (same, result))


def one_of_several(tap, text):
    """A report of one is compared with its own of several, either way round."""
    one, other = (changed(text, [verdicts(version=verdict)]) for verdict in ("FAIL", "CRASH"))
    one["subject"].update(file="/a.so", symbol="one")
    other["subject"].update(file="/a.so", symbol="other")
    suite.write("one.json", one)
    suite.write("list.json", [other, one])
    less, more = (compare("--fail-on=new", *files)
                  for files in [("list.json", "one.json"), ("one.json", "list.json")])
    held = (less.code == CONFORMANT and more.code == NOT_CONFORMANT
            and re.match(" +/a.so:other is not there now\nsince .*: .* 0 gone\n$",
                         less.stdout)
            and re.match(" +/a.so:other was not there\nUNKNOWN abi.version: CRASH, /a.so:other\n"
                         "since [^;]*; of 5 properties that it does not know 1 failed\n$",
                         more.stdout))
    tap.point(held, "one and a list", "%s\n%s" % (less, more))


def stdin(tap, text):
    """- is stdin, for one of the two."""
    suite.write("old.json", text)
    result = suite.run(["bash", "-c", '"$0" compare - <(cat old.json) <old.json', suite.CONFORM])
    tap.point(result.code == 0 and result.stdout.startswith("since -: 0 new"), "stdin", result)


def baseline(tap):
    """A run against an earlier report: status, text and JSON."""
    suite.conform("-H", "aligned", *PART, "--json=good.json")
    suite.conform("-H", FAULTY, *PART, "--json=bad.json")
    for handler, old, more, code, line in [
            ("aligned", "good.json", [], CONFORMANT, in_all(0, 0, 0, 0)),
            (FAULTY, "good.json", ["--fail-on=new"], NOT_CONFORMANT, "1 new, 0 fixed, "),
            (FAULTY, "bad.json", ["--fail-on=new"], CONFORMANT, "0 new, 0 fixed, "),
            (FAULTY, "bad.json", [], NOT_CONFORMANT, "0 new, 0 fixed, "),
            ("aligned", "bad.json", [], CONFORMANT, "0 new, 1 fixed, ")]:
        result = suite.conform("-H", handler, *PART, "--baseline", old, "--json=now.json", *more)
        report = suite.load("now.json")
        held = (result.code == code == report["exit_code"]
                and report["conformant"] == (handler == "aligned")
                and result.stdout.splitlines()[-1].startswith("since %s: %s" % (old, line))
                and "%d new, %d fixed, " % tuple(len(report["baseline"][each])
                                                 for each in ("new", "fixed")) in result.stdout)
        tap.point(held, "%s since %s %s" % (os.path.basename(handler), old, " ".join(more)), result)


def refused(tap, text):
    """One line and status 2; tests/damaged.py has what else a file can be."""
    suite.write("good.json", text)
    for content, words in [
            ("", ":1:1: not JSON"), ("{}", ": is not a report"),
            (text.replace("conform-report-2", "conform-report-1"), ": is not a report"),
            (text.replace('t": "PASS"', 't": "FOO\\n"'), "the unknown verdict"),
            (None, ": No such file")]:
        if content is not None:
            suite.write("bad.json", content)
        else:
            os.unlink("bad.json")
        for command in (["compare", "bad.json", "good.json"],
                        ["-Haligned", "--baseline=bad.json"]):
            result = suite.conform(*command)
            tap.point(result.code == USAGE and not result.stdout and words in result.stderr
                      and result.stderr.count("\n") == 1
                      and result.stderr.startswith("conform: bad.json:"),
                      "%s of a bad report: %s" % (command[0], words), result)


def main():
    tap = suite.Tap()
    with suite.scratch(enter=True):
        text = suite.conform("-H", "aligned", *PART, "--json=-").stdout
        cases(tap, text)
        unstable(tap, text)
        several(tap, text)
        one_of_several(tap, text)
        stdin(tap, text)
        refused(tap, text)
        baseline(tap)
    tap.end()


main()
