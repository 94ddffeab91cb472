# SPDX-License-Identifier: BSD-3-Clause
"""The catalogue of properties: whole, and the same in docs/clauses.md as in the program."""

import os
import re

import suite

FIELDS = ("clause", "level", "source", "about", "why", "hint", "looks", "code")


def unexplained(identity):
    """What explain leaves out of a property."""
    result = suite.conform("explain", identity)
    missing = [f for f in FIELDS if not re.search(r"^ +%s +\S" % f, result.stdout, re.M)]
    return (identity, missing, result.code) if missing or result.code != 0 else None


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
    ids = [line.split()[0] for line in listed.stdout.splitlines()]
    tap.point(len(ids) == len(set(ids)) and len(ids) > 100, "list has each id once", listed)
    bad = [wrong for wrong in map(unexplained, ids) if wrong]
    tap.point(not bad, "explain prints each field of each property", bad)
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
    extra = sorted(set(described) - set(ids))
    tap.point(not extra, "no clause is without a property", extra)
    untested = made.partition("## What nothing here can test")[2]
    tap.point(untested.count("\n* ") >= 5 and untested.count("Not tested, for ") >= 5,
              "what cannot be tested is listed, with why", untested)
    tap.end()


main()
