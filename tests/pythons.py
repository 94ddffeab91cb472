# SPDX-License-Identifier: BSD-3-Clause
"""One build in every interpreter of this machine that has NumPy: the verdicts are the same.

Those are python3 and python3.N of PATH, what lies beside them as pyenv has it, and what PYTHONS
names, paths with colons between.  One that conform is not for has to be refused in one line.
"""

import glob
import json
import os

import suite
from suite import CONFORMANT, FAULTY, NOT_CONFORMANT, USAGE

# What is read of each, by itself.
ASK = """
import json, sys
try:
    import numpy
except ImportError:
    numpy = None
print(json.dumps([sys.executable, sys.prefix, list(sys.version_info[:3]), sys.implementation.name,
                  numpy and numpy.__version__]))
"""

# Of each kind of fixture some, of those that lean on Python or NumPy.
SOME = ["abi.*", "calloc.overflow", "free.keeps-pending-exception", "numpy.finalises",
        "numpy.installs", "numpy.name", "owndata.*", "realloc.keeps-contents",
        "realloc.without-gil"]
MUTANTS = {
    "calloc_wraps": "calloc.overflow",
    "free_clears_exception": "free.keeps-pending-exception",  # which calls Python itself
}

PROGRAM = """
import sys, numpy
array = numpy.arange(9)
array.resize(99, refcheck=False)
print(sys.executable, numpy.__version__, sys.argv)
"""


def candidates():
    folders = os.environ["PATH"].split(os.pathsep)
    beside = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(suite.PYTHON))))
    for folder in folders + glob.glob(os.path.join(beside, "*", "bin")):
        yield from sorted(glob.glob(os.path.join(folder, "python3")))
        yield from sorted(glob.glob(os.path.join(folder, "python3.*[0-9]")))
    yield from filter(None, os.environ.get("PYTHONS", "").split(os.pathsep))


def interpreters():
    """Path, version, implementation and NumPy's version of each, told once."""
    seen = set()
    for path in candidates():
        result = suite.run([path, "-B", "-c", ASK])
        if result.code != 0:
            continue
        executable, prefix, version, implementation, numpy = json.loads(result.stdout)
        identity = os.path.realpath(executable), prefix
        if identity not in seen:
            seen.add(identity)
            yield executable, tuple(version), implementation, numpy


def verdicts(python, handler, *properties):
    arguments = ["--run=" + glob for glob in properties]
    result = suite.conform("--handler", handler, "--python", python, "--json=-", *arguments)
    return result, json.loads(result.stdout) if result.stdout else {}


def in_one(tap, python, name, version, numpy):
    for handler in ("aligned", "shift_header"):
        result, report = verdicts(python, handler, *SOME)
        environment = report.get("environment", {})
        tap.point(result.code == CONFORMANT, "%s: %s" % (name, handler), result)
        told = environment.get("executable"), environment.get("python"), environment.get("numpy")
        tap.point(told == (python, "%d.%d.%d" % version, numpy), name + ": which it is", told)
    for mutant, property_id in MUTANTS.items():
        result, report = verdicts(python, os.path.join(FAULTY, "faulty.so") + ":" + mutant,
                                  property_id)
        bad = [p["id"] for p in report.get("properties", ()) if p["verdict"] == "FAIL"]
        tap.point(result.code == NOT_CONFORMANT and bad == [property_id], name + ": " + mutant,
                  result)
    result = suite.conform("--handler=aligned", "--python", python, "--exec", "--", "-c", PROGRAM)
    tap.point(result.code == 0 and result.stdout.split() == [python, numpy, "['-c']"]
              and "no violation" in result.stderr, name + ": --exec", result)


def main():
    tap = suite.Tap()
    for python, version, implementation, numpy in interpreters():
        name = "Python %d.%d.%d%s" % (version + (", NumPy " + numpy if numpy else "",))
        new = numpy and tuple(int(part) for part in numpy.split(".")[:2]) >= (1, 22)
        if implementation == "cpython" and version >= (3, 9) and new:
            in_one(tap, python, name, version, numpy)
            continue
        result = suite.conform("--handler=aligned", "--python", python)
        tap.point(result.code == USAGE and result.stderr.count("\n") == 1
                  and python in result.stderr, name + " is refused", result)
    tap.end()


if __name__ == "__main__":
    main()
