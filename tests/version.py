# SPDX-License-Identifier: BSD-3-Clause
"""--version says the commit, outside a release, and a report the same."""

import json
import os
import re
import shutil
import subprocess

import suite

SCRIPT = os.path.join(suite.SOURCE, "src", "base", "program_version.sh")
DOCS = os.path.join(suite.SOURCE, "docs")
FORM = re.compile(r"\d+\.\d+\.\d+(\+(g[0-9a-f]{7,}(\.dirty)?|unknown))?")


def git(*arguments):
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def asked(folder="."):
    # what git knows of the machine is no part of it; nor is a checkout that this one lies in
    return suite.run(["sh", SCRIPT, folder, "0.2.0"], env={"GIT_DIR": ""}).stdout


def ours(tap):
    said = suite.conform("--version").stdout.split("\n")[0].split(" ")[1]
    tap.point(FORM.fullmatch(said), "it is a version", said)
    result = suite.conform("-H", "aligned", "--run=abi.loads", "--json=-")
    tap.point(json.loads(result.stdout)["conform"] == said, "JSON says the same", result)
    with open(os.path.join(suite.SOURCE, "python", "nep49", "__init__.py")) as file:
        tap.point('\n__version__ = "%s"\n' % said.partition("+")[0] in file.read(),
                  "the Python package says the same")
    pages = [name for name in os.listdir(DOCS) if name.endswith((".md", ".1"))]
    written = [name for name in pages
               if said in open(os.path.join(DOCS, name), encoding="utf-8").read()]
    tap.point(pages and ("+" not in said or not written), "no page that is generated has a commit",
              written)


def of_a_checkout(tap):
    git("init", "-q", ".")
    suite.write("file", "one\n")
    tap.point(asked() == "0.2.0+unknown\n", "before the first commit", asked())
    git("add", "file")
    git("commit", "-q", "-m", "first")
    commit = "0.2.0+g" + git("rev-parse", "--short=7", "HEAD")
    tap.point(asked() == commit + "\n", "a commit", asked())
    suite.write("other", "made by the build\n")
    tap.point(asked() == commit + "\n", "a file that git does not know", asked())
    os.mkdir("copy")
    tap.point(asked("copy") == "0.2.0+unknown\n", "a copy within another checkout", asked("copy"))
    with open("file", "a") as file:
        file.write("two\n")
    tap.point(asked() == commit + ".dirty\n", "a file was changed", asked())
    git("tag", "v0.2.0")
    tap.point(asked() == commit + ".dirty\n", "a release, and a file was changed", asked())
    git("checkout", "-q", "file")
    tap.point(asked() == "0.2.0\n", "a release", asked())
    git("tag", "-d", "v0.2.0")
    git("tag", "v0.2.1")
    tap.point(asked() == commit + "\n", "another release", asked())
    suite.write("copy/.version", "0.2.0+g7654321\n")
    tap.point(asked("copy") == "0.2.0+g7654321\n", "what make dist has packed", asked("copy"))


def main():
    tap = suite.Tap()
    ours(tap)
    with suite.scratch(enter=True):
        if shutil.which("git") is None:
            tap.skip("of a checkout", "there is no git")
        else:
            of_a_checkout(tap)
    tap.end()


main()
