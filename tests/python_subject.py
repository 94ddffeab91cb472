# SPDX-License-Identifier: BSD-3-Clause
"""--handler python:MODULE:ATTR, on a module made with ctypes and on a handler of numpy-allocator's,
where that is installed; tests/examples.py has Cython and cffi."""

import json
import os
import re

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

# The battery, or of it what may be otherwise where Python has made the handler.
PART = [] if suite.LONG else [
    "--run=%s.*" % group for group in ("abi", "context", "env", "owndata", "process", "resources")]

SHORT = ["--run=abi.*", "--run=realloc.keeps*", "--run=numpy.name", "--run=context.thread*"]


def offers(tap, module, table, environment):
    words = ["--handler=python:%s:%s" % (module, attribute) for attribute, _ in table]
    result = suite.conform(*words, *SHORT, env=environment)
    told = re.findall(r'^conform .*, "(.*)" version 1, (.*)$', result.stdout, re.M)
    for number, (attribute, how) in enumerate(table):
        good = result.code == 0 and told[number:number + 1] == [(module, how)]
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


def bad_of(module, attribute, environment):
    """The handler properties that failed, and the result."""
    place = "python:" + (module if attribute is None else "%s:%s" % (module, attribute))
    result = suite.conform("-H", place, "--json=-", "--jobs=1", *PART, env=environment)
    report = json.loads(result.stdout) if result.stdout.startswith("{") else {"properties": []}
    properties = [p for p in report["properties"] if p["target"] == "handler"]
    if len(properties) < (30 if PART else 100):
        return ["too few properties"], result
    # What comes of an exception that is pending says nothing about memory.
    bad = [p["id"] for p in properties if p["verdict"] not in ("PASS", "SKIP")
           and p.get("found_by") != "env.no-exception-set"]
    # They hand on what malloc gives, which a WARN says: large blocks are not advised.
    return [each for each in bad if each != "performance.large-blocks-advised"], result


def ctypes_whole(tap, environment):
    """Callbacks of ctypes clear the exception that is pending, so such a handler is not conformant,
    which shows wherever NumPy frees while it raises; what its functions do with memory is sound."""
    bad, result = bad_of("offers_ctypes", "capsule", environment)
    sound = ("abi.", "malloc.", "calloc.", "realloc.", "owndata.")
    good = result.code == suite.NOT_CONFORMANT and "free.keeps-pending-exception" in bad
    tap.point(good and not [each for each in bad if each.startswith(sound)],
              "offers_ctypes loses pending exceptions, and keeps contents", bad)


def conformant(tap, module, attribute, environment):
    bad, result = bad_of(module, attribute, environment)
    tap.point(result.code == 0 and not bad, module + " is conformant", bad or result)


def numpy_allocator(tap, environment):
    """The package from PyPI: its handlers are classes, put in force by `with`."""
    module = "offers_numpy_allocator"
    if suite.run([suite.PYTHON, "-c", "import numpy_allocator"]).code != 0:
        tap.skip(module, "pip install numpy-allocator with this Python")
        return
    offers(tap, module, [(module, "a context manager"),
                         (module + ".handler", "a function that returns a capsule")], environment)
    conformant(tap, module, module, environment)


def at_import(tap, environment):
    """What a package puts in force as it is imported is not in force while it is tested."""
    module, how = "installs_at_import", "a module that installs its handler when it is imported"
    aligned = os.path.join(suite.BUILD, "handlers", "aligned.so")
    environment = dict(environment, INSTALLS_AT_IMPORT=aligned)
    table = [("", how), (":__name__", how), (":install", "a function that installs its handler"),
             (":offers_ctypes.capsule", "a capsule")]
    result = suite.conform(*("--handler=python:" + module + attribute for attribute, _ in table),
                           *SHORT, env=environment)
    told = re.findall(r"^conform .* version 1, (.*)$", result.stdout, re.M)
    for number, (attribute, words) in enumerate(table):
        tap.point(result.code == 0 and told[number:number + 1] == [words],
                  "%s%s: %s" % (module, attribute, words), result)
    conformant(tap, module, None, environment)


def working_directory(tap):
    result = suite.conform("-H", "python:offers_ctypes:make", *SHORT, cwd=MODULES)
    tap.point(result.code == 0, "a module in the working directory is found", result)


def numpys_own(tap):
    """--handler default: it is NumPy's, says so, and allocates; what else its page says of it is
    of the versions that the page names."""
    with open(os.path.join(suite.SOURCE, "docs", "numpy-default.md")) as file:
        told = set(re.findall(r"`([a-z]+\.[a-z-]+)`", file.read()))
    name = "abi.name-says-something"
    result = suite.conform("-H", "default", "--json=-", "--run=malloc.zero", "--run=" + name)
    report = json.loads(result.stdout)
    verdicts = {each["id"]: each["verdict"] for each in report["properties"]}
    tap.point(result.code == suite.CONFORMANT and verdicts["malloc.zero"] == "PASS"
              and verdicts[name] == "WARN" and name in told
              and told <= set(suite.listed_ids("--numpy"))
              and report["subject"]["name"] == "default_allocator", "--handler default", result)


def exec_too(tap, environment):
    program = "import numpy; print(numpy.ones(3).sum())"
    result = suite.conform("exec", "-H", "python:offers_ctypes:make", "--", "-c", program,
                           env=environment)
    good = result.code == 0 and re.search(r"python:|offers_ctypes:make, audited", result.stderr)
    tap.point(good, "exec with a handler from a module", result)


def main():
    tap = suite.Tap()
    environment = {"PYTHONPATH": MODULES}
    offers(tap, "offers_ctypes", OFFERS, environment)
    refusals(tap, environment)
    working_directory(tap)
    numpys_own(tap)
    exec_too(tap, environment)
    if suite.LONG:
        ctypes_whole(tap, environment)
    at_import(tap, environment)
    numpy_allocator(tap, environment)
    tap.end()


main()
