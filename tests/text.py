# SPDX-License-Identifier: BSD-3-Clause
"""The text report of each kind of ending, at 80 and at 120 columns, is that of tests/golden."""

import os
import re

import suite

HANDLER = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define NEP49_WITHOUT_NUMPY
#include "nep49.h"

enum { HEADER = 16 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *mine_malloc(void *ctx, size_t size)
{
    if (HANGS)
        pthread_mutex_lock(&lock);
    size_t *p = size > PTRDIFF_MAX - HEADER ? NULL : malloc(size + HEADER);
    if (p == NULL)
        return NULL;
    if (HANGS)
        pthread_mutex_unlock(&lock);
    *p = size;
    return (char *)p + HEADER;
}
static void *mine_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size) && !WRAPS)
        return NULL;
    static int is_first = -1; /* of the processes that come here */
    if (ONCE && is_first < 0 && size > 200) {
        is_first = access("once", F_OK) != 0;
        fclose(fopen("once", "w"));
    }
    void *p = mine_malloc(ctx, size);
    if (p != NULL && is_first != 1)
        memset(p, 0, size);
    return p;
}
static void mine_free(void *ctx, void *p, size_t size)
{
    free(p != NULL ? (char *)p - HEADER : NULL);
}
static void *mine_realloc(void *ctx, void *p, size_t size)
{
    void *moved = mine_malloc(ctx, size);
    if (moved != NULL && p != NULL) {
        size_t old = *(size_t *)((char *)p - HEADER);
        memcpy(moved, p, COPIES_TOO_MUCH || old > size ? size : old);
        mine_free(ctx, p, old);
    }
    return moved;
}

NEP49_EXPORT PyDataMem_Handler SYMBOL = {
    "mine", 1, {NULL, mine_malloc, mine_calloc, mine_realloc, mine_free}};
"""
DEFECTS = "HANGS", "WRAPS", "ONCE", "COPIES_TOO_MUCH"
WAIVER = '[[expect]]\nid = "calloc.overflow"\nverdict = "FAIL"\nreason = "fixed in 2.1"\n'
WIDTHS = 80, 120

# what, defect, compiler's and conform's arguments
CASES = [
    ("conformant", "", [], ["--run=malloc.zero", "--run=calloc.overflow"]),
    ("one failure", "WRAPS", [], ["--run=calloc.overflow"]),
    ("many failures of one defect", "COPIES_TOO_MUCH", [], ["--run=realloc.[kgn]*"]),
    ("a crash without debug information", "COPIES_TOO_MUCH", ["-g0"],
     ["--run=realloc.keeps-contents"]),
    ("a crash without symbols", "COPIES_TOO_MUCH", ["-s"], ["--run=realloc.keeps-contents"]),
    ("a hang", "HANGS", [], ["--run=malloc.too-large", "--timeout=1"]),
    ("an intermittent failure", "ONCE", [], ["--run=calloc.zeroed"]),
    ("waived", "WRAPS", [], ["--run=calloc.overflow", "--expect=w.toml"]),
    ("unusable", "SYMBOL", [], []),
]
# Rows depend on the size classes of libc, and conditions on the time there is.
VARIES = [
    (r"^(conform) .*(/[^/]+\.so)", r"\1 ...\2"), (r"^Python .*\n.*(; seed)", r"Python ...\1"),
    (r"^( {8}(?:call|actual|situation|when|not when) ).*\n(?: {18}.*\n)*", r"\1...\n"),
    (r"^( {8}expected ) .{45,}\n(?: {18}.*\n)*", r"\1...\n"),
    (r"^( {8}handler +\S+\+0x).*", r"\1..."), (r"/\S+/(conform) debug", r"\1 debug"),
    (r"^(?:CRASH +\S+ +SIG.*\n)+", "CRASH ...\n"), (r"^\d+ more failures?", "N more failures"),
    (r"shows\s+(?:it|them)\)", "shows them)"),
    (r"; \d+\.\d+ s$", "; ... s"), (r"^ {8}not when .*\n", ""), (r"/\S+/(\w+\.so)", r"\1"),
]


def report(name, defect, compiler, arguments, columns):
    """The text without what varies, and the lines that are too wide."""
    words = ["-D%s=%d" % (each, each == defect) for each in DEFECTS]
    symbol = "another_name" if defect == "SYMBOL" else "nep49_handler"
    suite.build("mine.c", "mine.so", *(compiler or ["-g"]), *words, "-DSYMBOL=" + symbol)
    if os.path.exists("once"):
        os.unlink("once")
    result = suite.conform("./mine.so", "--jobs=1", *arguments, env={"COLUMNS": str(columns)})
    text = result.stdout + result.stderr
    wide = [line for line in text.splitlines() if len(line) > columns
            and not re.match("conform |conform: |Python | {8}debug ", line)]
    for pattern, other in VARIES:
        text = re.sub("(?m)" + pattern, other, text)
    return "== %s: exit %s\n\n%s\n" % (name, result.code, text), wide


def main():
    if suite.SANITIZED:
        suite.skip_all("sanitizers print more")
    tap = suite.Tap()
    with suite.scratch(enter=True):
        suite.write("mine.c", HANDLER)
        suite.write("w.toml", WAIVER)
        for columns in WIDTHS:
            reports = [report(*case, columns) for case in CASES]
            made = suite.write("text-%d.txt" % columns, "".join(text for text, _ in reports))
            stored = os.path.join(suite.SOURCE, "tests", "golden", made)
            same = suite.run(["diff", "-u", stored, made])
            tap.point(same.code == 0, "tests/golden/" + made, same)
            wide = [line for _, lines in reports for line in lines]
            tap.point(not wide, "no line has more than %d columns" % columns, "\n".join(wide))
    tap.end()


main()
