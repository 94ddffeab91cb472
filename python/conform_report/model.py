# SPDX-License-Identifier: BSD-3-Clause
"""Reads and validates JSON reports, and answers questions about one."""

import collections
import json
import os
import sys
import unicodedata

FORMAT = "conform-report-2"
CONFORMANT, NOT_CONFORMANT, USAGE, CANNOT_LOAD, BROKE, INCOMPLETE, UNFIT = 0, 1, 2, 3, 4, 5, 77
SEVERITY = NOT_CONFORMANT, CANNOT_LOAD, BROKE, USAGE, UNFIT, INCOMPLETE, CONFORMANT

# against: 2 if the verdict is evidence against the handler at any level, 1 if only with --strict.
# css: its class on the page.  junit: the element of its case, if it counts.
Verdict = collections.namedtuple("Verdict", "against css junit")
VERDICTS = {
    "PASS": Verdict(0, "good", None),
    "FAIL": Verdict(2, "bad", "failure"),
    "WARN": Verdict(1, "warn", "failure"),
    "SKIP": Verdict(0, "none", "skipped"),
    "CRASH": Verdict(2, "bad", "error"),
    "TIMEOUT": Verdict(2, "bad", "error"),
    "BROK": Verdict(0, "warn", "error"),
    "INCOMPLETE": Verdict(0, "warn", "error"),
}
GOOD = "PASS", "SKIP"

# The members that this package uses, each with a value of its type, which a report that lacks the
# member gets.  A list holds one example of its elements.
CHANGE = {"id": "", "before": "", "after": ""}
PROPERTY = {
    "id": "", "level": "", "basis": "", "target": "handler", "verdict": "", "message": "",
    "seconds": 0.0, "expected": "", "seen": "", "title": "", "clause": "", "source": "", "hint": "",
    "reproduce": "", "repro": "", "output": "", "bad_rounds": 0, "runs": 0, "failed_runs": 0,
    "when": "", "not_when": "", "handler": "", "same_as": "",
    "waived": {"reason": "", "url": "", "until": ""},
}
REPORT = {
    "conform": "",
    "subject": {"argument": "", "file": "", "symbol": "", "sha256": "", "name": "", "version": 0},
    "environment": {"python": "", "executable": "", "numpy": "", "libc": "", "kernel": "",
                    "tunables": "", "checker": "", "allocator": ""},
    "seed": "", "rounds": 1, "expected": 0, "whole": False, "quick": False, "interrupted": False,
    "verdicts": {target: dict.fromkeys(VERDICTS, 0) for target in ("handler", "runtime")},
    "start_with": "", "conformant": False, "strict": False, "exit_code": 0, "conclusion": "",
    "seconds": 0.0, "properties": [PROPERTY], "waivers": 0,
    "stale": [{"id": "", "file": "", "line": 0, "verdict": "", "reason": ""}],
    "baseline": {"file": "", "surroundings": [""], "new": [CHANGE], "fixed": [CHANGE],
                 "changed": [CHANGE], "unstable": [CHANGE], "gone": [CHANGE]},
    "from": "",
}
KINDS = {dict: "an object", list: "an array", str: "a string", bool: "true or false"}

# What a report was made of, and where it is in a report.
FACTS = {
    "File": "subject.file", "SHA-256": "subject.sha256", "Python": "environment.python",
    "Interpreter": "environment.executable", "NumPy": "environment.numpy",
    "C library": "environment.libc", "Kernel": "environment.kernel",
    "Beside it": "environment.checker", "Allocator": "environment.allocator", "Seed": "seed",
    "conform": "conform", "Begin with": "start_with", "Report": "from",
}


class Invalid(Exception):
    """Input that is not valid; the message is the line that the user gets."""


def clean(text, keep_lines=False):
    """Escapes the UTF-8 of characters that no terminal and no format takes, as conform does."""

    def escaped(c):
        bad = unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") or c in "\ufffe\uffff"
        if not bad or (keep_lines and c == "\n"):
            return c
        return "".join(r"\x%02x" % byte for byte in c.encode("utf-8", "surrogatepass"))

    return text if text.isascii() and text.isprintable() else "".join(map(escaped, text))


def fill(value, like, name=""):
    """Returns value with all members of like; raises Invalid if one has another type."""
    kind = type(like)
    if kind is dict and isinstance(value, dict):
        missing = {key: one if type(one) not in (dict, list) else type(one)()
                   for key, one in like.items()}
        members = {**missing, **value}
        return {**members, **{key: fill(members[key], like[key], name + "." + key) for key in like}}
    if kind is list and isinstance(value, list):
        return [fill(one, like[0], "%s[%d]" % (name, i)) for i, one in enumerate(value)]
    if kind is str and (value is None or isinstance(value, str)):
        return clean(value or "", name.endswith(".output"))
    if kind is bool and isinstance(value, bool):
        return value
    if kind in (int, float) and type(value) in (int, kind) and abs(value) < 2**63:
        return value
    raise Invalid("%s is not %s" % (name.lstrip("."), KINDS.get(kind, "a number")))


def valid_report(value):
    """Returns the report with all members that this package uses, or raises Invalid."""
    if not isinstance(value, dict) or value.get("format") != FORMAT or "properties" not in value:
        raise Invalid("is not a report that --json of this program writes")
    report = {**fill(value, REPORT), "raw": value}
    for i, p in enumerate(report["properties"], 1):
        if not p["id"]:
            raise Invalid("property %d has no id" % i)
        if p["verdict"] not in VERDICTS:
            raise Invalid("%.128s has the unknown verdict %.128r" % (p["id"], p["verdict"]))
    return report


def reports_in(value):
    """Returns the reports of one run or of several handlers."""
    reports = [valid_report(one) for one in (value if isinstance(value, list) else [value])]
    if not reports:
        raise Invalid("has no report")
    return reports


def read_file(path, most=1 << 28):
    """Returns the bytes of a file or of stdin; raises Invalid if it cannot be read."""
    try:
        with open(path if path != "-" else sys.stdin.fileno(), "rb") as file:
            data = file.read(most + 1)
    except (OSError, ValueError) as error:
        raise Invalid("%s: %s" % (path, getattr(error, "strerror", None) or error)) from None
    if len(data) > most:
        raise Invalid("%s: has more than %d bytes" % (path, most))
    return data


def load_json(data, path):
    try:
        return json.loads(data.decode())
    except json.JSONDecodeError as error:
        where = "%s:%d:%d: " % (path, error.lineno, error.colno)
        raise Invalid(where + "not JSON: %s; name a file that --json wrote" % error.msg) from None
    except (ValueError, RecursionError) as error:
        raise Invalid("%s: not JSON: %s" % (path, error)) from None


def load(path):
    """Returns the reports in the file at path ("-" for stdin)."""
    value = load_json(read_file(path), path)
    try:
        return reports_in(value)
    except (Invalid, RecursionError) as error:
        raise Invalid("%s: %s" % (path, error)) from None


# ---- questions about a report ------------------------------------------------------------------


def facts(report):
    """Returns the value of each of FACTS, or "" if it is not known."""
    pairs = ((name, path.rpartition(".")) for name, path in FACTS.items())
    return {name: (report[group] if group else report)[key] for name, (group, _, key) in pairs}


def about_numpy(p):
    return p["target"] == "runtime"


def group(p):
    return p["id"].partition(".")[0]


def ran(report, p):
    """False if an interrupt came before the property."""
    return not (report["interrupted"] and p["verdict"] == "INCOMPLETE")


def is_waived(p):
    return p["waived"]["reason"] != ""


def would_decide(report, p):
    """True if the verdict decides about the handler unless it is waived."""
    against = VERDICTS[p["verdict"]].against
    must = report["strict"] or (p["verdict"] == "INCOMPLETE" and p["level"] == "MUST")
    open_or_warned = against == 1 or p["verdict"] == "INCOMPLETE"
    return not about_numpy(p) and (against == 2 or (open_or_warned and must))


def decides(report, p):
    return would_decide(report, p) and not is_waived(p)


def against(report):
    """The number of properties that decide against the handler."""
    return sum(decides(report, p) and p["verdict"] != "INCOMPLETE" for p in report["properties"])


def waiver(p):
    one = p["waived"]
    until = "until " + one["until"] if one["until"] else ""
    return "; ".join(filter(None, (one["reason"], one["url"], until)))


def stale_words(one):
    words = "%s:%d: %s is expected to %s, and passes now: take the entry out"
    return words % (one["file"], one["line"], one["id"], one["verdict"])


def worse(one, other):
    """Of two exit statuses the one that says more against what was tested."""
    return min(one, other, key=SEVERITY.index)


def exit_code(report):
    """The exit status that the verdicts of a saved report mean, without --fail-on."""
    properties = report["properties"]
    passed = any(p["verdict"] == "PASS" and not about_numpy(p) for p in properties)
    if report["exit_code"] in (CANNOT_LOAD, UNFIT) and not passed:
        return report["exit_code"]
    if against(report) or report["stale"]:
        return NOT_CONFORMANT
    if any(p["verdict"] == "BROK" for p in properties):
        return BROKE
    if report["interrupted"]:
        return INCOMPLETE
    is_open = any(decides(report, p) for p in properties)
    return INCOMPLETE if is_open and not report["quick"] else CONFORMANT


def check_summary(report):
    """Raises Invalid if the summary of a report is not that of its verdicts."""
    code, properties = exit_code(report), report["properties"]
    counts = {target: dict.fromkeys(VERDICTS, 0) for target in ("handler", "runtime")}
    for p in properties:
        counts["runtime" if about_numpy(p) else "handler"][p["verdict"]] += 1
    waivers = sum(would_decide(report, p) and is_waived(p) for p in properties)
    conformant = code == CONFORMANT and not waivers and not report["quick"]
    summary = {"expected": len(properties), "waivers": waivers, "conformant": conformant}
    if {key: report[key] for key in summary} != summary or any(
        report["verdicts"][t][v] != counts[t][v] for t in counts for v in VERDICTS
    ):
        raise Invalid("its summary is not that of its verdicts")
    by_baseline = report["baseline"]["file"] and code in (CONFORMANT, NOT_CONFORMANT)
    if report["exit_code"] != code and not (
        by_baseline and report["exit_code"] in (CONFORMANT, NOT_CONFORMANT, BROKE, INCOMPLETE)
    ):
        raise Invalid("its exit_code is not that of its verdicts")
    if not (report["seed"].isdecimal() and int(report["seed"][:20]) < 2**64):
        raise Invalid("its seed is not a number of 64 bits")


# words, class on the page, color on which white can be read; best first
STANDINGS = [
    ("conformant", "good", "#1a7f37"),
    ("conformant with waivers", "warn", "#8a5c00"),
    ("partial", "warn", "#8a5c00"),
    ("no verdict", "none", "#57606a"),
    ("not conformant", "bad", "#c6202c"),
]


def standing(report):
    """The row of STANDINGS that sums the report up."""
    waived = report["waivers"] > 0 and report["exit_code"] == CONFORMANT
    if waived or report["conformant"]:
        partial = not report["whole"] or report["environment"]["checker"]
        return STANDINGS[2 if partial else 1 if waived else 0]
    ended = not report["interrupted"] and not report["quick"]
    failed = ended and against(report) and exit_code(report) == NOT_CONFORMANT
    return STANDINGS[4 if failed else 3]


def handler_name(report):
    subject = report["subject"]
    return subject["name"] or os.path.basename(subject["file"]) or subject["argument"]
