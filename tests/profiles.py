# SPDX-License-Identifier: BSD-3-Clause
"""The caller profiles: whole, replayed by a property each, and the same in docs/callers.md."""

import glob
import os
import re
import sys

import suite

sys.path.insert(0, os.path.join(suite.SOURCE, "profiles"))
import table  # noqa: E402

FAULTY = os.path.join(suite.FAULTY, "faulty.so")
TRACES = sorted(glob.glob(os.path.join(glob.escape(suite.SOURCE), "profiles", "numpy-*.trace")))


def whole(tap, path):
    """It ends as it should, is of the NumPy of its name, and small."""
    name = os.path.basename(path)
    shown = suite.conform("replay", path, "--print")
    version = re.search(r"^# numpy: (\d+\.\d+)\.\d+$", shown.stdout, re.M)
    calls = re.search(r"^# (\d+) calls, \d+ blocks? live\n\Z", shown.stdout, re.M)
    good = (shown.code == 0 and version and name == "numpy-%s.trace" % version[1]
            and calls and int(calls[1]) > 1000 and os.path.getsize(path) < 32768)
    tap.point(good, name + " is whole", shown.stderr or shown.stdout[-500:])
    result = suite.conform("replay", "-H", "aligned", path)
    tap.point(result.code == 0, name + " replays on a sound handler", result)


def has_properties(tap):
    ids = sorted(suite.listed_ids("--run=profile.*"))
    wanted = sorted("profile." + os.path.basename(path)[:-len(".trace")] for path in TRACES)
    tap.point(ids == wanted and len(ids) >= 6, "each has a property, and each property one",
              "%s\n%s\nrecord.py may have found a newer NumPy: conformance/profile.c, Makefile.am"
              % (ids, wanted))


def up_to_date(tap):
    with open(table.PAGE, encoding="utf-8") as file:
        kept = file.read()
    tap.point(kept == table.page(suite.CONFORM), "docs/callers.md is what the profiles say",
              "run profiles/table.py ./conform --write")


def routes(tap):
    """What routes.py does with this NumPy is what was recorded on some."""
    with suite.scratch() as folder:
        path = os.path.join(folder, "here.trace")
        program = os.path.join(suite.SOURCE, "profiles", "routes.py")
        result = suite.conform("exec", "-H", "guard", "-q", "--untimed", "--record=" + path, "--",
                               program)
        if not tap.point(result.code == 0, "routes.py runs with this NumPy", result):
            return
        here = table.Profile(suite.CONFORM, path).parts
    wanted = {name for name in here if name.startswith(table.NO_MEMORY + ": np.empty")}
    refused = {name for name in wanted if any(call.endswith(" refused") for call in here[name])}
    tap.point(len(wanted) >= 3 and refused == wanted, "a route without memory gets none",
              "\n".join(wanted - refused))
    known = {name for trace in TRACES for name in table.Profile(suite.CONFORM, trace).parts}
    lacking = [name for name in here if name not in known]
    tap.point(len(here) > 100 and not lacking, "all of its routes were recorded",
              "\n".join(lacking + ["run make profiles"]))


def told(tap):
    """A violation says where, and how to reproduce it, and that does."""
    handler = FAULTY + ":realloc_forgets_the_last_byte"
    result = suite.conform("-H", handler, "--run=profile.numpy-2.5")
    again = re.search(r"conform replay --handler=\S+ (\S+)", " ".join(result.stdout.split()))
    tap.point(result.code == suite.NOT_CONFORMANT and again
              and "expected  realloc.keeps-contents to hold: " in result.stdout
              and "a.resize(0, refcheck=False)" in " ".join(result.stdout.split()),
              "a violation is told with its route", result)
    if again:
        result = suite.conform("replay", "-H", handler, again[1])
        tap.point(result.code == suite.NOT_CONFORMANT and "realloc.keeps-contents" in result.stdout,
                  "and replay shows it again", result)
    result = suite.conform("-H", FAULTY + ":free_knows_two_wrong_sizes", "--run=profile.numpy-1.22")
    if not suite.SANITIZED:  # which catches the signal itself
        line = " ".join(result.stdout.split())
        tap.point(re.search(r"SIGABRT, inside free\(0x[0-9a-f]+, \d+\), in NumPy 1\.22's fromiter: "
                            r".*\(\S+/numpy-1\.22\.trace\)", line),
                  "a crash is told with its route", result)


def with_the_gil(tap):
    """A handler that has to have the GIL where NumPy holds it is not blamed for what it does."""
    result = suite.conform("-H", FAULTY + ":insists_on_gil", "--run=profile.*")
    tap.point(result.code == 0 and "6 passed" in result.stdout, "calls have the GIL", result)
    result = suite.conform("-H", FAULTY + ":needs_gil_to_realloc", "--run=profile.numpy-2.5")
    tap.point(result.code == suite.NOT_CONFORMANT and "text" in result.stdout,
              "but those that had not have not", result)


def main():
    tap = suite.Tap()
    for path in TRACES:
        whole(tap, path)
    has_properties(tap)
    up_to_date(tap)
    routes(tap)
    told(tap)
    with_the_gil(tap)
    tap.end()


main()
