# SPDX-License-Identifier: BSD-3-Clause
"""--python given more than once: one table, one JSON and one exit code, whatever a column does.
And --handler: a report on each as it is alone, whatever the others do.
"""

import json
import os
import re
import signal
import subprocess

import suite
from suite import CANNOT_LOAD, CANNOT_WORK_HERE, CONFORMANT, NOT_CONFORMANT, USAGE

# Wrong in the environment whose sitecustomize says so.
SOMETIMES_WRONG = """
#include "sound/base.h"
static void *wrong_calloc(void *ctx, size_t n, size_t size)
{
    return getenv("WRONG_HERE") ? base_calloc(ctx, 1, n * size + 1) : base_calloc(ctx, n, size);
}
SOUND(nep49_handler, .calloc = wrong_calloc);
"""

RUN = ["--run=abi.loads", "--run=abi.struct-stays", "--run=calloc.overflow"]


def environment(name, *lines):
    """One with the NumPy of the tests' Python, and these lines at its start; returns its path."""
    code = "import numpy, os; print(os.path.dirname(os.path.dirname(numpy.__file__)))"
    packages = suite.run([suite.PYTHON, "-c", code]).stdout.strip()
    subprocess.run([suite.PYTHON, "-m", "venv", "--without-pip", name], check=True)
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = suite.run([os.path.join(name, "bin", "python"), "-c", code]).stdout.strip()
    suite.write(os.path.join(site, "numpy.pth"), "\n".join([packages] + list(lines)) + "\n")
    return os.path.abspath(os.path.join(name, "bin", "python"))


def matrix(handler, pythons, *more):
    words = ["--python=" + pythons[0]]
    for python in pythons[1:]:
        words += ["--python", python]
    return suite.conform("-H", handler, *words, *RUN, *more)


def verdicts(report, property_id):
    return [p["verdict"] for column in report["interpreters"] if "report" in column
            for p in column["report"]["properties"] if p["id"] == property_id]


def tells_one_column(tap, handler, right, wrong):
    result = matrix(handler, [right, wrong], "--json=m.json")
    held = (result.code == NOT_CONFORMANT and "\ncalloc.overflow in 2\n" in result.stdout
            and "FAIL    in 2 only\n" in result.stdout
            and result.stdout.endswith("conformant in 1 of 2 interpreters\n"))
    tap.point(held and not result.stderr, "what is bad in one only", result)
    report = suite.load("m.json")
    tap.point(verdicts(report, "calloc.overflow") == ["PASS", "FAIL"]
              and report["differ_or_bad"] == ["calloc.overflow"]
              and (report["exit_code"], report["conformant"]) == (NOT_CONFORMANT, False),
              "one JSON with both", report)
    reproduce = [p["reproduce"] for p in report["interpreters"][1]["report"]["properties"]
                 if p["id"] == "calloc.overflow"]
    tap.point(wrong in reproduce[0] and right not in reproduce[0],
              "the command that shows it again", reproduce)


def goes_on(tap, handler, right, wrong):
    """Interpreters that are none, before and behind one that is."""
    suite.write("dies", "#!/bin/sh\nkill -SEGV $$\n")
    os.chmod("dies", 0o755)
    result = matrix(handler, ["/nowhere", right, "./dies"], "--json=-")
    report = json.loads(result.stdout)
    codes = [column["exit_code"] for column in report["interpreters"]]
    named = [column["python"] in column["error"] for column in report["interpreters"][::2]]
    tap.point(result.code == USAGE and codes == [USAGE, CONFORMANT, USAGE] and all(named),
              "interpreters that are none", result)
    bare = os.path.abspath("bare/bin/python")
    subprocess.run([suite.PYTHON, "-m", "venv", "--without-pip", "bare"], check=True)
    result = matrix(handler, ["/nowhere", wrong, right, bare])
    tap.point(result.code == NOT_CONFORMANT and "\n 2  " in result.stdout
              and result.stdout.startswith(" 1  /nowhere: no report: --python=/nowhere: No such")
              and "\n 4  %s: no report: %s has no NumPy: " % (bare, bare) in result.stdout,
              "one that is none, and one where it is wrong", result)
    result = matrix("./nothing.so", [right, right])
    tap.point(result.code == CANNOT_LOAD and result.stdout.count("nothing.so") >= 2,
              "a handler that is not there", result)


def is_interrupted(tap, handler, right):
    """Behind the first: what is known is told, and the last has not been run."""
    words = ["--python=" + right] * 3 + ["--run=malloc.*", "--json=i.json"]
    conform = subprocess.Popen([suite.CONFORM, "-H", handler] + words, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = conform.stdout.readline()
    conform.send_signal(signal.SIGTERM)  # SIGINT may be ignored, as behind a shell's &
    out, errors = conform.communicate(timeout=60)
    report = suite.load("i.json")
    last = report["interpreters"][-1]
    tap.point(conform.returncode == -signal.SIGTERM and ", NumPy " in first
              and "conformant in 1 of 3 interpreters" in out and errors == "conform: interrupted\n"
              and report["interrupted"]
              and (report["exit_code"], report["conformant"]) == (5, False)
              and last["error"] == "not run: interrupted",
              "an interrupt behind the first",
              "%d\n%s%s%s" % (conform.returncode, first, out, errors))


NEIGHBOURS = """
#include <signal.h>
#include <unistd.h>
#include "sound/base.h"
static void *killing_malloc(void *ctx, size_t size)
{
    kill(getppid(), SIGKILL);
    return base_malloc(ctx, size);
}
SOUND(sound);
SOUND(kills, .malloc = killing_malloc);
NEP49_EXPORT PyDataMem_Handler empty;
NEP49_EXPORT PyDataMem_Handler *nep49_get_handler(const char **why)
{
    *why = "not here";
    return NULL;
}
"""


def told(report):
    """What there is to be compared with that of another run: how far the property got that took
    its worker down is anybody's guess."""
    return [(p["id"], p["verdict"], re.sub("0x[0-9a-f]+|, (in|out)side .*", "", p["message"]))
            for p in report["properties"]] + [report["exit_code"], report["subject"]]


def handlers_together(tap, wrong):
    """Each with the report that it has alone, whatever the others do."""
    neighbours = os.path.abspath(suite.build("neighbours.c", "neighbours.so"))
    sound, kills, empty, nothing = (neighbours + word for word in
                                    (":sound", ":kills", ":empty", ":nothing"))
    chosen = RUN + ["--run=numpy.finalises"]
    alone = {}
    for handlers, options, code in (
            ([sound, wrong, kills, empty, neighbours, "aligned", nothing, sound], [],
             NOT_CONFORMANT),
            ([sound, neighbours, "aligned"], ["--jobs=1"], CANNOT_WORK_HERE),
            (["aligned", nothing, neighbours], ["--jobs=1"], CANNOT_LOAD),
            ([sound, "aligned"], ["--repeat=3", "--shuffle"], CONFORMANT)):
        for handler in set(handlers) - set(alone):
            suite.conform("-H", handler, *chosen, "--jobs=1", "--json=alone.json")
            with open("alone.json") as file:
                alone[handler] = told(json.load(file))
        result = suite.conform(*("--handler=" + handler for handler in handlers), *chosen,
                               *options, "--json=all.json")
        with open("all.json") as file:
            found = list(map(told, json.load(file)))
        expected = [alone[handler] for handler in handlers]
        count = sum(each[-2] == 0 for each in expected)
        held = result.code == code and not result.stderr and result.stdout.endswith(
            "\nconformant: %d of %d handlers\n" % (count, len(handlers)))
        tap.point(held and found == expected,
                  "%d handlers, %s: exit code %d" % (len(handlers), " ".join(options), code),
                  "%s\n%s\n%s" % (result, found, expected))
    result = suite.conform("-H", "aligned", "-H", "./nothing.so")
    tap.point(result.code == CANNOT_LOAD and not result.stdout, "one that is not there", result)


def main():
    tap = suite.Tap()
    with suite.scratch(enter=True):
        suite.write("sometimes.c", SOMETIMES_WRONG)
        handler = os.path.abspath(suite.build("sometimes.c", "sometimes.so"))
        right = environment("right")
        wrong = environment("wrong", "import os; os.environ['WRONG_HERE'] = '1'")
        result = matrix(handler, [right, right, right])
        tap.point(result.code == CONFORMANT
                  and result.stdout.endswith("conformant in 3 of 3 interpreters\n"),
                  "conformant in all", result)
        tells_one_column(tap, handler, right, wrong)
        goes_on(tap, handler, right, wrong)
        is_interrupted(tap, handler, right)
        suite.write("neighbours.c", NEIGHBOURS)
        suite.write("wrong.c", SOMETIMES_WRONG.replace('getenv("WRONG_HERE")', "1"))
        handlers_together(tap, os.path.abspath(suite.build("wrong.c", "wrong.so")))
    tap.end()


main()
