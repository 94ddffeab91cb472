# SPDX-License-Identifier: BSD-3-Clause
"""The programs of docs/numpy-defects do with this NumPy what their pages say of its version.

A version that no page knows is told, and how many of the programs end by a signal there; the pages
are what is made of the programs and of what they printed, and each names properties that there are.
"""

import importlib.machinery
import importlib.util
import os
import re

import suite

FEW = 4  # of the programs one is run: most of them wait
FOLDER = os.path.join(suite.SOURCE, "docs", "numpy-defects")


def load():
    path = os.path.join(suite.SOURCE, "tools", "numpy-defects")
    loader = importlib.machinery.SourceFileLoader("numpy_defects", path)
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("numpy_defects", loader))
    loader.exec_module(module)
    return module


def check_pages(tap, tool):
    for name, text in sorted(tool.pages(FOLDER).items()):
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            tap.point(file.read() == text, "%s is what is made of it" % name,
                      "run make numpy-defects")


def check_properties(tap, tool):
    """Each of NumPy's defects that a page is about has a property, told by its id."""
    listed = {line.split()[0] for line in suite.conform("--list").stdout.splitlines()}
    for name in tool.programs(FOLDER):
        _, fields, _ = tool.parts_of(FOLDER, name)
        named = re.findall(r"runtime\.[a-z-]+", "\n".join(fields))
        tap.point(named and not set(named) - listed, "%s names properties" % name, named)


def check_programs(tap, tool):
    version, _ = tool.versions_of(suite.PYTHON)
    kept = tool.outputs_in(FOLDER)
    programs = sorted(tool.programs(FOLDER))
    for name in programs if suite.LONG else programs[::FEW]:
        seen = tool.run(suite.PYTHON, FOLDER, name)
        what = "%s does with NumPy %s what its page says" % (name, version)
        expected = kept.get(name, {}).get(version)
        if expected is None:
            tap.skip(what, "the page does not know it: %(ends)s" % seen)
            continue
        expected = {key: expected[key] for key in seen}
        tap.point(seen == expected, what, "%s\nbut was %s" % (seen, expected))


def main():
    if suite.SANITIZED:
        suite.skip_all("nothing here is of this build")
    tap = suite.Tap()
    tool = load()
    check_pages(tap, tool)
    check_properties(tap, tool)
    check_programs(tap, tool)
    tap.end()


if __name__ == "__main__":
    main()
