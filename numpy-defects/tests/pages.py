# SPDX-License-Identifier: BSD-3-Clause
"""The pages, programs and fixes agree with each other and with the NumPy at hand.

Each page is what tools/pages makes, names properties that exist, and has a fix or a reason for
none.  Each program does what its page says for this version of NumPy; a version that the page does
not know is a SKIP.  make check-numpy-fixes tests what the fixes do to NumPy's source.
"""

import os
import re
import sys

import defects_suite
import suite

FEW = 4  # outside make check-long, one program in FEW runs
ALONE = ("default-calloc-overflow", "realloc-without-gil")


def check_pages(tap, tool):
    for name, text in sorted(tool.pages(suite.CONFORM).items()):
        tap.point(tool.read(tool.TOP, name) == text, "%s is up to date" % name, "run make docs")


def check_fields(tap, tool, fixes):
    listed = set(suite.listed_ids("--numpy"))
    for name in tool.programs():
        fields = "\n".join(tool.parts_of(name)[1])
        ids = re.findall(r"runtime\.[a-z-]+", fields)
        tap.point(ids and not set(ids) - listed, "%s names properties" % name, ids)
        tap.point(re.search(r"(?m)^Cause: .*since .*\b[0-9a-f]{10}\b", fields),
                  "%s names the commit that caused it" % name, fields)
        tap.point(name in fixes or re.search(r"\]\(../fixes/|NumPy has one since|NumPy did in",
                                             fields), "%s has a fix" % name, fields)


def check_program(tap, tool, name, folder):
    version, _ = tool.versions_of(suite.PYTHON)
    what = "%s does with NumPy %s what its page says" % (name, version)
    expected = tool.stored_outputs().get(name, {}).get(version)
    if expected is None:
        tap.skip(what, "the page does not know this version")
        return
    seen = tool.run(suite.PYTHON, name, folder)
    tap.point(seen == {key: expected[key] for key in seen}, what,
              "%s\nbut was %s" % (seen, expected))


def check_issues(tap, tool):
    """The program of a bug report needs no other file."""
    with suite.scratch() as folder:
        for name in tool.programs() if suite.LONG else ALONE:
            text = tool.issue(name)
            tap.point("](" not in text and "handler import" not in text,
                      "the bug report of %s stands alone" % name, text)
            with open(os.path.join(folder, name + ".py"), "w", encoding="utf-8") as file:
                file.write(re.search(r"^```python\n(.*?)^```$", text, re.M | re.S).group(1))
            check_program(tap, tool, name, folder)
    result = suite.run([sys.executable, "-B", os.path.join(defects_suite.TOOLS, "pages"),
                        "--issue=nothing"])
    tap.point(result.code == 2 and "no such program: nothing" in result.stderr,
              "a bug report of an unknown program is refused", result)


def check_fixes(tap, tool, fixes):
    with suite.scratch() as folder:
        for name in sorted(fixes):
            result = suite.run([suite.PYTHON, "-B", os.path.join(tool.FIXES, name + ".py"), folder])
            tap.point(result.code == 1 and result.stderr.count("\n") == 1
                      and not os.listdir(folder), "%s.py refuses what is not NumPy" % name, result)


def check_sample(tap):
    """The handler that a fix proposes for NEP 49 compiles and is conformant."""
    fixes = defects_suite.load("fixes")
    sys.path.insert(0, fixes.FIXES)
    proposed = defects_suite.load("nep-sample.py", fixes.FIXES)
    with open(os.path.join(fixes.FIXES, "sample.c"), encoding="utf-8") as file:
        source = proposed.INCLUDES + file.read() + proposed.HANDLER
    with suite.scratch() as folder:
        path = os.path.join(folder, "sample")
        errors = fixes.compile_it(source + fixes.GETTER % "new_handler", path, suite.PYTHON)
        tap.point(errors == "", "the sample of NEP 49 compiles", errors)
        result = suite.conform("--handler=" + path + ".so")
        tap.point(result.code == 0, "the sample of NEP 49 is conformant", result)


def main():
    if suite.SANITIZED:
        suite.skip_all("nothing here depends on how conform is built")
    tap = suite.Tap()
    tool = defects_suite.load("pages")
    fixes = tool.fixes()
    check_pages(tap, tool)
    check_fields(tap, tool, fixes)
    for name in tool.programs()[:: 1 if suite.LONG else FEW]:
        check_program(tap, tool, name, tool.PROGRAMS)
    check_issues(tap, tool)
    check_fixes(tap, tool, fixes)
    check_sample(tap)
    tap.end()


if __name__ == "__main__":
    main()
