# SPDX-License-Identifier: BSD-3-Clause
"""The differences between two runs, from their reports, which may be of two versions of conform."""

import collections

from . import model

KINDS = "new", "fixed", "changed", "unstable", "gone"
OF_ONE_REPORT = "File", "Interpreter", "Begin with", "Report"  # facts that are not compared


def weight(verdict):
    return model.VERDICTS[verdict].against


def is_judged(p):
    return p["verdict"] == "PASS" or weight(p["verdict"]) > 0


def is_intermittent(p):
    return p["failed_runs"] < p["runs"]


def are_alike(old, new):
    """True if the same file was run with the same seed in the same surroundings."""
    was, now = model.facts(old), model.facts(new)
    return was["SHA-256"] != "" and all(
        was[fact] == now[fact] for fact in was if fact not in OF_ONE_REPORT)


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
        self.several = max(len(before), len(after)) > 1
        missing = list(before)
        for new in after:
            old = next((one for one in missing if self.is_same(one, new)), None)
            missing = [one for one in missing if one is not old]
            self.compare(old, new)
        for old in missing:
            self.surroundings[self.name(old) + " is not there now"] = None
            if self.interrupted:
                self.not_run(old)

    def is_same(self, one, other):
        """True if the reports are of the same of several handlers."""
        handlers = {(r["subject"]["file"], r["subject"]["symbol"]) for r in (one, other)}
        return len(handlers) == 1 or not self.several

    def name(self, report):
        """Which of several reports it is."""
        subject = report["subject"]
        return ":".join(filter(None, (subject["file"], subject["symbol"]))) if self.several else ""

    def count(self, status):
        self.status = model.worse(self.status, status)

    def compare(self, old, new):
        name = self.name(new)
        if old is None:
            self.surroundings[name + " was not there"] = None
        if new["exit_code"] == model.UNFIT and not (old and old["exit_code"] == model.UNFIT):
            self.count(model.UNFIT)
        if old:
            self.compare_facts(old, new, name)
        earlier = {p["id"]: p for p in old["properties"]} if old else {}
        for p in new["properties"]:
            self.compare_property(old, earlier.pop(p["id"], None), new, p, name)
        for p in earlier.values():
            if is_whole(new):
                self.row("gone", p, p["verdict"], "", name)
            else:
                self.unjudged["left out"] += 1

    def compare_facts(self, old, new, name):
        was, now = model.facts(old), model.facts(new)
        for fact in model.FACTS:
            if was[fact] != now[fact] and fact not in OF_ONE_REPORT:
                most = 16 if fact == "SHA-256" else 128
                values = (one[fact][:most] or "none" for one in (was, now))
                line = fact + " %s, now %s" % tuple(values)
                self.surroundings[(name + ": " if name and fact == "SHA-256" else "") + line] = None

    def compare_property(self, old, earlier, new, p, name):
        verdict, ran = p["verdict"], model.ran(new, p)
        counts = model.decides({**new, "strict": self.strict}, p)
        if earlier and is_judged(earlier) and verdict in ("BROK", "INCOMPLETE"):
            self.unjudged[verdict if ran else "not run"] += 1
            if verdict == "BROK":
                self.count(model.BROKE)
            elif counts or not ran:
                self.count(model.INCOMPLETE)
        if not ran:
            return
        fails = counts and weight(verdict) > 0
        if earlier is None or not model.ran(old, earlier):
            self.row("unknown", p, "", verdict, name)
            if fails and not (old and is_whole(old)):  # it may be new
                self.count(model.NOT_CONFORMANT)
        elif verdict == earlier["verdict"]:
            return
        elif is_judged(p) and is_judged(earlier) and (
                is_intermittent(p) or is_intermittent(earlier) or are_alike(old, new)):
            self.row("unstable", p, earlier["verdict"], verdict, name)
        elif weight(verdict) > weight(earlier["verdict"]):
            self.row("new", p, earlier["verdict"], verdict, name)
            if fails:
                self.count(model.NOT_CONFORMANT)
        else:
            fixed = weight(earlier["verdict"]) > 0 and verdict == "PASS"
            self.row("fixed" if fixed else "changed", p, earlier["verdict"], verdict, name)

    def not_run(self, report):
        for p in report["properties"]:
            if is_judged(p):
                self.unjudged["not run"] += 1
                self.count(model.INCOMPLETE)

    def row(self, kind, p, before, after, name):
        row = {"id": p["id"], "before": before, "after": after, "target": p["target"]}
        row = {key: value for key, value in row.items() if value}
        self.rows[kind].append({**row, "where": name, "waived": bool(after) and model.is_waived(p)})

    def json(self, name):
        return {"file": name, **self.rows, "surroundings": list(self.surroundings)}

    def text(self, name, quiet):
        lines = [] if quiet else ["        " + line for line in self.surroundings]
        failed = [row for row in self.rows["unknown"] if weight(row["after"]) > 0]
        for kind, rows in {**self.rows, "unknown": failed}.items():
            lines += (row_text(kind, row) for row in rows)
        last = "since %s: " % model.clean(name)
        last += ", ".join("%d %s" % (len(self.rows[kind]), kind) for kind in KINDS)
        unknown = len(self.rows["unknown"])
        if unknown:
            noun = "property" if unknown == 1 else "properties"
            last += "; of %d %s that it does not know %d failed" % (unknown, noun, len(failed))
        kinds = [k for k in ("not run", "INCOMPLETE", "BROK", "left out") if self.unjudged[k]]
        words = ", ".join("%d %s" % (self.unjudged[k], k) for k in kinds)
        if self.interrupted:
            words = words.replace("not run", "not run (interrupted)")
        if words:
            last += "; of its properties " + words
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
