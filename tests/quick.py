# SPDX-License-Identifier: BSD-3-Clause
"""--quick: few properties, without Python where the handler can do without; it finds what is
plainly wrong, blames no sound handler, and never says that one is conformant.
"""

import json
import os

import suite
from suite import CANNOT_WORK_HERE, CONFORMANT, NOT_CONFORMANT, USAGE

SOUND = os.path.join(suite.BUILD, "handlers", "sound", "sound.so:%s")
FEW = {"aligned", "arena", "cache", "shift_header", "trace"}
UNUSUAL = ["always_moves", "null_for_zero", "quota_64_mib", "size_classes", "takes_the_gil"]
WRONG = ["calloc_does_not_zero", "calloc_wraps", "malloc_is_missing", "free_is_missing"]
WITH_PYTHON = """
#include "sound/base.h"
SOUND(nep49_handler);
extern int Py_IsInitialized(void);
__attribute__((constructor)) static void begin(void) { if (!Py_IsInitialized()) abort(); }
"""


def quick(*arguments):
    result = suite.conform("--quick", *arguments)
    assert "CONFORMANT" not in result.stdout + result.stderr, result
    return result


def of_sound_handlers(tap):
    names = suite.conform("handlers").stdout.split()
    names = [name for name in names if suite.LONG or name in FEW]
    result = quick(*("--handler=" + name for name in names))
    tap.point(result.code in (CONFORMANT, CANNOT_WORK_HERE) and len(names) >= len(FEW),
              "no reference handler fails", result)
    result = quick(*("--handler=" + SOUND % name for name in UNUSUAL))
    tap.point(result.code == CONFORMANT and result.stdout.endswith(
        "\nnothing failed, and nothing is proved: 5 of 5 handlers\n"), "nor do unusual ones",
        result)
    said = quick("-H", "aligned").stdout.splitlines()[-1]
    tap.point("which proves nothing" in said, "what it says", said)


def of_wrong_handlers(tap):
    paths = [os.path.join(suite.FAULTY, "faulty.so:" + name) for name in WRONG]
    result = quick(*("--handler=" + path for path in paths), "--json=w.json")
    for name, report in zip(WRONG, json.load(open("w.json"))):
        tap.point(report["exit_code"] == NOT_CONFORMANT and not report["conformant"]
                  and report["conclusion"].startswith("FAILED: "), name, report["conclusion"])
    tap.point(result.code == NOT_CONFORMANT and result.stdout.count(": FAILED: ") == len(WRONG),
              "and the status says it", result)


def reports(tap):
    result = quick("-H", "aligned", "--json=q.json", "--badge=q.svg", "--tap=q.tap")
    report = json.load(open("q.json"))
    ids = [p["id"] for p in report["properties"]]
    tap.point(result.code == CONFORMANT and report["quick"] and not report["conformant"]
              and not report["whole"] and not report["environment"]["python"] and len(ids) > 30,
              "JSON", report["conclusion"])
    tap.point("no verdict" in open("q.svg").read() and "proves nothing" in open("q.tap").read(),
              "the badge and TAP")
    result = quick("-H", "aligned", "-H", "shift_header", "--quiet")
    tap.point(result.code == CONFORMANT, "several handlers", result)


def with_python(tap):
    """It is started where it is wanted: and whatever is wanted of it is there."""
    suite.write("with_python.c", WITH_PYTHON)
    suite.build("with_python.c", "with_python.so")
    for what, words in (("a handler that wants it", ["-H", "./with_python.so"]),
                        ("--python", ["-H", "aligned", "--python=" + suite.PYTHON])):
        result = quick("--json=p.json", *words, "--run=abi.v*", "--run=malloc.zero")
        report = json.load(open("p.json"))
        tap.point(result.code == CONFORMANT and report["environment"]["numpy"] != ""
                  and len(report["properties"]) == 2, what, result)


def refused(tap):
    for words in (["--memcheck"], ["--tsan"], ["--run=numpy.dtypes"]):
        result = quick("-H", "aligned", *words)
        tap.point(result.code == USAGE and result.stderr.count("\n") == 1
                  and "quick" in result.stderr, " ".join(words), result)


def main():
    tap = suite.Tap()
    with suite.scratch(enter=True):
        of_sound_handlers(tap)
        of_wrong_handlers(tap)
        reports(tap)
        with_python(tap)
        refused(tap)
    tap.end()


main()
