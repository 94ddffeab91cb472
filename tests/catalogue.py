# SPDX-License-Identifier: BSD-3-Clause
"""The catalogue of properties: whole, and the same in docs/clauses.md as in the program.

    tests/catalogue.py [--write]

With --write, docs/numpy-defects.md anew.
"""

import glob
import os
import re
import sys

import suite

FIELDS = ("clause", "level", "source", "about", "why", "hint", "looks", "code")


DEFECTS = os.path.join(suite.SOURCE, "docs", "numpy-defects.md")
DEFECTS_HEAD = """\
# NumPy's own defects

<!-- Made by `tests/catalogue.py --write` from the properties about NumPy; not edited by hand. -->

What NumPy itself does wrong with data memory, and no handler can mend.  Nothing here counts against
a handler: `conform` says how many of these the NumPy at hand has, `--verbose` tells each, and the
other properties step round them.  The versions are NumPy's, of 1.22 to 2.5, which were looked at.
The commands take `aligned`, which comes with `conform`, and do not even load it.  Those that a
program shows have a [page](numpy-defects/README.md) with it, what it printed on several versions,
and where in NumPy the cause is.
"""
DEFECT = """
## {id}

Expected: {clause}.

* What comes of it: {why}
* Source and versions: {source}
* {until}
* A failure looks like: {looks}
* To see it: `./conform --handler aligned --verbose --run={id}`
{program}"""
KEPT = "this is NumPy's to keep"
PROGRAM = "* A program that shows it: [{name}](numpy-defects/{name}.md)\n"


def unexplained(identity):
    """What --explain leaves out of a property."""
    result = suite.conform("--explain", identity)
    missing = [f for f in FIELDS if not re.search(r"^ +%s +\S" % f, result.stdout, re.M)]
    return (identity, missing, result.code) if missing or result.code != 0 else None


def sections(page):
    """The property ids of docs/clauses.md, with the text of each."""
    parts = re.split(r"^### (\S+)$", page, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def programs():
    """The name of the program that shows each of NumPy's defects, by the property's id."""
    found = {}
    for path in sorted(glob.glob(os.path.join(DEFECTS[:-len(".md")], "*.py"))):
        with open(path, encoding="utf-8") as file:
            line = re.search(r"^Property: (.*)$", file.read(), re.M)
        for identity in line.group(1).split(", ") if line else []:
            found[identity] = os.path.basename(path)[:-len(".py")]
    return found


def defects(described):
    """The page of NumPy's defects, from the text of each of NumPy's properties."""
    page = DEFECTS_HEAD
    shown = programs()
    for identity, text in described.items():
        if ", about NumPy. " not in text:
            continue
        field = dict(re.findall(r"^\* ([A-Z][a-z ]+): (.*)$", text, re.M))
        clause = re.search(r", about NumPy\. (.*)\.$", text, re.M).group(1)
        hint = field["Hint"].partition("; ")[2]
        until = ("None of these versions breaks it" if field["Hint"].startswith(KEPT)
                 else "Until it is mended: " + (hint or "nothing is known"))
        page += DEFECT.format(id=identity, why=field["Why"], clause=clause,
                              source=field["Source"], until=until,
                              program=PROGRAM.format(name=shown[identity])
                              if identity in shown else "",
                              looks=field["A failure looks like"].replace("WARN: ", ""))
    return page


def write():
    with open(DEFECTS, "w", encoding="utf-8") as file:
        file.write(defects(sections(suite.conform("--clauses", "--numpy").stdout)))


def main():
    if sys.argv[1:] == ["--write"]:
        write()
        return
    tap = suite.Tap()
    listed = suite.conform("--list", "--numpy")
    ids = [line.split()[0] for line in listed.stdout.splitlines()]
    tap.point(len(ids) == len(set(ids)) and len(ids) > 100, "--list has each id once", listed)
    bad = [wrong for wrong in map(unexplained, ids) if wrong]
    tap.point(not bad, "--explain says each field of each property", bad)
    with open(os.path.join(suite.SOURCE, "docs", "clauses.md"), encoding="utf-8") as file:
        kept = file.read()
    made = suite.conform("--clauses").stdout
    tap.point(kept == made, "docs/clauses.md is what conform --clauses prints",
              "run ./conform --clauses >docs/clauses.md")
    described = sections(suite.conform("--clauses", "--numpy").stdout)
    with open(DEFECTS, encoding="utf-8") as file:
        kept = file.read()
    tap.point(kept == defects(described), "docs/numpy-defects.md is made of it", "run make docs")
    bare = [i for i in ids if not re.search(r"^\* Source: \S", described.get(i, ""), re.M)]
    tap.point(not bare, "each has a clause with a source", bare)
    source = os.path.join(suite.SOURCE, "src", "model", "attribution.c")
    with open(source, encoding="utf-8") as file:
        owners = re.findall(r'"([a-z]+\.[a-z0-9-]{2,})"', file.read())
    tap.point(len(owners) > 10 and not set(owners) - set(ids),
              "the properties that answer for a kind of call are there", owners)
    extra = sorted(set(described) - set(ids))
    tap.point(not extra, "no clause is without a property", extra)
    untested = made.partition("## What nothing here can test")[2]
    tap.point(untested.count("\n* ") >= 5 and untested.count("Not tested, for ") >= 5,
              "what cannot be tested is listed, with why", untested)
    tap.end()


if __name__ == "__main__":
    main()
