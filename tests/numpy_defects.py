# SPDX-License-Identifier: BSD-3-Clause
"""The programs of docs/numpy-defects do with this NumPy what their pages say of its version.

A version that no page knows is told, and how many of the programs end by a signal there; the pages
are what is made of the programs and of what they printed, and each names properties that there are.
Each has a script that mends it, or is mended by the documentation; the handler that is proposed for
that is conformant.  What the scripts make of NumPy's source, make check-numpy-fixes tries.
"""

import importlib.machinery
import importlib.util
import os
import re
import sys

import suite

FEW = 4  # of the programs one is run: most of them wait
FOLDER = os.path.join(suite.SOURCE, "docs", "numpy-defects")


def load(*path):
    loader = importlib.machinery.SourceFileLoader(re.sub(r"\W", "_", path[-1]),
                                                  os.path.join(suite.SOURCE, *path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def check_pages(tap, tool):
    for name, text in sorted(tool.pages(FOLDER).items()):
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            tap.point(file.read() == text, "%s is what is made of it" % name,
                      "run make numpy-defects")


def check_properties(tap, tool):
    """Each of NumPy's defects that a page is about has a property, told by its id."""
    listed = {line.split()[0] for line in suite.conform("--list", "--numpy").stdout.splitlines()}
    for name in tool.programs(FOLDER):
        _, fields, _ = tool.parts_of(FOLDER, name)
        named = re.findall(r"runtime\.[a-z-]+", "\n".join(fields))
        tap.point(named and not set(named) - listed, "%s names properties" % name, named)
        cause = next(field for field in fields if field.startswith("Cause: "))
        tap.point(re.search(r"since .*\b[0-9a-f]{10}\b", cause), "%s names the commit that "
                  "brought it" % name, cause)


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


def check_issues(tap, tool):
    """A program that goes into the tracker does by itself what it does beside the helper."""
    version, _ = tool.versions_of(suite.PYTHON)
    kept = tool.outputs_in(FOLDER)
    with suite.scratch() as folder:
        for name in tool.programs(FOLDER) if suite.LONG else ("default-calloc-overflow",
                                                              "realloc-without-gil"):
            text = tool.issue(FOLDER, name)
            program = re.search(r"^```python\n(.*?)^```$", text, re.M | re.S).group(1)
            tap.point("](" not in text and "handler import" not in text,
                      "the issue of %s needs no other file" % name, text)
            with open(os.path.join(folder, name + ".py"), "w", encoding="utf-8") as file:
                file.write(program)
            expected = kept.get(name, {}).get(version)
            if expected is None:
                tap.skip("what its program does", "the page does not know NumPy %s" % version)
                continue
            seen = tool.run(suite.PYTHON, folder, name)
            tap.point(seen == {key: expected[key] for key in seen},
                      "and its program does what the page says", (seen, expected))
    result = suite.run([sys.executable, "-B", os.path.join(suite.SOURCE, "tools", "numpy-defects"),
                        "--issue=nothing"])
    tap.point(result.code == 2 and "no such program: nothing" in result.stderr,
              "an issue of what there is not", result)


def check_mends(tap, tool):
    scripts = tool.mends(FOLDER)
    for name in tool.programs(FOLDER):
        _, fields, _ = tool.parts_of(FOLDER, name)
        told = "\n".join(fields)
        tap.point(name in scripts or "](mends/" in told or "NumPy has one since" in told
                  or "NumPy did in" in told, "%s is mended" % name)
    with suite.scratch() as folder:
        for name in sorted(scripts):
            result = suite.run([suite.PYTHON, "-B", os.path.join(FOLDER, "mends", name + ".py"),
                                folder])
            tap.point(result.code == 1 and result.stderr.count("\n") == 1
                      and not os.listdir(folder), "%s.py says that this is no NumPy" % name, result)


def check_sample(tap):
    """The handler that NEP 49 is to have."""
    fixes = load("tools", "numpy-fixes")
    sys.path.insert(0, fixes.MENDS)
    with open(os.path.join(fixes.MENDS, "sample.c"), encoding="utf-8") as file:
        proposed = load("docs", "numpy-defects", "mends", "nep-sample.py")
        source = proposed.INCLUDES + file.read() + proposed.HANDLER
    with suite.scratch() as folder:
        path = os.path.join(folder, "sample")
        said = fixes.compile_it(source + fixes.GETTER % "new_handler", path, suite.PYTHON)
        tap.point(said == "", "the handler that is proposed compiles", said)
        result = suite.conform("--handler=" + path + ".so")
        tap.point(result.code == 0, "and is conformant", result)


def main():
    if suite.SANITIZED:
        suite.skip_all("nothing here is of this build")
    tap = suite.Tap()
    tool = load("tools", "numpy-defects")
    check_pages(tap, tool)
    check_properties(tap, tool)
    check_programs(tap, tool)
    check_issues(tap, tool)
    check_mends(tap, tool)
    check_sample(tap)
    tap.end()


if __name__ == "__main__":
    main()
