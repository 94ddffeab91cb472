# SPDX-License-Identifier: BSD-3-Clause
"""Markdown, for a CI job's summary or an issue: what did not pass, with how to reproduce it."""

import re

from . import model


def escape(text):
    return re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", text)


def code(text):
    """A code span; the fence is longer than any run of backticks in the text."""
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if "`" in text else ""
    return fence + pad + text + pad + fence


def finding(p):
    lines = ["### %s: %s" % (p["verdict"], escape(p["id"])), ""]
    for name in "level clause source expected seen handler hint".split():
        if p[name]:
            lines.append("* %s: %s" % (name, escape(p[name])))
    if model.is_waived(p):
        lines.append("* waived: " + escape(model.waiver(p)))
    if p["reproduce"]:
        lines.append("* reproduce: " + code(p["reproduce"]))
    return [*lines, ""]


def section(report):
    lines = ["## %s: %s" % (escape(model.handler_name(report)), model.standing(report)[0]), ""]
    lines += [escape(report["conclusion"]), "", "| | |", "| --- | --- |"]
    facts = model.facts(report).items()
    lines += ["| %s | %s |" % (key, escape(value)) for key, value in facts if value]
    lines.append("")
    bad = [p for p in report["properties"] if p["verdict"] not in model.GOOD]
    for p in bad:
        if not model.about_numpy(p):
            lines += finding(p)
    lines += ["* " + escape(model.stale_words(one)) for one in report["stale"]]
    numpy = sum(map(model.about_numpy, bad))
    if numpy:
        lines += ["%d properties of NumPy itself did not pass; they are not counted." % numpy, ""]
    return lines


def render(reports):
    lines = ["# Conformance to NEP 49", ""]
    return "\n".join(lines + [line for report in reports for line in section(report)])
