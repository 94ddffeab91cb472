# SPDX-License-Identifier: BSD-3-Clause
"""tools/environments: what it makes and keeps, and what it reports if it cannot."""

import os

import suite

TOOL = os.path.join(suite.SOURCE, "tools", "environments")
ASK = ("import sys, sysconfig; print('%d.%d.%d' % sys.version_info[:3] + "
       "'t' * bool(sysconfig.get_config_var('Py_GIL_DISABLED')))")


def environments(*words, interpreter=suite.PYTHON, **env):
    return suite.run([suite.PYTHON, "-B", TOOL, "--cache=kept", "--interpreter", interpreter,
                      *words], env=env)


def main():
    tap = suite.Tap()
    own = suite.run([suite.PYTHON, "-c", ASK]).stdout.strip()
    with suite.scratch(enter=True):
        for specification, words in (
                ("3.99+1.26", "there is no such Python here; found are: " + own),
                ("3.11", "it is no PYTHON+NUMPY"),
                ("pypy3.10+1.26", "it is no PYTHON+NUMPY")):
            result = environments(specification)
            tap.point(result.code == 1 and result.stdout == "" and result.stderr.count("\n") == 1
                      and words in result.stderr, "cannot make " + specification, result)
        result = environments("3.11+1.26", interpreter="/nowhere")
        tap.point(result.code == 1 and "/nowhere" in result.stderr, "no interpreter", result)
        if suite.LONG:  # it fetches packages
            wanted = "%s+%s" % (own, os.environ["NUMPY_VERSION"])
            result = environments("3.99+1.26", wanted)
            path = result.stdout.strip()
            tap.point(result.code == 1 and path == os.path.abspath("kept/%s/bin/python" % wanted),
                      "it makes " + wanted, result)
            ran = suite.conform("--handler=aligned", "--python=" + path, "--run=abi.*")
            tap.point(ran.code == suite.CONFORMANT and "NumPy " + os.environ["NUMPY_VERSION"]
                      in " ".join(ran.stdout.split()), "conform runs in it", ran)
            again = environments(wanted, PIP_NO_INDEX="1")
            tap.point((again.code, again.stdout.strip()) == (0, path), "it is kept", again)
    tap.end()


main()
