# SPDX-License-Identifier: BSD-3-Clause
"""A page for people, in the frame page.html: each report, and all properties by all reports."""

import base64
import hashlib
import html
import os
import re

from . import model

CLASS = {"PASS": "good", **dict.fromkeys(model.AGAINST, "bad")}
CLASS.update(dict.fromkeys(("WARN", "BROK", "INCOMPLETE"), "warn"))
GOOD = "PASS", "SKIP", "not run"
FACTS = [
    ("File", "subject.file"),
    ("SHA-256", "subject.sha256"),
    ("Python", "environment.python"),
    ("Interpreter", "environment.executable"),
    ("NumPy", "environment.numpy"),
    ("C library", "environment.libc"),
    ("Kernel", "environment.kernel"),
    ("Beside it", "environment.checker"),
    ("Allocator", "environment.allocator"),
    ("Seed", "seed"),
    ("conform", "conform"),
    ("Begin with", "start_with"),
    ("Report", "from"),
]


def fact(report, path):
    for key in path.split("."):
        report = report[key]
    return report


def put(frame, *words):
    """Fills each % of the frame with an escaped word."""
    return re.sub("%", "%s", frame) % tuple(html.escape(str(word)) for word in words)


def css(verdict):
    return CLASS.get(verdict, "none")


def badge(verdict):
    return put('<span class="v %">%</span>', css(verdict), verdict)


def definition(name, words):
    return put("<dt>%</dt><dd>%</dd>\n", name, words) if words else ""


def preformatted(name, words):
    return put("<dt>%</dt><dd><pre>%</pre></dd>\n", name, words) if words else ""


def command(words):
    """Lines break between the words of a command, and not after the hyphens of an option."""
    spans = (put("<span>%</span>", w) if w.strip() else w for w in re.split("( +)", words) if w)
    return "<dt>Reproduce</dt><dd><pre>%s</pre></dd>\n" % "".join(spans) if words else ""


def docs(id):
    """CONFORM_DOCS is the address of the documentation's site, which has a page per property."""
    site = os.environ.get("CONFORM_DOCS")
    frame = '<dt>Docs</dt><dd><a href="%/properties/%.html#%">%</a></dd>\n'
    return put(frame, site, id, id, id) if site else ""


def finding(p, anchor):
    verdict, waived = p["verdict"], p.get("waived", model.WAIVED)
    head = '<article class="%" id="%" data-verdicts="%">\n<h3><span class="v %">%</span> %</h3>\n'
    return "".join(
        [
            put(head, css(verdict), anchor, verdict, css(verdict), verdict, p["id"]),
            "<dl>\n",
            definition("Level", p["level"]),
            definition("Clause", p["clause"]),
            definition("Source", p["source"]),
            definition("Expected", p["expected"]),
            definition("Seen", p["seen"] or p["message"]),
            definition("Hint", p["hint"] if verdict not in ("BROK", "INCOMPLETE") else ""),
            definition("Waived", waived["reason"]),
            definition("See", waived["url"]),
            docs(p["id"]),
            command(p["reproduce"]),
            preformatted("In Python" if p["repro"].endswith(".py") else "In C", p["repro"]),
            preformatted("Printed", p["output"]),
            "</dl>\n</article>\n",
        ]
    )


def surroundings(report, with_numpy):
    environment, words = report["environment"], ""
    if with_numpy and environment["numpy"]:
        frame = " <small>Python %, NumPy %</small>"
        words = put(frame, environment["python"], environment["numpy"])
    return words + (put(" <small>%</small>", report["from"]) if report["from"] else "")


def standing(report):
    words, its_class, _ = model.standing(report)
    why = report["error"] or report["conclusion"]
    frame = '<strong class="v % standing">%</strong> %'
    return put(frame, its_class, words, why if why.lower() != words else "")


def differences(baseline):
    rows = [
        put("<li><strong>%</strong> % ", kind.upper(), one["id"])
        + " to ".join(map(badge, filter(None, (one["before"], one["after"]))))
        + "</li>\n"
        for kind in ("new", "fixed", "changed", "gone")
        for one in baseline[kind]
    ]
    rows += [put("<li>%</li>\n", line) for line in baseline["surroundings"]]
    head = put('<h3>Since %</h3>\n<ul class="differences">\n', baseline["file"])
    return head + ("".join(rows) or "<li>no verdict is different</li>\n") + "</ul>\n"


def folded(title, items):
    frame = "<details>\n<summary><h3>%s</h3></summary>\n%s</details>\n"
    return frame % (title, "".join(items)) if items else ""


def section(report, number, several):
    own, numpy, skipped = [], [], []
    for i, p in enumerate(report["properties"]):
        if p["verdict"] == "SKIP":
            frame = '<p data-verdicts="SKIP">% <span class="dim">%</span></p>\n'
            skipped.append(put(frame, p["id"], p["message"]))
        elif p["verdict"] != "PASS":
            (numpy if model.about_numpy(p) else own).append(finding(p, "r%dp%d" % (number, i)))
    tally = (
        "<li>%d %s</li>\n" % (report["verdicts"]["handler"][v], badge(v))
        for v in model.VERDICTS
        if report["verdicts"]["handler"][v] > 0
    )
    frame = '<section aria-labelledby="r%">\n<h2 id="r%">%'
    return "".join(
        [
            put(frame, number, number, model.handler_name(report)),
            surroundings(report, True) if several else "",
            "</h2>\n<p>%s</p>\n" % standing(report),
            '<dl class="facts">\n',
            *(definition(name, fact(report, path)) for name, path in FACTS),
            definition("Time", "%.1f s" % report["seconds"]),
            '</dl>\n<ul class="tally">\n%s</ul>\n' % "".join(tally),
            differences(report["baseline"]) if "baseline" in report else "",
            *own,
            folded("About NumPy itself, and not counted", numpy),
            folded("Skipped", skipped),
            "</section>\n",
        ]
    )


def table_head(reports):
    several = len(reports) > 1
    versions = {(r["environment"]["python"], r["environment"]["numpy"]) for r in reports}
    cells = "".join(
        put('<th scope="col">%', model.handler_name(report) if several else "Verdict")
        + (surroundings(report, len(versions) > 1) if several else "")
        + "</th>"
        for report in reports
    )
    frame = (
        '<thead><tr><th scope="col">Property</th>%s<th scope="col">%s</th></tr></thead>\n<tbody>\n'
    )
    return frame % (cells, "Longest time" if several else "Time")


def table_row(id, found, longest):
    """found has (position, property) per report, with (0, None) if the report lacks it."""
    seconds = max(p["seconds"] for _, p in found if p)
    cells = ""
    for number, (i, p) in enumerate(found, 1):
        verdict = p["verdict"] if p else "not run"
        link = "%" if verdict in GOOD else '<a href="#r%dp%d">%%</a>' % (number, i)
        cells += put('<td class="v %">' + link + "</td>", css(verdict), verdict)
    verdicts = " ".join(p["verdict"] for _, p in found if p)
    bar = 100 * seconds / longest if longest > 0 else 0
    return (
        put('<tr data-verdicts="%"><th scope="row">%</th>', verdicts, id)
        + cells
        + '<td class="time">%.3f s<svg viewBox="0 0 100 1" preserveAspectRatio="none" '
        'aria-hidden="true"><rect width="%.1f" height="1"/></svg></td></tr>\n' % (seconds, bar)
    )


def tables(reports):
    """A table for each group; one with a property that did not pass is open."""
    found = [{p["id"]: (i, p) for i, p in enumerate(report["properties"])} for report in reports]
    longest = max((p["seconds"] for one in found for _, p in one.values()), default=0)
    groups, head = {}, table_head(reports)
    for id, (_, p) in ((id, pair) for one in found for id, pair in one.items()):
        groups.setdefault(model.group(p), {})[id] = [one.get(id, (0, None)) for one in found]
    for name, rows in groups.items():
        bad = sum(any(p and p["verdict"] not in GOOD for _, p in row) for row in rows.values())
        body = "".join(table_row(id, row, longest) for id, row in rows.items())
        table = "<table>\n%s%s</tbody></table>" % (head, body)
        if len(reports) > 1:
            frame = '<div class="wide" role="region" tabindex="0" aria-label="%">'
            table = put(frame, name) + table + "</div>"
        yield (
            "<details%s>\n<summary><h3>%s</h3><small>%d %s%s</small></summary>\n%s\n</details>\n"
            % (
                " open" * (bad > 0),
                html.escape(name),
                len(rows),
                "property" if len(rows) == 1 else "properties",
                ", %d did not pass" % bad if bad else "",
                table,
            )
        )


def all_properties(reports):
    frame = '<label><input type="checkbox" value="%" checked> %</label>\n'
    return (
        '<section aria-labelledby="all">\n<h2 id="all">All properties</h2>\n'
        '<form id="filter" role="search" hidden>\n'
        '<label>Search <input type="search" id="query"></label>\n'
        "<fieldset><legend>Verdicts</legend>\n%s</fieldset>\n"
        '<p role="status" id="shown"></p>\n</form>\n%s</section>\n'
        % ("".join(put(frame, v, v) for v in model.VERDICTS), "".join(tables(reports)))
    )


def body(reports):
    several = len(reports) > 1
    overview = "".join(
        put('<li><a href="#r%">%</a> ', number, model.handler_name(report))
        + surroundings(report, True)
        + "<br>%s</li>\n" % standing(report)
        for number, report in enumerate(reports, 1)
    )
    sections = [section(report, n, several) for n, report in enumerate(reports, 1)]
    sections.insert(0 if several else 1, all_properties(reports))
    return "<header>\n<h1>Conformance to NEP 49</h1>\n%s</header>\n<main>\n%s</main>\n%s" % (
        "<ol>\n%s</ol>\n" % overview if several else "",
        "".join(sections),
        put("<footer><small>Written by conform %</small></footer>\n", reports[0]["conform"]),
    )


def policy(frame):
    """Allows the style and the script of the frame, and nothing else."""
    hashes = (
        base64.b64encode(hashlib.sha256(re.search(tag, frame, re.S)[1].encode()).digest()).decode()
        for tag in ("<style>(.*?)</style>", "<script>(.*?)</script>")
    )
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        "style-src 'sha256-%s'; script-src 'sha256-%s'" % tuple(hashes)
    )


def render(reports):
    with open(os.path.join(os.path.dirname(__file__), "page.html"), encoding="utf-8") as file:
        frame = file.read()
    title = "NEP 49: %d reports" % len(reports)
    if len(reports) == 1:
        title = "%s: %s" % (model.handler_name(reports[0]), model.standing(reports[0])[0])
    places = {"policy": policy(frame), "title": html.escape(title), "body": body(reports)}
    return re.sub("{{(.*?)}}", lambda place: places[place[1]], frame)
