# SPDX-License-Identifier: BSD-3-Clause
"""Reads and validates JSON reports, and answers questions about one."""

import collections
import json
import os
import stat
import sys
import unicodedata

VERDICTS = "PASS FAIL WARN SKIP CRASH TIMEOUT BROK INCOMPLETE".split()
AGAINST = {"FAIL", "CRASH", "TIMEOUT"}  # verdicts that count against the handler at any level
FORMAT = "conform-report-2"
CONFORMANT, NOT_CONFORMANT, USAGE, CANNOT_LOAD, BROKE, INCOMPLETE, UNFIT = 0, 1, 2, 3, 4, 5, 77
SEVERITY = NOT_CONFORMANT, CANNOT_LOAD, BROKE, USAGE, UNFIT, INCOMPLETE, CONFORMANT

# The members that this package uses, each with a value of its type, which a report that lacks the
# member gets.  A list holds one example of its elements.
PROPERTY = {
    "id": "", "level": "", "basis": "", "target": "handler", "verdict": "", "message": "",
    "seconds": 0.0, "expected": "", "seen": "", "clause": "", "source": "", "hint": "",
    "reproduce": "", "repro": "", "output": "", "bad_rounds": 0,
}  # fmt: skip
REPORT = {
    "conform": "",
    "subject": {"argument": "", "file": "", "symbol": "", "sha256": "", "name": "", "version": 0},
    "environment": dict.fromkeys(
        "python executable numpy libc kernel tunables checker allocator".split(), ""
    ),
    "seed": "", "rounds": 1, "expected": 0, "whole": False, "quick": False, "interrupted": False,
    "verdicts": {target: dict.fromkeys(VERDICTS, 0) for target in ("handler", "runtime")},
    "start_with": "", "conformant": False, "strict": False, "exit_code": 0, "conclusion": "",
    "seconds": 0.0, "properties": [PROPERTY], "waivers": 0,
    "stale": [{"id": "", "file": "", "line": 0, "verdict": "", "reason": ""}],
    "error": "", "where": "", "python": "", "from": "",
}  # fmt: skip
WAIVED = {"reason": "", "url": "", "until": ""}
CHANGE = {"id": "", "before": "", "after": ""}
BASELINE = {"file": "", "surroundings": [""]}
BASELINE.update({kind: [CHANGE] for kind in ("new", "fixed", "changed", "gone")})


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


def fill(value, like, name):
    """Returns a copy of value with each member of like; raises Invalid if a type differs."""
    if isinstance(like, dict) and isinstance(value, dict):
        known = {key: value[key] for key in like if key in value}
        filled = {key: fill(one, like[key], "%s.%s" % (name, key)) for key, one in known.items()}
        return {**value, **default(like), **filled}
    if isinstance(like, list) and isinstance(value, list):
        return [fill(one, like[0], "%s[%d]" % (name, i)) for i, one in enumerate(value)]
    if like == "" and value is None:
        return ""
    if isinstance(like, str) and isinstance(value, str):
        return clean(value, name.endswith(".output"))
    numbers = (int, float) if isinstance(like, float) else type(like)
    is_number = isinstance(value, numbers) and abs(value) < 2**63
    if is_number and isinstance(value, bool) == isinstance(like, bool):
        return value
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "true or false"}
    raise Invalid("%s is not %s" % (name.lstrip("."), kinds.get(type(like), "a number")))


def default(like):
    if isinstance(like, dict):
        return {key: default(one) for key, one in like.items()}
    return [] if isinstance(like, list) else like


def valid_report(value):
    """Returns the report with all members that this package uses, or raises Invalid."""
    if not isinstance(value, dict) or value.get("format") != FORMAT or "properties" not in value:
        raise Invalid("is not a report that --json of this program writes")
    report = fill(value, REPORT, "")
    for i, p in enumerate(report["properties"], 1):
        if not p["id"]:
            raise Invalid("property %d has no id" % i)
        if p["verdict"] not in VERDICTS:
            raise Invalid("%.128s has the unknown verdict %.128r" % (p["id"], p["verdict"]))
        if "waived" in p:
            p["waived"] = fill(p["waived"], WAIVED, p["id"] + ".waived")
    if "baseline" in report:
        report["baseline"] = fill(report["baseline"], BASELINE, "baseline")
    return report


def reports_in(value):
    """Returns the reports of one run, of several handlers, or of several interpreters."""
    if isinstance(value, dict) and "interpreters" in value:
        reports = []
        columns = fill(value, {"interpreters": [{"python": "", "error": "", "exit_code": 0}]}, "")
        for column in columns["interpreters"]:
            if "report" in column:
                report = valid_report(column["report"])
            elif column["error"]:
                report = {**default(REPORT), **column}
            else:
                raise Invalid("%s has neither a report nor an error" % column["python"])
            reports.append({**report, "where": column["python"], "python": column["python"]})
    elif isinstance(value, list):
        reports = [valid_report(one) for one in value]
        for report in reports:
            report["where"] = report["subject"]["file"]
    else:
        reports = [valid_report(value)]
    if not reports:
        raise Invalid("has no report")
    return reports


def unique(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is there twice")
    return members


def no_constant(name):
    raise ValueError("%s is not JSON" % name)


def read_file(path, most=1 << 28):
    """Returns the bytes of a file or of stdin; raises Invalid if it cannot be read."""
    try:
        if path == "-":
            return sys.stdin.buffer.read()
        # A FIFO may have no writer; a pipe from the shell has one.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with open(fd, "rb") as file:
            named = not os.readlink("/proc/self/fd/%d" % fd).startswith("pipe:")
            if named and stat.S_ISFIFO(os.fstat(fd).st_mode):
                raise Invalid("%s: is no regular file" % path)
            os.set_blocking(fd, True)
            data = file.read(most + 1)
        if len(data) > most:
            raise Invalid("%s: has more than %d bytes" % (path, most))
        return data
    except (OSError, ValueError) as error:
        raise Invalid("%s: %s" % (path, getattr(error, "strerror", None) or error)) from None


def load_json(data, path):
    try:
        return json.loads(data.decode(), object_pairs_hook=unique, parse_constant=no_constant)
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


def about_numpy(p):
    return p["target"] == "runtime"


def group(p):
    return p["id"].partition(".")[0]


def ran(report, p):
    """False if an interrupt came before the property."""
    return not (report["interrupted"] and p["verdict"] == "INCOMPLETE")


def would_decide(report, p):
    """True if the verdict decides about the handler unless it is waived."""
    if about_numpy(p):
        return False
    return (
        p["verdict"] in AGAINST
        or (p["verdict"] == "WARN" and report["strict"])
        or (p["verdict"] == "INCOMPLETE" and (p["level"] == "MUST" or report["strict"]))
    )


def decides(report, p):
    return would_decide(report, p) and "waived" not in p


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
    """The exit status that the verdicts mean, without --fail-on."""
    if report["exit_code"] in (CANNOT_LOAD, UNFIT) and not any(
        p["verdict"] == "PASS" and not about_numpy(p) for p in report["properties"]
    ):
        return report["exit_code"]
    if against(report) or report["stale"]:
        return NOT_CONFORMANT
    if any(p["verdict"] == "BROK" for p in report["properties"]):
        return BROKE
    if report["quick"] and not report["interrupted"]:
        return CONFORMANT
    incomplete = any(decides(report, p) for p in report["properties"])
    return INCOMPLETE if incomplete or report["interrupted"] else CONFORMANT


def check_summary(report):
    """Raises Invalid if the summary of a report is not that of its verdicts."""
    counts = {target: collections.Counter() for target in ("handler", "runtime")}
    for p in report["properties"]:
        counts["runtime" if about_numpy(p) else "handler"][p["verdict"]] += 1
        rounds = p["bad_rounds"] if report["rounds"] > 1 else 0
        if not 0 <= rounds <= report["rounds"]:
            raise Invalid("its rounds are not those of its properties")
    code = exit_code(report)
    waivers = sum(would_decide(report, p) and "waived" in p for p in report["properties"])
    told = {t: {v: report["verdicts"][t][v] for v in VERDICTS} for t in counts}
    if (
        told != {t: {v: counts[t][v] for v in VERDICTS} for t in counts}
        or report["expected"] != len(report["properties"])
        or report["waivers"] != waivers
        or report["conformant"] != (code == CONFORMANT and not waivers and not report["quick"])
    ):
        raise Invalid("its summary is not that of its verdicts")
    by_baseline = "baseline" in report and code in (CONFORMANT, NOT_CONFORMANT)
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


def argument(report):
    """What --handler named, without the symbol."""
    name, symbol = report["subject"]["argument"], report["subject"]["symbol"]
    name = name[: -len(symbol) - 1] if symbol and name.endswith(":" + symbol) else name
    return os.path.basename(name)


def handler_name(report):
    subject = report["subject"]
    return subject["name"] or os.path.basename(subject["file"]) or report["where"]
