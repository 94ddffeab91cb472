# SPDX-License-Identifier: BSD-3-Clause
"""Annotations for a GitHub job: a line for each failure that the text shows in full."""

import re

from . import model


def escape(text, more=""):
    return "".join("%%%02X" % ord(c) if c in "%\r\n" + more else c for c in text)


def annotation(report, p):
    place = re.fullmatch(r".* at (.+):(\d+)", p["handler"])
    facts = {"file": place[1], "line": place[2]} if place else {}
    facts["title"] = "%s %s" % (p["verdict"], p["id"])
    words = ",".join("%s=%s" % (key, escape(value, ":,")) for key, value in facts.items())
    lines = [p["clause"], p["message"], p["hint"] and "Hint: " + p["hint"]]
    kind = "error" if model.decides(report, p) else "warning"
    return "::%s %s::%s\n" % (kind, words, escape("\n".join(filter(None, lines))))


def render(reports):
    return "".join(annotation(report, p) for report in reports for p in report["properties"]
                   if p["verdict"] not in model.GOOD and not p["same_as"]
                   and not model.about_numpy(p) and not model.is_waived(p))
