# SPDX-License-Identifier: BSD-3-Clause
"""--handler python:MODULE:ATTR, on a module made with ctypes, and on one made with Cython."""

import json
import os
import re
import shutil

import suite

MODULES = os.path.join(suite.SOURCE, "tests", "modules")

# attribute, what conform says it is
OFFERS = [
    ("capsule", "a capsule"),
    ("make", "a function that returns a capsule"),
    ("install", "a function that installs its handler"),
    ("install_quietly", "a function that installs its handler"),
    ("in_force", "a function that returns a context manager"),
    ("manager", "a context manager"),
    ("Holder", "an object with a capsule, its attribute the_handler"),
    ("Holder.the_handler", "a capsule"),
]

# attribute, in the one line on stderr
REFUSED = [
    ("number", "no handler came of it: it is of type numpy.float64"),
    ("raises", "RuntimeError: not today"),
    ("missing", "AttributeError"),
]

SHORT = ["--run=abi.*", "--run=realloc.keeps*", "--run=numpy.name", "--run=context.thread*"]


def offers(tap, module, table, environment):
    for attribute, how in table:
        result = suite.conform("-H", "python:%s:%s" % (module, attribute), *SHORT, env=environment)
        good = result.code == 0 and ', "%s" version 1, %s\n' % (module, how) in result.stdout
        tap.point(good, "%s.%s: %s" % (module, attribute, how), result)


def refusals(tap, environment):
    for attribute, words in REFUSED:
        result = suite.conform("-H", "python:offers_ctypes:" + attribute, env=environment)
        good = (result.code == suite.CANNOT_LOAD and words in result.stderr
                and result.stderr.count("\n") == 1 and result.stdout == "")
        tap.point(good, "refused: " + attribute, result)
    result = suite.conform("-H", "python:no_such_module:x", env=environment)
    tap.point(result.code == suite.CANNOT_LOAD and "ModuleNotFoundError" in result.stderr,
              "no such module", result)


# What ctypes cannot do: its callbacks clear the exception that is pending, and wait for a GIL that
# a child of fork never gets.
CTYPES_BREAKS = ["free.keeps-pending-exception", "process.fork-while-busy"]


def whole(tap, module, environment, breaks=()):
    result = suite.conform("-H", "python:%s:capsule" % module, "--json=-", env=environment)
    report = json.loads(result.stdout) if result.stdout.startswith("{") else {"properties": []}
    bad = [p["id"] for p in report["properties"] if p["verdict"] not in ("PASS", "SKIP")]
    good = len(report["properties"]) > 60 and result.code == (1 if breaks else 0)
    good = good and set(bad) <= set(breaks) and bad[:1] == list(breaks[:1])
    name = "breaks " + ", ".join(breaks) if breaks else "is conformant"
    tap.point(good, "%s %s in the whole battery" % (module, name), bad or result)


def working_directory(tap):
    result = suite.conform("-H", "python:offers_ctypes:make", *SHORT, cwd=MODULES)
    tap.point(result.code == 0, "a module in the working directory is found", result)


def exec_too(tap, environment):
    program = "import numpy; print(numpy.ones(3).sum())"
    result = suite.conform("-H", "python:offers_ctypes:make", "--exec", "--", "-c", program,
                           env=environment)
    good = result.code == 0 and re.search(r"python:|offers_ctypes:make, audited", result.stderr)
    tap.point(good, "--exec with a handler from a module", result)


SETUP = """
from setuptools import Extension, setup
from Cython.Build import cythonize
import numpy
extension = Extension("offers_cython", ["offers_cython.pyx"], include_dirs=[numpy.get_include()])
setup(name="offers_cython", ext_modules=cythonize([extension], language_level=3),
      script_args=["-q", "build_ext", "--inplace"])
"""


def build_cython(folder):
    """Whether the Cython module could be built; without Cython it cannot."""
    shutil.copy(os.path.join(MODULES, "offers_cython.pyx"), folder)
    result = suite.run([suite.PYTHON, "-c", SETUP], cwd=folder)
    return result.code == 0


def main():
    tap = suite.Tap()
    environment = {"PYTHONPATH": MODULES}
    offers(tap, "offers_ctypes", OFFERS, environment)
    refusals(tap, environment)
    working_directory(tap)
    exec_too(tap, environment)
    whole(tap, "offers_ctypes", environment, CTYPES_BREAKS)
    with suite.scratch() as folder:
        if build_cython(folder):
            environment = {"PYTHONPATH": folder}
            offers(tap, "offers_cython",
                   [("capsule", "a capsule"), ("install", "a function that installs its handler")],
                   environment)
            whole(tap, "offers_cython", environment)
        else:
            tap.skip("offers_cython", "this Python has no Cython and setuptools")
    tap.end()


if __name__ == "__main__":
    main()
