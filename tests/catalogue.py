# SPDX-License-Identifier: BSD-3-Clause
"""The catalogue of properties: whole, and the same in docs/clauses.md as in the program."""

import os
import re

import suite

HEADINGS = ("REQUIREMENT", "WHY", "HINT", "A FAILURE LOOKS LIKE", "SOURCE")
WIDTH = 80
SENTENCES = ("Clause", "Tests", "Why", "Hint")


def unexplained(identity, title):
    """What explain leaves out of a property, and its lines that are too long.  Code and a path
    are not wrapped."""
    result = suite.conform("explain", identity)
    wrong = [h for h in HEADINGS if not re.search(r"^%s\n  \S" % h, result.stdout, re.M)]
    if not re.match(r"%s  (MUST|SHOULD)  %s\n" % (re.escape(identity), re.escape(title)),
                    result.stdout):
        wrong.append("first line")
    if not re.search(r"^TEST  \S+\.c:\d+\nRUN   conform .* %s\n\Z" % re.escape(identity),
                     result.stdout, re.M):
        wrong.append("last lines")
    wrong += [line for line in result.stdout.splitlines()
              if len(line) > WIDTH and not line.startswith("TEST ")]
    return (identity, wrong, result.code) if wrong or result.code != 0 else None


def check_list(tap, listed):
    """Groups of one line for each property.  Returns the title of each id."""
    lines = listed.stdout.splitlines()
    titles, names = {}, []
    wrong = [line for line in lines if len(line) > WIDTH]
    for heading, group in re.findall(r"^(\S.*)\n((?: .*\n)+)", listed.stdout, re.M):
        rows = re.findall(r"^  (\S+) +(?:MUST|SHOULD) +(\S.*)$", group, re.M)
        name = rows[0][0].partition(".")[0]
        if (heading != "%s (%d)" % (name, len(rows)) or len(rows) != group.count("\n")
                or any(not id_.startswith(name + ".") for id_, _ in rows)):
            wrong.append((heading, rows))
        titles.update(rows)
        names.append(name)
    count = sum(line.startswith(" ") for line in lines)
    once = len(titles) == count and len(set(names)) == len(names)
    tap.point(not wrong and once and count > 100, "list has each id once, in its group",
              (wrong, len(titles), count, names))
    wrong = [title for title in titles.values() if len(title) > 40]
    tap.point(not wrong and len(set(titles.values())) == len(titles),
              "titles are short, and each is another", wrong or sorted(titles.values()))
    return titles


def check_sentences(tap, described):
    """A requirement is one sentence of at most 25 words; the rest are sentences, too."""
    wrong = []
    for identity, text in described.items():
        fields = dict(re.findall(r"^\* ([A-Z][a-z ]+): (.*)$", text, re.M))
        fields["Clause"] = re.match(r"\n\n\*\*.*\*\* \(.*\)\n\n(.*)\n", text)[1]
        if len(fields["Clause"].split()) > 25:
            wrong.append((identity, fields["Clause"]))
        wrong += [(identity, name, fields[name]) for name in SENTENCES if name in fields and (
            not fields[name].endswith(".") or fields[name].endswith(".."))]
    tap.point(not wrong, "requirements are one short sentence", wrong)


def sections(page):
    """The property ids of docs/clauses.md, with the text of each."""
    parts = re.split(r"^### (\S+)$", page, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def source(*names):
    with open(os.path.join(suite.SOURCE, *names), encoding="utf-8") as file:
        return file.read()


def main():
    tap = suite.Tap()
    listed = suite.conform("list", "--numpy")
    ids = check_list(tap, listed)
    bad = [wrong for wrong in map(unexplained, ids, ids.values()) if wrong]
    tap.point(not bad, "explain prints each field of each property", bad)
    clauses = suite.conform("list", "--verbose", "--run=abi.version").stdout
    tap.point(re.fullmatch(r"abi \(1\)\n  abi\.version +MUST .*\n {6}\S.*\n", clauses),
              "list --verbose has the requirement", clauses)
    with open(os.path.join(suite.SOURCE, "docs", "clauses.md"), encoding="utf-8") as file:
        kept = file.read()
    made = suite.conform("clauses").stdout
    tap.point(kept == made, "docs/clauses.md is what conform clauses prints",
              "run ./conform clauses >docs/clauses.md")
    described = sections(suite.conform("clauses", "--numpy").stdout)
    bare = [i for i in ids if not re.search(r"^\* Source: \S", described.get(i, ""), re.M)]
    tap.point(not bare, "each has a clause with a source", bare)
    topics = re.findall(r"^    TOPIC_(\w+),", source("src", "model", "property.h"), re.M)
    heads = "".join(source("conformance", name)
                    for name in os.listdir(os.path.join(suite.SOURCE, "conformance"))
                    if name.endswith(".c"))
    answered = [topic for fact in re.findall(r"\.answers_for = ([^,]*),", heads)
                for topic in re.findall(r"ABOUT\((\w+)\)", fact)]
    tap.point(sorted(answered) == sorted(topics), "one property answers for each topic",
              sorted(set(topics) ^ set(answered)))
    check_sentences(tap, described)
    extra = sorted(set(described) - set(ids))
    tap.point(not extra, "no clause is without a property", extra)
    untested = made.partition("## What cannot be tested")[2]
    tap.point(untested.count("\n* ") >= 5 and untested.count("Not tested: ") >= 5,
              "what cannot be tested is listed, with why", untested)
    tap.end()


main()
