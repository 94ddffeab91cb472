# SPDX-License-Identifier: BSD-3-Clause
"""What conform reports as `when` of a mutant: four of five name the levels of factors that WHEN in
handlers/faulty lists.  All formats have it, or none."""

import os

import elf
import suite

PREFIX = "when_"
LEAST = 0.8


def characterizes(tap, path, symbol, expected):
    """Returns whether all conditions that are expected are reported."""
    identity, _, conditions = expected.partition(": ")
    handler = "--handler=%s:%s" % (path, symbol[len(PREFIX):])
    result = suite.conform(handler, "--run=" + identity, "--json=r.json", "--html=r.html")
    (found,) = suite.load("r.json")["properties"]
    reported = found.get("when", "").split(", and ")
    missing = [words for words in conditions.split("; ")
               if not any(one.startswith(words) for one in reported)]
    with open("r.html", encoding="utf-8") as file:
        in_page = '<th scope="row">when' in file.read()
    tap.point(found["verdict"] in ("FAIL", "WARN")
              and ("when" in found) == ("  when  " in result.stdout) == in_page,
              "%s: all formats have it, or none; missing: %s" % (symbol, missing), result)
    return not missing


def main():
    if suite.SANITIZED:
        suite.skip_all("with sanitizers less is tried")
    tap = suite.Tap()
    path = os.path.join(suite.FAULTY, "faulty.so")
    shared = elf.Object(path)
    rows = sorted(symbol for symbol in shared.symbols if symbol.startswith(PREFIX))
    with suite.scratch(enter=True):
        named = sum(characterizes(tap, path, row, shared.text(row)) for row in rows)
        tap.point(named >= LEAST * len(rows) > 0, "%d of %d are named" % (named, len(rows)))
        quick = suite.conform("--handler=%s:calloc_does_not_zero" % path, "--run=calloc.zeroed",
                              "--quick", "--json=r.json")
        (found,) = suite.load("r.json")["properties"]
        tap.point(found["verdict"] == "FAIL" and "when" not in found, "--quick has none", quick)
    tap.end()


main()
