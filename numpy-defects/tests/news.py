# SPDX-License-Identifier: BSD-3-Clause
"""What tools/news calls better, worse and new; with CHECK_LONG, a NumPy compared with itself."""

import os

import defects_suite
import suite

TOOL = os.path.join(defects_suite.TOOLS, "news")


def one(verdict="PASS", ends="status 0", printed="", routes=("np.empty(8)", "    malloc 64")):
    verdicts = {} if verdict is None else {"runtime.x": verdict}
    return {"verdicts": verdicts, "routes": list(routes),
            "programs": {"p": {"printed": printed, "ends": ends}}}


# before; after; the kinds that are told
CASES = [
    ("nothing", one(), one(), []),
    ("a defect that is new", one(), one("FAIL"), ["worse"]),
    ("one of good practice", one(), one("WARN"), ["worse"]),
    ("a defect that is mended", one("FAIL"), one(), ["better"]),
    ("another kind of failure", one("WARN"), one("CRASH"), ["new"]),
    ("a property that skipped", one("SKIP"), one("FAIL"), ["new"]),
    ("a property that is not there", one(None), one("FAIL"), ["new"]),
    ("a program that crashes", one(), one(ends="SIGSEGV"), ["worse"]),
    ("a program that does no longer", one(ends="SIGABRT"), one(), ["better"]),
    ("another signal", one(ends="SIGABRT"), one(ends="SIGSEGV"), ["new"]),
    ("another output", one(), one(printed="7\n"), ["new"]),
    ("another call", one(), one(routes=("np.empty(8)", "    malloc 72")), ["new"]),
    ("another route", one(), one(routes=("np.zeros(8)", "    calloc 64")), ["new", "new"]),
]


def main():
    tap = suite.Tap()
    tool = defects_suite.load("news")
    for name, before, after, expected in CASES:
        kinds = [kind for kind, _ in tool.differences(before, after)]
        tap.point(kinds == expected, name, kinds)
    searched = [({"key": ["crash"], "program": ["a"]}, was, now)
                for was, now in ((True, True), (True, False), (False, True), (False, False))]
    kinds = [kind for kind, _ in tool.compare_found(searched)]
    tap.point(kinds == ["better", "worse"], "what a search found", kinds)
    what = "a NumPy has no news compared with itself"
    if suite.LONG and not suite.SANITIZED:
        result = suite.run([suite.PYTHON, "-B", TOOL, "--conform=" + suite.CONFORM, "--search=0",
                            suite.PYTHON, suite.PYTHON], timeout=300)
        tap.point(result.code == 0 and result.stdout.count("\n") == 1, what, result)
    else:
        tap.skip(what, "it takes half a minute: make check-long")
    tap.end()


if __name__ == "__main__":
    main()
