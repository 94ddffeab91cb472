# SPDX-License-Identifier: BSD-3-Clause
"""bench: the results as text, JSON and a page, and handlers that are lost.  No test checks speed,
except that a handler that sleeps is slower.
"""

import os
import re
import xml.etree.ElementTree as ElementTree

import suite
from suite import CANNOT_LOAD, CANNOT_WORK_HERE, CONFORMANT, NOT_CONFORMANT, USAGE

HANDLER = """
#define NEP49_WITHOUT_NUMPY
#include <stdlib.h>
#include <unistd.h>
#include "nep49.h"
static void *its_malloc(void *ctx, size_t size) { (void)ctx; IN_MALLOC; return malloc(size); }
static void *its_calloc(void *ctx, size_t n, size_t size) { (void)ctx; return calloc(n, size); }
static void *its_realloc(void *ctx, void *p, size_t size) { (void)ctx; return realloc(p, size); }
static void its_free(void *ctx, void *p, size_t size) { (void)ctx, (void)size; free(p); }
NEP49_EXPORT PyDataMem_Handler nep49_handler = {
    "figures", 1, {0, its_malloc, its_calloc, its_realloc, its_free}};
"""
# What malloc does, and the line in place of the results.
LOST = {
    "ends_below": ("if (size > 32 && size < 4096) abort()",
                   r"CRASH   ends_below\.so: SIGABRT, in resident memory over what is live"),
    "crashes": ("if (size == 4 << 20) abort()",
                r"CRASH   crashes\.so: SIGABRT, in malloc and free of 4 MiB"),
    "hangs": ("while (size == 4 << 20) pause()",
              r"TIMEOUT hangs\.so: no end after 5 s, in malloc and free of 4 MiB"),
    "exits": ("if (size == 4 << 20) _exit(3)",
              r"CRASH   exits\.so: the process exits with 3, in malloc and free of 4 MiB"),
    "refuses": ("if (size == 65536) return NULL",
                r"FAIL    refuses\.so: refused, in malloc and free of 64 KiB"),
}
UNFIT = """
#define NEP49_WITHOUT_NUMPY
#include <stddef.h>
#include "nep49.h"
NEP49_EXPORT PyDataMem_Handler *nep49_get_handler(const char **why);
PyDataMem_Handler *nep49_get_handler(const char **why) { *why = "no pages"; return NULL; }
"""
GROUPS = {"footprint", "malloc", "calloc", "realloc", "add", "zeros", "resize", "threads",
          "handover", "replay", "latency"}


def build(name, in_malloc):
    suite.write(name + ".c", HANDLER)
    return suite.build(name + ".c", "./%s.so" % name, "-DIN_MALLOC=" + in_malloc)


def read(name):
    with open(name) as file:
        return file.read()


def results(tap):
    """Of a handler whose name is markup, and of one that sleeps."""
    build("slow", "if (size >= 1024) usleep(20)")
    os.rename(build("plain", ""), "<b>&plain.so")
    result = suite.conform("bench", "--quick", "--max-time=0.5", "-H", "./<b>&plain.so", "-H",
                           "./slow.so", "--json=b.json", "--html=b.html")
    tap.point(result.code == CONFORMANT and not result.stderr, "results", result)
    report = suite.load("b.json")
    cells = report["cells"]
    tap.point(report["format"] == "conform-bench-1" and len(report["handlers"]) == 4
              and {cell["group"] for cell in cells} == GROUPS
              and all(len(cell["handlers"]) == 4 and cell["rounds"] >= 3
                      and cell["handlers"][0]["ratio"] == 1 for cell in cells),
              "JSON has all groups", report)
    wrong = [cell for cell in cells for one in cell["handlers"]
             if not (0 <= one["low"] <= one["ratio"] <= one["high"] and one["value"] >= 0)]
    tap.point(not wrong, "ratios are within their range", wrong)
    slow = [cell["handlers"] for cell in cells
            if cell["group"] == "malloc" and cell["size"] >= 1024]
    tap.point(slow and all(of[3]["value"] > 2e-5 and of[3]["ratio"] > 20 * of[2]["ratio"]
                           for of in slow), "a handler that sleeps is slower", slow)
    lines = result.stdout.splitlines()
    tap.point(re.match(r"Python [\d.]+.*, NumPy [\d.]+", lines[0]) and "slow.so" in lines[3]
              and len([line for line in lines if re.search(r"\(\S+ to \S+\)", line)]) == len(cells),
              "a line for each", result)
    footprints = [cell["handlers"][0]["value"] for cell in cells if cell["group"] == "footprint"]
    tap.point(len(footprints) == 2 and all(footprints), "resident memory is known", footprints)
    page = ElementTree.fromstring(re.sub("<(!|meta)[^>]*>", "", read("b.html")))
    counts = [len(list(page.iter(tag))) for tag in ("svg", "polyline")]
    tap.point(counts == [6, 18] and len(list(page.iter("tr"))) > len(cells)
              and "<b>&plain.so" in "".join(page.itertext()) and "http:" not in read("b.html"),
              "a page", counts)


def lost_ones(tap):
    for name, (in_malloc, line) in LOST.items() if suite.LONG else list(LOST.items())[:1]:
        result = suite.conform("bench", "--quick", "--max-time=0.5", "--timeout=5", "-H",
                               build(name, in_malloc))
        tap.point(result.code == NOT_CONFORMANT and not result.stderr
                  and re.fullmatch(line + r"; there are no figures\n", result.stdout),
                  "one that " + name, result)


def wrong_use(tap):
    suite.build(suite.write("unfit.c", UNFIT), "./unfit.so")
    for words, code, line in (
            (["bench", "fast", "-H", "aligned"], CANNOT_LOAD, "fast: there is no such file"),
            (["bench"] + 7 * ["-H", "aligned"], USAGE, "bench takes up to 6 handlers"),
            (["bench"], USAGE, "no handler to test; "),
            (["bench", "--search", "-H", "aligned"], USAGE, "--search is a command; "),
            (["bench", "-H", "python:none"], CANNOT_LOAD, "python:none: ModuleNotFoundError"),
            (["bench", "-H", "./unfit.so"], CANNOT_WORK_HERE, "it cannot work here: no pages"),
            (["bench", "-H", "./none.so"], CANNOT_LOAD, "./none.so: ")):
        result = suite.conform(*words)
        tap.point(result.code == code and not result.stdout and line in result.stderr
                  and result.stderr.count("\n") == 1, " ".join(words), result)


def main():
    if suite.SANITIZED:
        suite.skip_all("a sanitizer changes what is measured")
    tap = suite.Tap()
    with suite.scratch(enter=True):
        results(tap)
        lost_ones(tap)
        wrong_use(tap)
    tap.end()


if __name__ == "__main__":
    main()
