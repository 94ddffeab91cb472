# SPDX-License-Identifier: BSD-3-Clause
"""TAP 13: a test point for each property.  What does not count is a "not ok" with "# TODO"."""

import json

from . import model

FIELDS = "verdict level target clause source expected seen reproduce".split()
NOT_STRICT = {"WARN": "a SHOULD failed", "INCOMPLETE": "a SHOULD was not tried to its end"}


def directive(report, p):
    verdict = p["verdict"]
    if verdict == "SKIP":
        return "SKIP " + p["message"]
    if verdict == "PASS":
        return ""
    if model.about_numpy(p) and verdict != "BROK":
        return "TODO it is NumPy's, not the handler's"
    if model.is_waived(p):
        return "TODO waived: " + model.waiver(p)
    if verdict in NOT_STRICT and not model.decides(report, p):
        return "TODO " + NOT_STRICT[verdict]
    return ""


def escape(text):
    return text.replace("\\", "\\\\").replace("#", "\\#")


def render(reports):
    (report,) = reports
    subject, environment = report["subject"], report["environment"]
    lines = [
        "TAP version 13",
        "1..%d" % (len(report["properties"]) + len(report["stale"])),
        "# conform %s on %s; seed %s" % (report["conform"], subject["file"], report["seed"]),
    ]
    if environment["tunables"]:
        lines.append("# started again with GLIBC_TUNABLES=" + environment["tunables"])
    if environment["allocator"]:
        lines.append("# " + environment["allocator"])
    for number, p in enumerate(report["properties"], 1):
        good, todo = p["verdict"] in model.GOOD, directive(report, p)
        point = "%s %d - %s" % ("ok" if good else "not ok", number, p["id"])
        lines.append(point + " # " * bool(todo) + escape(todo))
        if not good:
            fields = [(key, json.dumps(p[key], ensure_ascii=False)) for key in FIELDS if p[key]]
            lines += ["  ---", *("  %s: %s" % field for field in fields), "  ..."]
    for number, one in enumerate(report["stale"], len(report["properties"]) + 1):
        lines.append("not ok %d - STALE %s" % (number, escape(model.stale_words(one))))
    return "\n".join([*lines, "# " + report["conclusion"], ""])
