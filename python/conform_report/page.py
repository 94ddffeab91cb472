# SPDX-License-Identifier: BSD-3-Clause
"""A page for people, in the frame page.html: each report, and all properties by all reports."""

import base64
import hashlib
import html
import os
import re

from . import model


def escaped(value):
    """Returns a copy with each string escaped, so that the functions below can insert it."""
    if isinstance(value, dict):
        return {key: escaped(one) for key, one in value.items()}
    if isinstance(value, list):
        return [escaped(one) for one in value]
    return html.escape(value) if isinstance(value, str) else value


def css(verdict):
    return model.VERDICTS[verdict].css


def badge(verdict):
    return f'<span class="v {css(verdict)}">{verdict}</span>'


def definitions(pairs, head=""):
    rows = "".join(f"<dt>{name}</dt><dd>{words}</dd>\n" for name, words in pairs if words)
    return f"<dl{head}>\n{rows}</dl>\n"


def preformatted(words):
    return f"<pre>{words}</pre>" if words else ""


def command(words):
    """Lines break between the words of a command, and not after the hyphens of an option."""
    return preformatted(re.sub("([^ ]+)", r"<span>\1</span>", words))


def docs(id):
    """CONFORM_DOCS is the address of the documentation's site, which has a page per property."""
    site = html.escape(os.environ.get("CONFORM_DOCS", ""))
    return site and f'<a href="{site}/properties/{id}.html#{id}">{id}</a>'


def conditions(p):
    """A table of the levels of factors that reproduce it, and of those that do not."""
    rows = "".join(
        f'<tr><th scope="row">{head}</th><td>{words.replace(between, "<br>")}</td></tr>\n'
        for head, words, between in (
            ("when", p["when"], ", and "), ("not when", p["not_when"], "; ")) if words)
    return rows and f"<table>\n{rows}</table>"


def finding(p, anchor):
    verdict = p["verdict"]
    fields = [
        ("Level", p["level"]),
        ("Clause", p["clause"]),
        ("Source", p["source"]),
        ("Expected", p["expected"]),
        ("Seen", p["seen"] or p["message"]),
        ("Handler", p["handler"]),
        ("Shown", conditions(p)),
        ("Likely due to", p["same_as"]),
        ("Hint", p["hint"] if verdict not in ("BROK", "INCOMPLETE") else ""),
        ("Waived", p["waived"]["reason"]),
        ("See", p["waived"]["url"]),
        ("Docs", docs(p["id"])),
        ("Reproduce", command(p["reproduce"])),
        ("In C", preformatted(p["repro"])),
        ("Printed", preformatted(p["output"])),
    ]
    title = f" <small>{p['title']}</small>" if p["title"] else ""
    return (
        f'<article class="{css(verdict)}" id="{anchor}" data-verdicts="{verdict}">\n'
        f"<h3>{badge(verdict)} {p['id']}{title}</h3>\n{definitions(fields)}</article>\n"
    )


def surroundings(report, with_numpy):
    """What tells the report from others: versions, and the name of its file."""
    python, numpy = report["environment"]["python"], report["environment"]["numpy"]
    versions = f"Python {python}, NumPy {numpy}" if with_numpy and numpy else ""
    return "".join(f" <small>{words}</small>" for words in (versions, report["from"]) if words)


def standing(report):
    words, its_class, _ = model.standing(report)
    why = report["conclusion"]
    why = why if why.lower() != words else ""
    return f'<strong class="v {its_class} standing">{words}</strong> {why}'


def differences(baseline):
    if not baseline["file"]:
        return ""
    rows = ""
    for kind in ("new", "fixed", "changed", "unstable", "gone"):
        for one in baseline[kind]:
            verdicts = " to ".join(
                badge(one[key]) for key in ("before", "after") if one[key] in model.VERDICTS
            )
            rows += f"<li><strong>{kind.upper()}</strong> {one['id']} {verdicts}</li>\n"
    rows += "".join(f"<li>{line}</li>\n" for line in baseline["surroundings"])
    rows = rows or "<li>no verdict is different</li>\n"
    return f'<h3>Since {baseline["file"]}</h3>\n<ul class="differences">\n{rows}</ul>\n'


def folded(title, body, is_open=False):
    is_open = " open" if is_open else ""
    head = f"<details{is_open}>\n<summary>{title}</summary>\n"
    return f"{head}{body}</details>\n" if body else ""


def section(report, number, several):
    own, numpy, skipped = "", "", ""
    for i, p in enumerate(report["properties"]):
        if p["verdict"] == "SKIP":
            words = f'{p["id"]} <span class="dim">{p["message"]}</span>'
            skipped += f'<p data-verdicts="SKIP">{words}</p>\n'
        elif p["verdict"] != "PASS" and model.about_numpy(p):
            numpy += finding(p, f"r{number}p{i}")
        elif p["verdict"] != "PASS":
            own += finding(p, f"r{number}p{i}")
    tally = report["verdicts"]["handler"]
    tally = "".join(f"<li>{tally[v]} {badge(v)}</li>\n" for v in model.VERDICTS if tally[v] > 0)
    facts = {**model.facts(report), "Time": "%.1f s" % report["seconds"]}
    name = model.handler_name(report) + (surroundings(report, True) if several else "")
    return (
        f'<section aria-labelledby="r{number}">\n<h2 id="r{number}">{name}</h2>\n'
        f"<p>{standing(report)}</p>\n"
        + definitions(facts.items(), ' class="facts"')
        + f'<ul class="tally">\n{tally}</ul>\n'
        + differences(report["baseline"])
        + own
        + folded("<h3>About NumPy itself, and not counted</h3>", numpy)
        + folded("<h3>Skipped</h3>", skipped)
        + "</section>\n"
    )


def table_head(reports):
    names = ["Property", "Verdict", "Time"]
    if len(reports) > 1:
        versions = {(r["environment"]["python"], r["environment"]["numpy"]) for r in reports}
        names[1:] = (model.handler_name(r) + surroundings(r, len(versions) > 1) for r in reports)
        names.append("Longest time")
    cells = "".join(f'<th scope="col">{name}</th>' for name in names)
    return f"<thead><tr>{cells}</tr></thead>\n"


def table_row(id, found, longest):
    """found has (position, property) per report, with (0, None) if the report lacks it."""
    cells = ""
    for number, (i, p) in enumerate(found, 1):
        verdict, its_class = (p["verdict"], css(p["verdict"])) if p else ("not run", "none")
        if p and verdict not in model.GOOD:
            verdict = f'<a href="#r{number}p{i}">{verdict}</a>'
        cells += f'<td class="v {its_class}">{verdict}</td>'
    verdicts = " ".join(p["verdict"] for _, p in found if p)
    seconds = max(p["seconds"] for _, p in found if p)
    bar = 100 * seconds / longest if longest > 0 else 0
    return (
        f'<tr data-verdicts="{verdicts}"><th scope="row">{id}</th>{cells}'
        f'<td class="time">{seconds:.3f} s<svg viewBox="0 0 100 1" preserveAspectRatio="none" '
        f'aria-hidden="true"><rect width="{bar:.1f}" height="1"/></svg></td></tr>\n'
    )


def tables(reports):
    """A table for each group; one with a property that did not pass is open."""
    found = [{p["id"]: (i, p) for i, p in enumerate(report["properties"])} for report in reports]
    longest = max((p["seconds"] for one in found for _, p in one.values()), default=0)
    groups, made = {}, ""
    for id, (_, p) in ((id, pair) for one in found for id, pair in one.items()):
        groups.setdefault(model.group(p), {})[id] = [one.get(id, (0, None)) for one in found]
    for name, rows in groups.items():
        bad = sum(any(p and p["verdict"] not in model.GOOD for _, p in row)
                  for row in rows.values())
        body = "".join(table_row(id, row, longest) for id, row in rows.items())
        table = f"<table>\n{table_head(reports)}<tbody>\n{body}</tbody></table>"
        if len(reports) > 1:
            region = f'<div class="wide" role="region" tabindex="0" aria-label="{name}">'
            table = f"{region}{table}</div>"
        noun = "property" if len(rows) == 1 else "properties"
        count = f"{len(rows)} {noun}" + (f", {bad} did not pass" if bad else "")
        made += folded(f"<h3>{name}</h3><small>{count}</small>", table + "\n", bad > 0)
    return made


def all_properties(reports):
    boxes = "".join(
        f'<label><input type="checkbox" value="{v}" checked> {v}</label>\n' for v in model.VERDICTS
    )
    return (
        '<section aria-labelledby="all">\n<h2 id="all">All properties</h2>\n'
        '<form id="filter" role="search" hidden>\n'
        '<label>Search <input type="search" id="query"></label>\n'
        f"<fieldset><legend>Verdicts</legend>\n{boxes}</fieldset>\n"
        f'<p role="status" id="shown"></p>\n</form>\n{tables(reports)}</section>\n'
    )


def body(reports):
    several = len(reports) > 1
    sections = [section(report, n, several) for n, report in enumerate(reports, 1)]
    sections.insert(0 if several else 1, all_properties(reports))
    overview = "".join(
        f'<li><a href="#r{number}">{model.handler_name(report)}</a> '
        f"{surroundings(report, True)}<br>{standing(report)}</li>\n"
        for number, report in enumerate(reports, 1)
    )
    overview = f"<ol>\n{overview}</ol>\n" if several else ""
    return (
        f"<header>\n<h1>Conformance to NEP 49</h1>\n{overview}</header>\n"
        f"<main>\n{''.join(sections)}</main>\n"
        f"<footer><small>Written by conform {reports[0]['conform']}</small></footer>\n"
    )


def framed(title, body, style="", is_filtered=True):
    """Fills page.html.  Its policy allows its style and its script, and nothing else."""
    with open(os.path.join(os.path.dirname(__file__), "page.html"), encoding="utf-8") as file:
        frame = file.read().replace("</style>", style + "</style>")
    if not is_filtered:
        frame = re.sub("(?s)<script>.*</script>\n", "", frame)
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'"
    for tag, words in re.findall("(?s)<(style|script)>(.*?)</", frame):
        digest = base64.b64encode(hashlib.sha256(words.encode()).digest()).decode()
        policy += f"; {tag}-src 'sha256-{digest}'"
    places = {"policy": policy, "title": title, "body": body}
    return re.sub("{{(.*?)}}", lambda place: places[place[1]], frame)


def render(reports):
    reports = escaped(reports)
    title = f"NEP 49: {len(reports)} reports"
    if len(reports) == 1:
        title = f"{model.handler_name(reports[0])}: {model.standing(reports[0])[0]}"
    return framed(title, body(reports))
