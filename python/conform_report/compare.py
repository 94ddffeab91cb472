# SPDX-License-Identifier: BSD-3-Clause
"""The differences between two runs, from their reports, which may be of two versions of conform."""

import collections
import functools

from . import model

WEIGHT = {"WARN": 1, **dict.fromkeys(model.AGAINST, 2)}  # how much a verdict counts
FACTS = [  # what the reports of several handlers ("h") or interpreters ("i") differ in is named
    ("", "conform", "conform", ""),
    ("subject", "sha256", "the handler's SHA-256", "h"),
    ("environment", "python", "Python", "i"),
    ("environment", "numpy", "NumPy", "i"),
    ("environment", "libc", "libc", ""),
    ("environment", "kernel", "kernel", ""),
    ("environment", "checker", "beside", ""),
    ("environment", "allocator", "allocator", ""),
    ("", "seed", "seed", ""),
]
KINDS = "new", "fixed", "changed", "gone"


def is_judged(p):
    return p["verdict"] == "PASS" or p["verdict"] in WEIGHT


def is_whole(report):
    return report["whole"] and not report["interrupted"]


class Comparison:
    """What comparing found; status is the exit status with --fail-on new."""

    def __init__(self, before, after, strict):
        self.rows = {kind: [] for kind in (*KINDS, "unknown")}
        self.surroundings = {}  # lines, as keys
        self.unjudged = collections.Counter()  # what the earlier report judged, and the later not
        self.strict, self.status = strict, model.CONFORMANT
        self.interrupted = any(report["interrupted"] for report in after)
        several = [reports for reports in (before, after) if len(reports) > 1]
        self.by = {"i" if reports[0]["python"] else "h" for reports in several}
        partners = [self.partner(before, report) for report in after]
        for old, new in zip(partners, after):
            self.compare(old, new)
        for report in before:
            if not any(report is one for one in partners):
                self.surroundings[self.name(report) + " is not there now"] = None
                if self.interrupted:
                    self.not_run(report)

    def count(self, status):
        self.status = model.worse(self.status, status)

    def name(self, report):
        """Which of several reports it is."""
        subject, python = report["subject"], report["python"]
        words = []
        if "h" in self.by and subject["file"]:
            words.append(subject["file"] + (":" + subject["symbol"] if subject["symbol"] else ""))
        if "i" in self.by or report["error"]:
            words.append(python or report["environment"]["executable"])
        return " in ".join(words)

    def partner(self, reports, of):
        def handler(one):
            keys = "file", "symbol"
            return one["error"] or of["error"] or all(
                one["subject"][key] == of["subject"][key] for key in keys
            )

        def interpreter(one):
            if one["python"] and of["python"]:
                return one["python"] == of["python"]
            names = [{r["python"], r["environment"]["executable"]} - {""} for r in (one, of)]
            return names[0] & names[1]

        for one in reports:
            if ("h" not in self.by or handler(one)) and ("i" not in self.by or interpreter(one)):
                return one
        return None

    def compare(self, old, new):
        name = self.name(new)
        if new["error"]:
            self.surroundings["%s could not be run: %s" % (name, new["error"])] = None
            return self.not_run(old)
        if old is None:
            self.surroundings[name + " was not there"] = None
        elif old["error"]:
            self.surroundings["%s could not be run then: %s" % (name, old["error"])] = None
            old = None
        if model.UNFIT == new["exit_code"] and (old is None or old["exit_code"] != model.UNFIT):
            self.count(model.UNFIT)
        if old is not None:
            self.compare_facts(old, new, name)
        earlier = {p["id"]: p for p in old["properties"]} if old else {}
        for p in new["properties"]:
            self.compare_property(old, earlier.pop(p["id"], None), new, p, name)
        for p in earlier.values():
            if is_whole(new):
                self.row("gone", p, p["verdict"], "", name)
            else:
                self.unjudged["left out"] += 1
        return None

    def compare_facts(self, old, new, name):
        for group, key, words, axis in FACTS:
            was, now = ((one[group] if group else one)[key] for one in (old, new))
            most, none = (16, "none") if key == "sha256" else (128, "nothing")
            if was != now:
                line = "%s %s, now %s" % (words, was[:most] or none, now[:most] or none)
                self.surroundings[(name + ": " if axis and axis in self.by else "") + line] = None

    def compare_property(self, old, earlier, new, p, name):
        counts = model.would_decide({**new, "strict": self.strict}, p) and "waived" not in p
        if earlier is not None and is_judged(earlier):
            self.count_unjudged(new, p, counts)
        if not model.ran(new, p):
            return
        fails, verdict = counts and p["verdict"] in WEIGHT, p["verdict"]
        if earlier is None or not model.ran(old, earlier):
            self.row("unknown", p, "", verdict, name)
            if fails and not (old and is_whole(old)):  # it may be new
                self.count(model.NOT_CONFORMANT)
            return
        was = earlier["verdict"]
        if was == verdict:
            return
        if WEIGHT.get(verdict, 0) > WEIGHT.get(was, 0):
            self.row("new", p, was, verdict, name)
            if fails:
                self.count(model.NOT_CONFORMANT)
        else:
            fixed = was in WEIGHT and verdict == "PASS"
            self.row("fixed" if fixed else "changed", p, was, verdict, name)

    def count_unjudged(self, new, p, counts):
        if not model.ran(new, p):
            self.unjudged["not run"] += 1
            self.count(model.INCOMPLETE)
        elif p["verdict"] in ("BROK", "INCOMPLETE"):
            self.unjudged[p["verdict"]] += 1
            if p["verdict"] == "BROK":
                self.count(model.BROKE)
            elif counts:
                self.count(model.INCOMPLETE)

    def not_run(self, report):
        for p in report["properties"] if report else ():
            if is_judged(p):
                self.unjudged["not run"] += 1
                self.count(model.INCOMPLETE)

    def row(self, kind, p, before, after, name):
        row = {"id": p["id"], "before": before, "after": after, "target": p["target"]}
        waived = bool(after) and "waived" in p
        known = {key: value for key, value in row.items() if value}
        self.rows[kind].append({**known, "where": name, "waived": waived})

    def json(self, name):
        return {"file": name, **self.rows, "surroundings": list(self.surroundings)}

    def text(self, name, quiet):
        lines = [] if quiet else ["        " + line for line in self.surroundings]
        failed = [row for row in self.rows["unknown"] if row["after"] in WEIGHT]
        for kind, rows in {**{k: self.rows[k] for k in KINDS}, "unknown": failed}.items():
            lines += map(functools.partial(row_text, kind), rows)
        counts = ", ".join("%d %s" % (len(self.rows[kind]), kind) for kind in KINDS)
        last, unknown = "since %s: %s" % (model.clean(name), counts), len(self.rows["unknown"])
        if unknown:
            noun = "property" if unknown == 1 else "properties"
            last += "; of %d %s that it does not know %d failed" % (unknown, noun, len(failed))
        kinds = [k for k in ("not run", "INCOMPLETE", "BROK", "left out") if self.unjudged[k]]
        why = {"not run": " (interrupted)" if self.interrupted else ""}
        if kinds:
            words = ("%d %s%s" % (self.unjudged[k], k, why.get(k, "")) for k in kinds)
            last += "; of its properties " + ", ".join(words)
        return "\n".join([*lines, last, ""])


def row_text(kind, row):
    before, after = row.get("before"), row.get("after")
    verdicts = "%s, was %s" % (after, before) if before and after else after or "was " + before
    line = "%-7s %s: %s" % (kind.upper(), row["id"], verdicts)
    if model.about_numpy(row):
        line += " (about NumPy, and not counted)"
    if row["waived"]:
        line += " (waived, and not counted)"
    return line + (", " + row["where"] if row["where"] else "")
