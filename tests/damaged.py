# SPDX-License-Identifier: BSD-3-Clause
"""The readers of the Python package take any bytes: a damaged report, bundle or list of waivers is
refused with one line, or read and presented; nothing else is raised."""

import json
import os
import random
import sys

import suite

sys.path.insert(0, os.path.join(suite.SOURCE, "python"))
sys.dont_write_bytecode = True
from conform_report import (  # noqa: E402
    badge, bundle, compare, junit, markdown, model, page, tap, waivers)

COUNT = 3000 if suite.LONG else 300
WAIVERS = b"""# known
[[expect]]
id = "calloc.*"
verdict = "FAIL"
reason = "known"
until = 2999-01-01
numpy = ">=1"
[["expect"]]
id = "malloc.*"
verdict = "WARN"
reason = "a
[[expect]]"
"""
VALUES = [None, True, -1, 1e308, 10**400, "", "\0\ud800<&>", "PASS", [], {}, [[]], {"a": {}},
          "x" * 999]
GARBAGE = [b"", b"\0" * 99, b"1", b"[]", b"{}", b"null", "\ufeff{}".encode(), b"[" * 99999,
           b'{"a":' * 9999, b"\xff\xfe", b"expect = " + b"[" * 9999, b"expect = " + b"{a=" * 9999,
           b"[[" + b"a." * 9999]


def present(reports):
    for each in badge, markdown, page:
        each.render(reports).encode()
    for report in reports:
        for each in tap, junit:
            each.render([report]).encode()
    compare.Comparison(reports, reports[::-1], True).text("x", False)


def read_report(data):
    present(model.reports_in(model.load_json(data, "file")))


def read_bundle(data):
    present([bundle.read(data)])


def read_waivers(data):
    with open("w.toml", "wb") as file:
        file.write(data)
    waivers.read("w.toml")


def damaged(chance, data):
    """Cut, or with some bytes changed."""
    if chance.random() < 0.3:
        return data[:chance.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def other_values(chance, value):
    """A copy in which one member is of another kind, or missing."""
    copied = json.loads(json.dumps(value))
    at = copied
    while True:
        keys = list(at) if isinstance(at, dict) else range(len(at))
        key = chance.choice(list(keys))
        if isinstance(at[key], (dict, list)) and at[key] and chance.random() < 0.8:
            at = at[key]
        elif isinstance(at, dict) and chance.random() < 0.2:
            del at[key]
            return copied
        else:
            at[key] = chance.choice(VALUES)
            return copied


def main():
    tap_ = suite.Tap()
    with suite.scratch(enter=True):
        suite.conform("-H", suite.FAULTY + "/faulty.so:calloc_wraps", "--run=calloc.*",
                      "--json=r.json", "--bundle=r.tar.gz")
        report, packed = (open(name, "rb").read() for name in ("r.json", "r.tar.gz"))
        value, chance = json.loads(report), random.Random(49)
        for name, read, seeds in (
                ("report", read_report, [report]), ("bundle", read_bundle, [packed]),
                ("list of waivers", read_waivers, [WAIVERS]),
                ("report of other values", read_report, [value, [value, value]])):
            wrong, refused = [], 0
            inputs = list(GARBAGE)
            for _ in range(COUNT):
                seed = chance.choice(seeds)
                inputs.append(damaged(chance, seed) if isinstance(seed, bytes)
                              else json.dumps(other_values(chance, seed)).encode())
            for data in inputs:
                try:
                    read(data)
                except model.Invalid as error:
                    refused += 1
                    wrong += [(data[:300], "two lines")] if "\n" in model.clean(str(error)) else []
                except Exception as error:  # what a user would see as a traceback
                    wrong.append((data[:300], repr(error)))
            tap_.point(not wrong and refused >= len(GARBAGE) // 2, "a damaged " + name,
                       "%d refused; %s" % (refused, wrong[:3]))
    tap_.end()


main()
