# SPDX-License-Identifier: BSD-3-Clause
"""A vendor's year with one handler: red, waived, green with waivers, fixed, STALE, cleaned up, a
baseline, a regression that is NEW, a page, a bundle that is verified
elsewhere, and a reproducer in C.  Each step is the command that a vendor would give.
"""

import json
import os
import shutil

import installed
import suite
from suite import CONFORMANT, NOT_CONFORMANT, USAGE

# It claims nothing, keeps no size, and is right but for what is asked for.
HANDLER = """
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "nep49.h"

static void *mine_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return malloc(size);
}

static void *mine_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
#ifdef FORGETS_TO_ZERO
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : malloc(size);
    if (p != NULL)
        memset(p, 0, size / 8 * 8);
    return p;
#else
    return calloc(nelem, elsize);
#endif
}

static void *mine_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
#ifdef SHRINKS_TO_NOTHING
    void *smaller = p != NULL && size < 64 ? malloc(size) : NULL;
    if (smaller != NULL) {
        free(p);
        return smaller;
    }
#endif
    return realloc(p, size);
}

static void mine_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    free(p);
}

NEP49_EXPORT PyDataMem_Handler nep49_handler = {
    "mine", 1, {NULL, mine_malloc, mine_calloc, mine_realloc, mine_free}};
"""

WAIVERS = """
[[expect]]
id = "calloc.zeroed"
verdict = "FAIL"
reason = "the tail of odd sizes; ours are multiples of 8"
url = "https://example.com/mine/17"
"""
MORE_WAIVERS = """
[[expect]]
id = "%s"
verdict = "FAIL"
reason = "comes of the same"
"""

# What a year of whole batteries would take is for `make check-long`; the verdicts are the same.
PART = [] if suite.LONG else ["--run=abi.*", "--run=calloc.*", "--run=realloc.*"]


def build(*defects):
    with open("mine.c", "w") as file:
        file.write(HANDLER)
    suite.build("mine.c", "./libmine.so", "-O1", *["-D" + defect for defect in defects])


def conform(*words, part=None):
    return suite.conform("-H", "./libmine.so", *(PART if part is None else part), *words)


def load(name):
    with open(name) as file:
        return json.load(file)


def failures(name):
    return [each["id"] for each in load(name)["properties"] if each["verdict"] == "FAIL"
            and each["target"] == "handler"]


def waived_and_fixed(tap):
    build("FORGETS_TO_ZERO")
    result = conform("--json=january.json")
    failed = failures("january.json")
    tap.point(result.code == NOT_CONFORMANT and "calloc.zeroed" in failed, "the first run is red",
              result)
    with open("waivers.toml", "w") as file:
        file.write(WAIVERS + "".join(MORE_WAIVERS % i for i in failed if i != "calloc.zeroed"))
    result = conform("--expect=waivers.toml", "--badge=badge.svg")
    words = "with %d waiver%s" % (len(failed), "s"[len(failed) == 1:])
    tap.point(result.code == CONFORMANT and words in result.stdout, "waived, it is green", result)
    build()
    result = conform("--expect=waivers.toml")
    tap.point(result.code == NOT_CONFORMANT and "STALE" in result.stdout, "fixed, it is STALE",
              result)
    os.remove("waivers.toml")
    result = conform("--json=march.json")
    tap.point(result.code == CONFORMANT and "STALE" not in result.stdout, "cleaned up, it is green",
              result)
    result = suite.conform("--compare", "january.json", "march.json")
    tap.point(all("FIXED   " + each in result.stdout for each in failed), "FIXED since January",
              result)


def regression(tap):
    build("SHRINKS_TO_NOTHING")
    result = conform("--baseline=march.json", "--fail-on=new", "--json=june.json",
                     "--html=june.html")
    tap.point(result.code == NOT_CONFORMANT and "NEW     realloc.keeps-contents" in result.stdout,
              "a regression is NEW", result)
    with open("june.html") as file:
        page = file.read()
    tap.point("NEW" in page and "realloc.keeps-contents" in page, "and on the page")
    result = conform("--baseline=june.json", "--fail-on=new")
    tap.point(result.code == CONFORMANT, "what was so before does not fail the run", result)


def reproduced(tap):
    """A file for whoever owns the allocator, who has no Python; and its word when it is mended."""
    result = conform("--run=realloc.keeps-contents", "--repro=reproducers", part=[])
    source = "reproducers/realloc.keeps-contents.c"
    tap.point(result.code == NOT_CONFORMANT and os.path.exists(source), "a reproducer", result)
    for compiler in ("gcc", "clang"):
        if shutil.which(compiler) is None:
            tap.skip("reproduced by " + compiler, "there is none")
            continue
        made = suite.run([compiler, "-Wall", "-Wextra", "-Werror", "-O2", "-o", compiler, source,
                          "-ldl", "-lm", "-pthread"])
        before = suite.run(["./" + compiler]) if made.code == 0 else made
        build()
        after = suite.run(["./" + compiler])
        build("SHRINKS_TO_NOTHING")
        tap.point(before.code == 1 and "reproduced: " in before.stdout and after.code == 0,
                  "reproduced by %s, until it is mended" % compiler, "%s\n%s" % (before, after))


def proved(tap):
    """What is shipped, and what the customer does with it, with another copy of the program."""
    build()
    result = suite.conform("-H", "./libmine.so", "--bundle=mine.tar.gz", "--with-subject")
    tap.point(result.code == CONFORMANT, "a bundle of a whole run", result)
    os.mkdir("customer")
    os.rename("mine.tar.gz", "customer/mine.tar.gz")
    os.remove("libmine.so")
    made = installed.make("install", "DESTDIR=" + os.path.abspath("customer/programs"))
    theirs = os.path.join(installed.prefix_in("customer/programs"), "bin", "conform")
    theirs = [os.path.abspath(theirs), "--verify", "mine.tar.gz"]
    result = suite.run(theirs, cwd="customer") if made.code == 0 else made
    tap.point(result.code == CONFORMANT and "as it was written, and complete" in result.stdout,
              "verified by the customer's own conform", result)
    with open("customer/mine.tar.gz", "r+b") as file:
        file.seek(1000)
        byte = file.read(1)[0]
        file.seek(1000)
        file.write(bytes([byte ^ 1]))
    result = suite.conform("--verify", "mine.tar.gz", cwd="customer")
    tap.point(result.code == USAGE and "complete" not in result.stdout, "one bit of it changed",
              result)


def main():
    tap = suite.Tap()
    with suite.scratch() as folder:
        os.chdir(folder)
        waived_and_fixed(tap)
        regression(tap)
        reproduced(tap)
        proved(tap)
        os.chdir("..")
    tap.end()


main()
