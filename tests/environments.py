# SPDX-License-Identifier: BSD-3-Clause
"""tools/environments: what it makes and remembers, and what it says of what it cannot make.

The one that it makes has the Python and the NumPy of the tests, which pip may have to fetch.
"""

import importlib.util
import os

import suite
from suite import CONFORMANT

TOOL = os.path.join(suite.SOURCE, "tools", "environments")


def environments(*words, **env):
    return suite.run([suite.PYTHON, "-B", TOOL, "--cache=kept", *words], env=env)


def own_version():
    code = ("import sys, sysconfig; print('%d.%d.%d' % sys.version_info[:3] + "
            "'t' * bool(sysconfig.get_config_var('Py_GIL_DISABLED')))")
    return suite.run([suite.PYTHON, "-c", code]).stdout.strip()


def cannot(tap):
    own = own_version()
    no_such_numpy = [  # which pip has to be installed for
        (own + "+1.2", "numpy==1.2.*" if importlib.util.find_spec("ensurepip") else "no uv")]
    for specification, words in (no_such_numpy if suite.LONG else []) + [
            ("3.99+1.26", "there is no such Python here; found are: " + own),
            (own.rstrip("t") + "t" * (not own.endswith("t")) + "+newest", "no such Python here"),
            ("3.11", "it is no PYTHON+NUMPY"),
            ("pypy3.10+1.26", "it is no PYTHON+NUMPY")]:
        result = environments("--interpreter", suite.PYTHON, specification, PIP_NO_INDEX="1")
        tap.point(result.code == 1 and result.stdout == "" and words in result.stderr
                  and result.stderr.startswith("environments: %s: " % specification)
                  and result.stderr.count("\n") == 1, "cannot make " + specification, result)
    result = environments("--interpreter=/nowhere", "3.11+1.26")
    tap.point(result.code == 1 and "/nowhere" in result.stderr and not result.stdout,
              "an interpreter that is none", result)
    tap.point(not [name for name in os.listdir("kept") if "+" in name], "nothing half made is kept",
              os.listdir("kept"))


def makes(tap):
    wanted = "%s+%s" % (own_version(), os.environ["NUMPY_VERSION"])
    result = environments("--interpreter", suite.PYTHON, "3.99+1.26", wanted)
    path = result.stdout.strip()
    if path == "":
        tap.skip("it makes " + wanted, result.stderr.splitlines()[-1])
        return
    tap.point(result.code == 1 and path == os.path.abspath("kept/%s/bin/python" % wanted)
              and result.stderr.startswith("environments: 3.99+1.26: "), "it makes " + wanted,
              result)
    code = "import numpy, sys; print(numpy.__version__, sys.prefix != sys.base_prefix)"
    said = suite.run([path, "-c", code]).stdout.split()
    tap.point(said == [os.environ["NUMPY_VERSION"], "True"], "what was asked for is in it", said)
    result = suite.conform("--handler=aligned", "--python=" + path, "--run=abi.*")
    tap.point(result.code == CONFORMANT, "conform runs in it", result)
    again = environments("--interpreter", suite.PYTHON, wanted, PIP_NO_INDEX="1")
    tap.point((again.code, again.stdout.strip()) == (0, path), "it is remembered", again)


def main():
    tap = suite.Tap()
    with suite.scratch(enter=True):
        cannot(tap)
        if suite.LONG:
            makes(tap)
        else:
            tap.skip("it makes one", "it fetches packages: make check-long")
    tap.end()


main()
