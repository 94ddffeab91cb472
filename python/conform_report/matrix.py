# SPDX-License-Identifier: BSD-3-Clause
"""The text of a run in several interpreters: a table of the verdicts that differ or are bad."""

import textwrap

from . import model


def verdict(p):
    return "-" if p is None else "waived" if model.is_waived(p) else p["verdict"]


def is_bad(p):
    return verdict(p) not in ("-", "waived", *model.GOOD)


def field(name, words):
    head = " " * 8 + name.ljust(10)
    lines = textwrap.wrap(words, 96, initial_indent=head, subsequent_indent=" " * 18,
                          break_long_words=False, break_on_hyphens=False)
    return ["\n".join(lines)] if words else []


def reasons(id, number, p):
    """The message of the first report in which the property is bad, and how to repeat it."""
    hint = p["hint"] if p["verdict"] not in ("BROK", "INCOMPLETE") else ""
    lines = ["", "%s in %d" % (id, number), *field("message", p["message"]), *field("hint", hint)]
    return [*lines, "        reproduce " + p["reproduce"]]


def answer(reports, verbose):
    found = [{p["id"]: p for p in report["properties"]} for report in reports]
    rows, hidden = {}, 0
    for p in (p for one in found for p in one.values()):
        cells = [one.get(p["id"]) for one in found]
        ran = {verdict(cell) for cell, report in zip(cells, reports) if not report["error"]}
        if p["id"] in rows or (len(ran) == 1 and ran <= {"-", *model.GOOD}):
            continue
        if model.about_numpy(p) and not verbose:
            hidden += 1
        else:
            rows[p["id"]] = cells
    lines, more = [], []
    if rows:
        lines = ["", " " * 40 + "".join(" %-7d" % (i + 1) for i in range(len(reports)))]
    for id, cells in rows.items():
        bad = [(number, p) for number, p in enumerate(cells, 1) if is_bad(p)]
        only = " in %d only" % bad[0][0] if len(bad) == 1 < len(cells) else ""
        lines.append("%-40s%s%s" % (id, "".join(" %-7.7s" % verdict(p) for p in cells), only))
        more += reasons(id, *bad[0]) if bad else []
    if hidden:
        words = "%d properties of NumPy itself differ or fail, and are not counted; "
        more += ["", words % hidden + "--verbose lists them"]
    return {"differ_or_bad": list(rows), "text": "".join(line + "\n" for line in lines + more)}
