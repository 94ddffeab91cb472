# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's own tests, whole, the slow ones too, with a handler in force: `make check-numpy`.

    check_numpy.py HANDLER...

Takes ten minutes and more for each handler, and so is none of `make check`.  Where the interpreter
has no pytest and hypothesis, they are installed into a virtual environment in the build tree that
sees its packages.  It goes well where no violation was reported, and no test failed that passes
without the handler, but for those that assert that NumPy's own handler is in force.
"""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree

import suite

NEEDED = ("pytest<9", "hypothesis", "typing_extensions")
TESTS = ["-m", "pytest", "-p", "no:cacheprovider", "-q", "--continue-on-collection-errors",
         "--pyargs"]

# Those that ask for NumPy's default handler by its name, which is not in force.
NECESSARILY = {"test_context_locality", "test_default_policy_singleton"}


def python_with_pytest():
    """The interpreter, or one of an environment in the build tree that has what is lacking."""
    lacks = subprocess.run([suite.PYTHON, "-c", "import pytest, hypothesis"],
                           stderr=subprocess.DEVNULL).returncode
    if not lacks:
        return suite.PYTHON
    folder = os.path.join(suite.BUILD, "tests", "numpy-venv")
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(os.path.join(folder, "done")):
        subprocess.run([suite.PYTHON, "-m", "venv", "--clear", "--system-site-packages", folder],
                       check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *NEEDED], check=True)
        open(os.path.join(folder, "done"), "w").close()
    return python


def pytest_name(case):
    """module::Class::test, as pytest takes it behind --pyargs."""
    parts = case.get("classname").split(".")
    classes = [part for part in parts if part.startswith("Test")]
    return "::".join([".".join(parts[:len(parts) - len(classes)]), *classes, case.get("name")])


def failed_in(report):
    cases = xml.etree.ElementTree.parse(report).iter("testcase")
    return [pytest_name(case) for case in cases
            if case.find("failure") is not None or case.find("error") is not None]


def run(command, log):
    """Its exit code; what it prints goes to the log as well, without the dots to the terminal."""
    env = dict(os.environ, OPENBLAS_NUM_THREADS="1")
    with open(log, "w", encoding="utf-8") as file:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file,
                              stderr=subprocess.STDOUT, env=env).returncode


def fails_without(python, names):
    """Those of the tests that fail in plain Python too."""
    if not names:
        return []
    run([python, *TESTS, *names, "--junitxml=numpy-plain.xml"], "numpy-plain.log")
    return failed_in("numpy-plain.xml")


def check(tap, python, handler):
    name = re.sub(r"\W+", "-", os.path.basename(handler))
    log, report = "numpy-%s.log" % name, "numpy-%s.xml" % name
    code = run([suite.CONFORM, "exec", "--handler=" + handler, "--python=" + python, "--",
                *TESTS, "numpy", "--junitxml=" + report], log)
    with open(log, encoding="utf-8", errors="replace") as file:
        printed = file.read()
    whole = code in (0, 1) and os.path.exists(report) and "conform: no violation" in printed
    if tap.point(whole, handler + ": NumPy's tests run whole, without a violation", "see " + log):
        failed = [name for name in failed_in(report)
                  if name.rpartition("::")[2].partition("[")[0] not in NECESSARILY]
        failed = sorted(set(failed) - set(fails_without(python, failed)))
        tap.point(not failed, handler + ": no test fails for the handler's sake", "\n".join(failed))


def main():
    tap = suite.Tap()
    python = python_with_pytest()
    for handler in sys.argv[1:]:
        check(tap, python, handler)
    tap.end()


main()
