# SPDX-License-Identifier: BSD-3-Clause
"""--bench: figures of handlers beside NumPy's default one, as text, JSON and a page; and handlers
that have none.  How fast anything is, is no test's to say: but one that sleeps is slower.
"""

import json
import os
import re
from html.parser import HTMLParser

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
# What is done in malloc, and what is then said instead of figures.
LOST = {
    "crashes": ("if (size == 4 << 20) abort()",
                r"CRASH   crashes\.so: SIGABRT, in malloc and free of 4 MiB"),
    "hangs": ("while (size == 4 << 20) pause()",
              r"TIMEOUT hangs\.so: no end after 5 s, in malloc and free of 4 MiB"),
    "exits": ("if (size == 4 << 20) _exit(3)",
              r"CRASH   exits\.so: the process exits with 3, in malloc and free of 4 MiB"),
    "ends_below": ("if (size > 32 && size < 4096) abort()",
                   r"CRASH   ends_below\.so: SIGABRT, in resident memory over what is live"),
    "refuses": ("if (size == 65536) return NULL",
                r"FAIL    refuses\.so: refused in malloc and free of 64 KiB"),
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


def bench(*arguments, **more):
    return suite.conform("--bench=quick", "--max-time=0.5", *arguments, **more)


def build(name, in_malloc):
    with open(name + ".c", "w") as file:
        file.write(HANDLER)
    return suite.build(name + ".c", "./%s.so" % name, "-DIN_MALLOC=" + in_malloc)


class Page(HTMLParser):
    """Open elements, and what is in it."""

    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.pictures, self.rows, self.text = [], [], 0, 0, ""

    def handle_starttag(self, tag, attrs):
        if tag not in ("br", "input", "meta"):
            self.open.append(tag)
        self.pictures += tag == "svg"
        self.rows += tag == "tr"

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        self.text += data


def figures(tap):
    """Of a handler whose name is markup, and of one that sleeps."""
    build("slow", "if (size >= 1024) usleep(20)")
    os.rename(build("plain", ""), "<b>&plain.so")
    result = bench("-H", "./<b>&plain.so", "-H", "./slow.so", "--json=b.json", "--html=b.html")
    tap.point(result.code == CONFORMANT and not result.stderr, "figures", result)
    with open("b.json") as file:
        report = json.load(file)
    tap.point(report["format"] == "conform-bench-1" and len(report["handlers"]) == 4
              and {cell["group"] for cell in report["cells"]} == GROUPS
              and all(len(cell["handlers"]) == 4 and cell["rounds"] >= 3
                      and cell["handlers"][0]["ratio"] == 1 for cell in report["cells"]),
              "JSON has all groups", report)
    wrong = [cell for cell in report["cells"] for one in cell["handlers"]
             if not (0 <= one["low"] <= one["ratio"] <= one["high"] and one["value"] >= 0)]
    tap.point(not wrong, "ratios lie within their spread", wrong)
    slow = [cell["handlers"] for cell in report["cells"]
            if cell["group"] == "malloc" and cell["size"] >= 1024]
    tap.point(slow and all(of[3]["value"] > 2e-5 and of[3]["ratio"] > 20 * of[2]["ratio"]
                           for of in slow), "who sleeps is slower", slow)
    lines = result.stdout.splitlines()
    tap.point(re.match(r"Python [\d.]+\w*, NumPy [\d.]+", lines[0]) and "slow.so" in lines[4]
              and len([line for line in lines if re.search(r"\(\S+ to \S+\)", line)])
              == len(report["cells"]), "a line for each", result)
    footprints = [cell["handlers"][0]["value"] for cell in report["cells"]
                  if cell["group"] == "footprint"]
    tap.point(len(footprints) == 4 and all(footprints), "what stays resident is known", footprints)
    page = Page()
    with open("b.html") as file:
        text = file.read()
    page.feed(text)
    tap.point(not page.open and not page.wrong and page.pictures == 6
              and page.rows > len(report["cells"]) and "<b>&plain.so" in page.text
              and "<b>&plain" not in text and "http:" not in text, "a page", page.wrong)
    beside_a_report(tap, report)


def time_is_over(tap):
    """Ten seconds at most, and then what was not measured is left out."""
    if not suite.LONG:
        tap.skip("what is left out", "it takes ten seconds: set CHECK_LONG")
        return
    handler = build("slower", "usleep(20000)")
    result = suite.conform("--bench=quick", "-H", handler, "--json=s.json", "--html=s.html")
    with open("s.json") as file:
        report = json.load(file)
    with open("s.html") as file:
        page = file.read()
    said = "%d more were left out for want of time" % report["left_out"]
    tap.point(result.code == CONFORMANT and report["left_out"] > 0 and said in result.stdout
              and said in page, "what is left out", result)
    result = suite.conform("--bench=quick", "-H", build("slowish", "usleep(100)"), "--json=s.json")
    with open("s.json") as file:
        report = json.load(file)
    kept = {cell["group"] for cell in report["cells"]}
    tap.point(result.code == CONFORMANT and report["left_out"] > 0
              and kept >= {"malloc", "calloc", "realloc", "add", "zeros", "resize", "threads"},
              "and nothing for one group alone", kept)


def beside_a_report(tap, report):
    """In the page of a handler's report, where that is what the bench is told with."""
    suite.conform("-H", "./slow.so", "--run=abi.*", "--json=a.json", "--html=alone.html")
    result = suite.conform("--html=both.html", "--from", "a.json", "b.json")
    texts = {}
    for name in "alone", "both":
        page = Page()
        with open(name + ".html") as file:
            texts[name] = file.read()
        page.feed(texts[name])
        tap.point(not page.open and not page.wrong, "a page of it %s" % name, page.wrong)
    tap.point(result.code == CONFORMANT and "How fast" in texts["both"]
              and "How fast" not in texts["alone"] and texts["both"].count("class=\"drawn\"") == 18
              and "<b>&plain" not in texts["both"], "figures in the page of a report", result)
    for what, wrong, words in (
            ("no cells", dict(report, cells=[]), "b.json: a bench without figures\n"),
            ("a handler that is none", dict(report, handlers=[1, 2, 3, 4]),
             "b.json: handlers[0] is no string\n"),
            ("a figure too few", dict(report, handlers=report["handlers"][1:]),
             "b.json: cells[0] does not have what each has\n")):
        with open("b.json", "w") as file:
            json.dump(wrong, file)
        result = suite.conform("--html=no.html", "--from", "a.json", "b.json")
        tap.point(result.code == USAGE and result.stderr == "conform: " + words
                  and not os.path.exists("no.html"), "a bench with %s" % what, result)
    with open("b.json", "w") as file:
        json.dump(report, file)
    result = suite.conform("--html=no.html", "--from", "a.json", "b.json", "b.json")
    tap.point(result.code == USAGE and "b.json: the report that it goes with has a bench already"
              in result.stderr, "two benches of one", result)
    result = suite.conform("--html=no.html", "--from", "b.json")
    tap.point(result.code == USAGE and "a bench goes with a report" in result.stderr,
              "a bench alone", result)


def lost_ones(tap):
    """All in one, each ends the bench: so one after the other, and few where time counts."""
    for name, (in_malloc, said) in LOST.items() if suite.LONG else list(LOST.items())[:1]:
        result = bench("-H", build(name, in_malloc), "--timeout=5")
        tap.point(result.code == NOT_CONFORMANT and not result.stderr
                  and re.fullmatch(said + r"; there are no figures\n", result.stdout),
                  "one that " + name, result)


def wrong_use(tap):
    with open("unfit.c", "w") as file:
        file.write(UNFIT)
    suite.build("unfit.c", "./unfit.so")
    for words, code, said in (
            (["--bench=fast", "-H", "aligned"], USAGE, "--bench=fast: give quick, or nothing"),
            (["--bench"] + 7 * ["-H", "aligned"], USAGE, "--bench takes up to 6 handlers"),
            (["--bench"], USAGE, "no handler to test; "),
            (["--bench", "--search", "-H", "aligned"], USAGE, "--bench and --search exclude each"),
            (["--bench", "-H", "python:none"], CANNOT_LOAD, "python:none: ModuleNotFoundError"),
            (["--bench", "-H", "./unfit.so"], CANNOT_WORK_HERE, "it cannot work here: no pages"),
            (["--bench", "-H", "./none.so"], CANNOT_LOAD, "./none.so: ")):
        result = suite.conform(*words)
        tap.point(result.code == code and not result.stdout and said in result.stderr
                  and result.stderr.count("\n") == 1, " ".join(words), result)


def main():
    if suite.SANITIZED:
        suite.skip_all("figures of a sanitizer mean nothing")
    tap = suite.Tap()
    with suite.scratch() as folder:
        os.chdir(folder)
        figures(tap)
        time_is_over(tap)
        lost_ones(tap)
        wrong_use(tap)
        os.chdir("..")
    tap.end()


if __name__ == "__main__":
    main()
