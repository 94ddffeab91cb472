# SPDX-License-Identifier: BSD-3-Clause
"""The package nep49 beside what others have written: a part of SciPy's and of pandas' own tests,
each in a process with a handler in force; mypy, and numpydoc, of the package itself.
"""

import os
import re

import suite

PACKAGE = os.path.abspath(os.path.join(suite.SOURCE, "python"))
ENVIRONMENT = {"PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": "yes",
               "NEP49_HANDLERS": os.path.abspath(os.path.join(suite.BUILD, "handlers"))}
NEEDED = ("mypy", "numpydoc", "pandas", "pytest", "scipy")
# Small ones that make arrays of many sizes, sort, resize and hand them to C and Fortran.
PROGRAMS = {"SciPy": ("scipy.linalg.tests.test_decomp_cholesky",),
            "pandas": ("pandas.tests.groupby.test_cumulative", "pandas.tests.reshape.test_melt")}
HANDLERS = ("guard", "aligned")
# What is said of a docstring that lacks a part: its parameters, what it returns or yields, types.
LACKING = r"(GL|PR|RT|YD|SS0[1-4])\d*"
DOCUMENTED = """
import inspect
import numpydoc.validate
import nep49
names = ["nep49." + name for name in nep49.__all__ if inspect.isroutine(getattr(nep49, name))
         or inspect.isclass(getattr(nep49, name)) and name != "Handler"]
names += ["nep49.shm.attach", "nep49.shm.name_of"]
names += ["nep49.Handler." + name for name in vars(nep49.Handler)
          if not name.startswith("_") and callable(getattr(nep49.Handler, name))]
for name in names:
    for code, text in numpydoc.validate.validate(name)["errors"]:
        print(name, code, text)
print(len(names))
"""


def environment(tap):
    """Its Python, with what is needed; or None."""
    folder = os.path.join(suite.BUILD, "tests", "real-venv")
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(os.path.join(folder, "done")):
        made = suite.run([suite.PYTHON, "-m", "venv", "--clear", folder])
        if made.code == 0:
            made = suite.run([python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:",
                              "--disable-pip-version-check", *NEEDED], timeout=600)
        if made.code != 0:
            tap.skip("SciPy, pandas, mypy and numpydoc", "they cannot be had: "
                     + (made.stderr.splitlines() or ["?"])[-1])
            return None
        open(os.path.join(folder, "done"), "w").close()
    return python


def own_tests(tap, python):
    for program, modules in PROGRAMS.items():
        for handler in HANDLERS:
            result = suite.run([python, "-m", "pytest", "-p", "nep49.pytest_plugin", "-q", "-p",
                                "no:cacheprovider", "--nep49-handler=" + handler, "--pyargs",
                                *modules], env=dict(ENVIRONMENT, OPENBLAS_NUM_THREADS="1"),
                               timeout=1800)
            said = (result.stdout.splitlines() or [""])[-1]
            passed = re.search(r"(\d+) passed", said)
            print("# %s, %s: %s" % (program, handler, said))
            tap.point(result.code == 0 and passed and int(passed[1]) > 50,
                      "a part of %s's tests under %s" % (program, handler), result)


def typed(tap, python):
    result = suite.run([python, "-m", "mypy", "--strict", "--cache-dir=" + os.devnull,
                        os.path.join(PACKAGE, "nep49")], timeout=300)
    tap.point(result.code == 0, "mypy --strict has nothing to say", result)


def documented(tap, python):
    result = suite.run([python, "-c", DOCUMENTED], env=ENVIRONMENT)
    lines = result.stdout.splitlines() or ["0"]
    lacking = [line for line in lines[:-1] if re.fullmatch(LACKING, line.split()[1])]
    tap.point(result.code == 0 and int(lines[-1]) > 10 and not lacking,
              "numpydoc finds each part of each docstring", lacking or result)


def main():
    if not suite.LONG:
        suite.skip_all("it takes SciPy and pandas from PyPI: set CHECK_LONG")
    if suite.SANITIZED:
        suite.skip_all("a handler with a sanitizer wants a Python with one")
    tap = suite.Tap()
    python = environment(tap)
    if python is not None:
        typed(tap, python)
        documented(tap, python)
        own_tests(tap, python)
    tap.end()


main()
