# SPDX-License-Identifier: BSD-3-Clause
"""The text of a run in several interpreters: a table of the verdicts that differ or are bad."""

import textwrap

from . import model

GOOD = "-", "PASS", "SKIP", "waived"


def verdict(p):
    return "-" if p is None else "waived" if "waived" in p else p["verdict"]


def field(name, words):
    margin = " " * 18
    head = " " * 8 + name.ljust(10)
    wrapped = textwrap.fill(words, 96, initial_indent=head, subsequent_indent=margin,
                            break_long_words=False, break_on_hyphens=False)  # fmt: skip
    return [wrapped] if words else []


def reasons(id, cells):
    """The message of the first report in which the property is bad, and how to repeat it."""
    for number, p in enumerate(cells, 1):
        if verdict(p) not in GOOD:
            hint = p["hint"] if p["verdict"] not in ("BROK", "INCOMPLETE") else ""
            lines = ["", "%s in %d" % (id, number), *field("message", p["message"])]
            return [*lines, *field("hint", hint), "        reproduce " + p["reproduce"]]
    return []


def answer(reports, verbose):
    found = [{p["id"]: p for p in report["properties"]} for report in reports]
    rows, hidden = {}, 0
    for id, p in ((id, p) for one in found for id, p in one.items()):
        cells = [one.get(id) for one in found]
        verdicts = [verdict(cell) for cell in cells]
        ran = {v for v, report in zip(verdicts, reports) if not report["error"]}
        if id in rows or (len(ran) == 1 and not ran - {"-", "PASS", "SKIP"}):
            continue
        if model.about_numpy(p) and not verbose:
            hidden += 1
        else:
            rows[id] = cells
    lines = []
    if rows:
        lines += ["", " " * 40 + "".join(" %-7d" % (i + 1) for i in range(len(reports)))]
    for id, cells in rows.items():
        verdicts = [verdict(cell) for cell in cells]
        bad = [number for number, v in enumerate(verdicts, 1) if v not in GOOD]
        only = " in %d only" % bad[0] if len(bad) == 1 < len(cells) else ""
        lines.append("%-40s%s%s" % (id, "".join(" %-7.7s" % v for v in verdicts), only))
    for id, cells in rows.items():
        lines += reasons(id, cells)
    if hidden:
        words = "%d properties of NumPy itself differ or fail, and are not counted; "
        words += "--verbose lists them"
        lines += ["", words % hidden]
    return {"differ_or_bad": list(rows), "text": "".join(line + "\n" for line in lines)}
