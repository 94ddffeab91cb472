# SPDX-License-Identifier: BSD-3-Clause
"""--expect: what is waived does not decide and is told so everywhere, what passes against its entry
fails, and whatever the file is, it is read or told what is wrong with it, in one line.
"""

import datetime
import os

import suite
from suite import CONFORMANT, INCOMPLETE, NOT_CONFORMANT, USAGE

# Of these calloc.overflow fails.
FAULTY = os.path.join(suite.FAULTY, "faulty.so:calloc_wraps")
PART = ["--run=abi.v*", "--run=calloc.o*", "--run=calloc.z*"]
ALL_OF_CALLOC = ["--run=calloc.*"]
PART_CONFORMS = "conformant%s in the properties that were run, which are not all"
TOMORROW = (datetime.date.today() + datetime.timedelta(2)).isoformat()
LONG_AGO = "2001-02-03"


def entry(id="calloc.overflow", verdict="FAIL", reason="known", more=""):
    return ('[[expect]]\nid = "%s"\nverdict = "%s"\nreason = "%s"\n%s\n'
            % (id, verdict, reason, more))


def conform(content, *words, handler=FAULTY, part=PART):
    suite.write("w.toml", content)
    return suite.conform("-H", handler, *part, "--expect=w.toml", *words)


WAIVED, DECIDES, STALE = range(3)

# name; the file; more words; what comes of it, of the handler that is wrong, of one that is right
CASES = [
    ("nothing", "", [], DECIDES, WAIVED),
    ("waived", entry(), [], WAIVED, STALE),
    ("a glob", entry("calloc.*"), ["--run=calloc.*"], WAIVED, STALE),
    ("a glob of which a part was run", entry("calloc.*"), [], WAIVED, WAIVED),
    ("another property", entry("calloc.zeroed"), [], (DECIDES, STALE), STALE),
    ("another verdict", entry(verdict="CRASH"), [], DECIDES, STALE),
    ("either verdict", entry(verdict="CRASH") + entry(), [], WAIVED, STALE),
    ("what was not run", entry("free.null"), [], DECIDES, WAIVED),
    ("until later", entry(more="until = " + TOMORROW), [], WAIVED, STALE),
    ("a range", entry(more='numpy = ">=1.22"\npython = ">=3.9,<4"'), [], WAIVED, STALE),
    ("another NumPy", entry(more='numpy = "<1.22"'), [], DECIDES, WAIVED),
    ("another Python", entry(more='python = "<3"'), [], DECIDES, WAIVED),
    ("this platform", entry(more='platform = "linux-*"'), [], WAIVED, STALE),
    ("another platform", entry(more='platform = "win*"'), [], DECIDES, WAIVED),
    ("an inline list", 'expect = [{id = "calloc.overflow", verdict = "FAIL", reason = "r"}]', [],
     WAIVED, STALE),
    ("two rounds", entry(), ["--repeat=2"], WAIVED, STALE),
]


def holds(result, report, outcome):
    """Whether status, text and JSON of one run say what is to come of it."""
    wanted = outcome if isinstance(outcome, tuple) else (outcome,)
    failed = report["verdicts"]["handler"]["FAIL"] > 0
    code = NOT_CONFORMANT if DECIDES in wanted or STALE in wanted else CONFORMANT
    waivers = 1 if wanted == (WAIVED,) and failed else 0
    last = result.stdout.splitlines()[-1]
    start = ("NOT CONFORMANT: 1 of " if DECIDES in wanted else "STALE: " if STALE in wanted else
             PART_CONFORMS % (" with 1 waiver" if waivers else ""))
    return (result.code == code == report["exit_code"]
            and report["waivers"] == waivers and bool(report["stale"]) == (STALE in wanted)
            and result.stdout.count("\nSTALE   ") == len(report["stale"])
            and report["conformant"] == (code == CONFORMANT and not waivers)
            and (last.partition(": ")[2].startswith(start))
            and ("\nSTALE   w.toml:1: calloc." in result.stdout) == (STALE in wanted)
            and sum("waived" in p for p in report["properties"]) == waivers
            and not result.stderr)


def cases(tap):
    for name, content, words, faulty, sound in CASES:
        for handler, outcome in ((FAULTY, faulty), ("aligned", sound)):
            part = PART if not any(word.startswith("--run") for word in words) else []
            result = conform(content, "--json=r.json", *words, handler=handler, part=part)
            report = suite.load("r.json")
            tap.point(holds(result, report, outcome),
                      "%s: %s" % (name, "a wrong handler" if handler == FAULTY else "a right one"),
                      result)


def told_otherwise(tap):
    result = conform(entry(verdict="CRASH"), "--json=r.json")
    report = suite.load("r.json")
    expected = [p.get("expected_verdict") for p in report["properties"] if p["verdict"] == "FAIL"]
    tap.point("not used: line 1 expects CRASH" in result.stdout and expected == ["CRASH"],
              "that another verdict was expected is told", result)


def formats(tap):
    """JSON and --quiet; tests/golden has the other formats."""
    content = entry(reason="see # 12 <&>", more='url = "https://example.org/12"')
    conform(content, "--json=r.json")
    report = suite.load("r.json")
    waived = {p["id"]: p["waived"] for p in report["properties"] if "waived" in p}
    tap.point(waived == {"calloc.overflow": {"reason": "see # 12 <&>",
                                             "url": "https://example.org/12"}}
              and report["conclusion"] == PART_CONFORMS % " with 1 waiver", "JSON", waived)
    quiet = conform(content, "--quiet")
    tap.point(quiet.stdout.count("\n") == 1 and " with 1 waiver " in quiet.stdout,
              "--quiet does not take it for conformant", quiet)


def warnings(tap):
    """A WARN counts with --strict, and so does its waiver; without, it is stale all the same."""
    handler = os.path.join(suite.FAULTY, "faulty.so:getter_warns")
    part = ["--run=abi.loads-quietly", "--run=abi.version"]
    for words, waivers in (([], 0), (["--strict"], 1)):
        result = conform(entry("abi.loads-quietly", "WARN"), "--json=r.json", *words,
                         handler=handler, part=part)
        report = suite.load("r.json")
        tap.point(result.code == CONFORMANT and report["waivers"] == waivers
                  and report["verdicts"]["handler"]["WARN"] == 1
                  and ": waived: known\n" in result.stdout,
                  "a WARN" + " ".join([""] + words), result)
    plain = suite.conform("-H", handler, *part, "--strict")
    tap.point(plain.code == NOT_CONFORMANT, "which --strict counts else", plain)


def with_others(tap):
    """--baseline, several handlers, --until-fail."""
    suite.conform("-H", "aligned", *PART, "--json=good.json")
    baseline = ["--baseline=good.json", "--fail-on=new"]
    for name, words, handler, code, end in (
            ("--baseline: new, and no failure", baseline, FAULTY, CONFORMANT, " gone\n"),
            ("--baseline: what is stale fails", baseline, "aligned", NOT_CONFORMANT, " gone\n"),
            ("several handlers", ["-H", FAULTY], FAULTY, CONFORMANT,
             "conformant: 2 of 2 handlers, 2 of them with waivers\n"),
            ("--until-fail does not end for it", ["--until-fail", "--repeat=3"], FAULTY, CONFORMANT,
             "with 1 waiver in the properties that were run, which are not all\n")):
        result = conform(entry(), *words, handler=handler)
        tap.point(result.code == code and result.stdout.endswith(end), name, result)
    result = conform(entry("calloc.*", "INCOMPLETE"), "--max-time=0.01", part=ALL_OF_CALLOC)
    tap.point(result.code in (INCOMPLETE, NOT_CONFORMANT), "what was not run cannot be waived",
              result)


# what is wrong; the file; where it is said to be, what is said
WRONG = [
    ("no TOML", "[[expect]", "1:", ""),
    ("another key", "[[expects]]\n", "1:", "expects: no such key"),
    ("no array", "[expect]\n", "1:1", "expect is no array of tables"),
    ("another member", entry(more="untill = 2030-01-01"), "5:", "untill: no such key"),
    ("no id", '\n[[expect]]\nverdict = "FAIL"\nreason = "r"\n', "2:", "an entry without id"),
    ("no verdict", '[[expect]]\nid = "calloc.overflow"\nreason = "r"\n', "1:",
     "an entry without verdict"),
    ("no reason", entry() + '[[expect]]\nid = "calloc.*"\nverdict = "FAIL"\n', "6:",
     "an entry without reason"),
    ("an empty reason", entry(reason="  "), "4:", "reason is empty"),
    ("a number for a reason", entry().replace('"known"', "7"), "4:", "reason is no string"),
    ("a NUL in the reason", entry(reason="a\\u0000b"), "4:", "reason has a NUL in it"),
    ("PASS", entry(verdict="PASS"), "3:", "verdict is PASS; what can be expected is FAIL"),
    ("no verdict of ours", entry(verdict="fail"), "3:", "verdict is fail"),
    ("no property", entry("calloc.over"), "2:", "calloc.over: matches no property; see"),
    ("a slip in an id", entry("calloc.overfow"), "2:",
     "calloc.overfow: matches no property (did you mean calloc.overflow?); see"),
    ("one of NumPy's", entry("runtime.*"), "2:", "runtime.*: is nothing that can be waived"),
    ("the first one", entry("abi.loads"), "2:", "abi.loads: is nothing that can be waived"),
    ("expired", entry(more="until = " + LONG_AGO), "5:", "calloc.overflow: expired, it was until "
     + LONG_AGO),
    ("a date in quotes", entry(more='until = "2999-01-01"'), "5:", "until is no date"),
    ("no range", entry(more='numpy = "2.x"'), "5:", "numpy: is no range of versions"),
    ("a control character", "[\x03", "1:2: ", ""),
    ("twice the same", entry() + entry(reason="other"), "6:",
     "the entry of line 1 is about the same"),
    ("a platform without an end", entry(more='platform = "linux-[x"'), "5:",
     "platform: a [ has no ]"),
]


def is_told(result, where="w.toml"):
    return (result.code == USAGE and not result.stdout and result.stderr.count("\n") == 1
            and result.stderr.startswith("conform: " + where))


def refused(tap):
    for name, content, where, words in WRONG:
        result = conform(content)
        tap.point(is_told(result, "w.toml:" + where) and words in result.stderr, name, result)
    for name in ("none.toml", ".", "/dev/zero"):
        result = suite.conform("-H", "aligned", "--expect", name)
        tap.point(is_told(result, name + ": "), name, result)


def main():
    tap = suite.Tap()
    with suite.scratch(enter=True):
        cases(tap)
        told_otherwise(tap)
        formats(tap)
        warnings(tap)
        with_others(tap)
        refused(tap)
    tap.end()


main()
