# SPDX-License-Identifier: BSD-3-Clause
"""--compare and --baseline: what is new, fixed, changed and gone between two reports, and nothing
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


def about_numpy(report):
    for p in report["properties"]:
        p["target"] = "runtime"


def interrupted(report):
    report["interrupted"] = True


# changes of the earlier report, of the later one; lines, how many of each; status of --fail-on=new,
# with --strict too
CASES = [
    ([], [], [], "0 new, 0 fixed, 0 changed, 0 gone", 0, 0),
    ([], [verdicts(version="FAIL")], ["NEW     abi.version: FAIL, was PASS"],
     "1 new, 0 fixed, 0 changed, 0 gone", 1, 1),
    ([], [verdicts(version="TIMEOUT"), about_numpy],
     ["NEW     abi.version: TIMEOUT, was PASS (about NumPy, and not counted)"],
     "1 new, 0 fixed, 0 changed, 0 gone", 0, 0),
    ([verdicts(version="SKIP")], [verdicts(version="WARN")],
     ["NEW     abi.version: WARN, was SKIP"], "1 new, 0 fixed, 0 changed, 0 gone", 0, 1),
    ([verdicts(version="WARN")], [verdicts(version="CRASH")],
     ["NEW     abi.version: CRASH, was WARN"], "1 new, 0 fixed, 0 changed, 0 gone", 1, 1),
    ([verdicts(version="FAIL", overflow="FAIL")], [verdicts(overflow="CRASH")],
     ["FIXED   abi.version: PASS, was FAIL", "CHANGED calloc.overflow: CRASH, was FAIL"],
     "0 new, 1 fixed, 1 changed, 0 gone", 0, 0),
    ([], [verdicts(version="SKIP", overflow="BROK", zeroed="INCOMPLETE")],
     ["CHANGED abi.version: SKIP, was PASS", "CHANGED calloc.zeroed: INCOMPLETE, was PASS",
      "CHANGED calloc.overflow: BROK, was PASS"], "0 new, 0 fixed, 3 changed, 0 gone", 0, 0),
    ([verdicts(version="FAIL")], [verdicts(version="WARN")],
     ["CHANGED abi.version: WARN, was FAIL"], "0 new, 0 fixed, 1 changed, 0 gone", 0, 0),
    ([], [without_version], [], "0 new, 0 fixed, 0 changed, 0 gone", 0, 0),
    ([], [without_version, whole], ["GONE    abi.version: was PASS"],
     "0 new, 0 fixed, 0 changed, 1 gone", 0, 0),
    ([without_version], [], [], "0 new, 0 fixed, 0 changed, 0 gone", 0, 0),
    ([without_version], [verdicts(version="FAIL")], [],
     "0 new, 0 fixed, 0 changed, 0 gone; of 1 properties that it does not know 1 failed", 1, 1),
    ([verdicts(version="INCOMPLETE"), interrupted, whole], [verdicts(version="WARN")], [],
     "0 new, 0 fixed, 0 changed, 0 gone; of 1 properties that it does not know 1 failed", 0, 1),
    ([without_version, whole], [verdicts(version="FAIL")], [],
     "0 new, 0 fixed, 0 changed, 0 gone; of 1 properties that it does not know 1 failed", 0, 0),
    ([], [verdicts(version="INCOMPLETE", overflow="FAIL"), interrupted, whole, without_version],
     ["NEW     calloc.overflow: FAIL, was PASS"], "1 new, 0 fixed, 0 changed, 0 gone", 1, 1),
]


def write(name, value):
    with open(name, "w") as file:
        file.write(value if isinstance(value, str) else json.dumps(value))
    return name


def changed(text, changes):
    report = json.loads(text)
    for change in changes:
        change(report)
    return report


def compare(*words):
    return suite.conform("--compare", *words)


def cases(tap, text):
    for number, (before, after, lines, counts, code, strict) in enumerate(CASES):
        write("old.json", changed(text, before))
        write("new.json", changed(text, after))
        results = [compare("old.json", "new.json"),
                   compare("--fail-on=new", "old.json", "new.json"),
                   compare("old.json", "new.json", "--strict", "--fail-on", "new")]
        expected = "".join(line + "\n" for line in lines) + "since old.json: %s\n" % counts
        held = ([result.code for result in results] == [0, code, strict]
                and all(result.stdout == expected and not result.stderr for result in results))
        tap.point(held, "comparison %d: %s" % (number, counts), "\n".join(map(str, results)))


def surroundings(tap, text):
    """What else was different is told, but with --quiet."""
    other = json.loads(text)
    other["environment"]["numpy"] = "9.0\033[31m"
    write("old.json", text)
    write("new.json", other)
    result, quiet = compare("old.json", "new.json"), compare("-q", "old.json", "new.json")
    held = re.match(r" +NumPy \S+, now 9\.0\S*\nsince old", result.stdout)
    tap.point(held and quiet.stdout.startswith("since"), "another NumPy is told", result)


def several(tap, text):
    """Each of several is compared with its own."""
    for kind in ("handlers", "interpreters"):
        reports = [changed(text, []), changed(text, [verdicts(version="FAIL")])]
        names = ["/a.so", "/b.so"]
        for name, report in zip(names, reports):
            report["subject"]["file"] = name

        def together(order):
            if kind == "handlers":
                return [reports[i] for i in order]
            return {"interpreters": [{"python": names[i], "report": reports[i]} for i in order]}

        write("old.json", together([0, 1]))
        write("new.json", together([1, 0]))
        same = compare("old.json", "new.json")
        reports[0]["properties"][0]["verdict"] = "CRASH"
        write("new.json", together([0]))
        result = compare("old.json", "new.json")
        reports[0]["subject"]["file"] = names[0] = "/c.so"
        write("new.json", together([0]))
        other = compare("old.json", "new.json", "--fail-on=new")
        tap.point(other.code == NOT_CONFORMANT and "/c.so was not there" in other.stdout,
                  "several %s, and one that was not there fails" % kind, other)
        refused = suite.conform("-Haligned", "--baseline=old.json")
        tap.point(refused.code == USAGE and "has several reports" in refused.stderr,
                  "several %s are no baseline" % kind, refused)
        held = (same.stdout == "since old.json: 0 new, 0 fixed, 0 changed, 0 gone\n"
                and "/b.so is not there now" in result.stdout
                and re.search(r"(?m)^NEW     \S+: CRASH, was PASS, /a\.so$", result.stdout))
        tap.point(held, "several " + kind, "%s\n%s" % (same, result))


def baseline(tap):
    """A run against an earlier report: status, text and JSON."""
    suite.conform("-H", "aligned", *PART, "--json=good.json")
    suite.conform("-H", FAULTY, *PART, "--json=bad.json")
    for handler, old, more, code, line in [
            ("aligned", "good.json", [], CONFORMANT, "0 new, 0 fixed, 0 changed, 0 gone"),
            (FAULTY, "good.json", ["--fail-on=new"], NOT_CONFORMANT, "1 new, 0 fixed, "),
            (FAULTY, "bad.json", ["--fail-on=new"], CONFORMANT, "0 new, 0 fixed, "),
            (FAULTY, "bad.json", [], NOT_CONFORMANT, "0 new, 0 fixed, "),
            ("aligned", "bad.json", [], CONFORMANT, "0 new, 1 fixed, ")]:
        result = suite.conform("-H", handler, *PART, "--baseline", old, "--json=now.json", *more)
        with open("now.json") as file:
            report = json.load(file)
        held = (result.code == code == report["exit_code"]
                and report["conformant"] == (handler == "aligned")
                and result.stdout.splitlines()[-1].startswith("since %s: %s" % (old, line))
                and "%d new, %d fixed, " % tuple(len(report["baseline"][each])
                                                 for each in ("new", "fixed")) in result.stdout)
        tap.point(held, "%s since %s %s" % (os.path.basename(handler), old, " ".join(more)), result)


def refused(tap, text):
    write("good.json", text)
    for what, content in [("nothing", ""), ("a number", "1"), ("an object", "{}"), ("a list", "[]"),
                          ("binary", "\0\1\2"), ("a deep list", "[" * 100000),
                          ("another format", text.replace("conform-report-2", "conform-report-1")),
                          ("no ids", text.replace('"id"', '"di"')),
                          ("a member twice", text.replace('"format"', '"format": "", "format"'))]:
        write("bad.json", content)
        for words in (["--compare", "bad.json", "good.json"],
                      ["--compare", "good.json", "bad.json"], ["-Haligned", "--baseline=bad.json"]):
            result = suite.conform(*words)
            tap.point(result.code == USAGE and not result.stdout and "bad.json" in result.stderr
                      and result.stderr.count("\n") == 1, "%s: %s" % (words[0], what), result)
    short = json.loads(text)
    short["properties"] = short["properties"][:1]
    short = json.dumps(short)
    wrong = []
    for length in range(0, len(short), 1 if suite.LONG else 23):
        write("bad.json", short[:length])
        result = compare("bad.json", "good.json")
        if result.code != USAGE or result.stderr.count("\n") != 1:
            wrong.append((length, str(result)))
    tap.point(not wrong, "a report that was cut", wrong[:3])


def main():
    tap = suite.Tap()
    with suite.scratch() as folder:
        os.chdir(folder)
        text = suite.conform("-H", "aligned", *PART, "--json=-").stdout
        cases(tap, text)
        surroundings(tap, text)
        several(tap, text)
        refused(tap, text)
        baseline(tap)
        os.chdir("..")
    tap.end()


if __name__ == "__main__":
    main()
