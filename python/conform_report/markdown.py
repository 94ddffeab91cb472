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
    return "%s%s%s%s%s" % (fence, pad, text, pad, fence)


def finding(p):
    lines = ["### %s: %s" % (escape(p["verdict"]), escape(p["id"])), ""]
    for name in "level clause source expected seen hint".split():
        if p[name]:
            lines.append("* %s: %s" % (name, escape(p[name])))
    if "waived" in p:
        lines.append("* waived: " + escape(model.waiver(p)))
    if p["reproduce"]:
        lines.append("* reproduce: " + code(p["reproduce"]))
    return [*lines, ""]


def section(report):
    name, environment = model.handler_name(report), report["environment"]
    lines = ["## %s: %s" % (escape(name), model.standing(report)[0]), ""]
    lines += [escape(report["error"] or report["conclusion"]), ""]
    facts = [
        ("handler", report["subject"]["file"]),
        ("SHA-256", report["subject"]["sha256"]),
        ("Python", environment["python"]),
        ("NumPy", environment["numpy"]),
        ("libc", environment["libc"]),
        ("kernel", environment["kernel"]),
        ("seed", report["seed"]),
        ("conform", report["conform"]),
        ("start with", report["start_with"]),
    ]
    lines += ["| | |", "| --- | --- |"]
    lines += ["| %s | %s |" % (key, escape(value)) for key, value in facts if value]
    lines.append("")
    bad = [p for p in report["properties"] if p["verdict"] not in ("PASS", "SKIP")]
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
