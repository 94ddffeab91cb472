# SPDX-License-Identifier: BSD-3-Clause
"""Subjects that were built with a sanitizer, whose runtime is preloaded, or is missing.

The runtime has allocating functions of its own, and this program stands before those as well.
"""

import json
import re
import shutil
import subprocess

import suite
from suite import CANNOT_LOAD, CONFORMANT, NOT_CONFORMANT

SOURCE = r"""
#include <stdlib.h>
#include "nep49.h"
static void *m(void *c, size_t n) { (void)c; return malloc(n ? n : 1); }
static void *z(void *c, size_t n, size_t e) { (void)c; return calloc(n ? n : 1, e ? e : 1); }
static void f(void *c, void *p, size_t n) { (void)c, (void)n; free(p); }
static void *sound(void *c, void *p, size_t n) { (void)c; return realloc(p, n ? n : 1); }
static void *reads_past_the_end(void *c, void *p, size_t n)
{
    char *new = m(c, n), *old = p;
    for (size_t i = 0; new != NULL && old != NULL && i < n; i++)
        new[i] = old[i];
    if (new != NULL)
        free(p);
    return new;
}
NEP49_EXPORT PyDataMem_Handler nep49_handler = {"sound", 1, {NULL, m, z, sound, f}};
NEP49_EXPORT PyDataMem_Handler faulty = {"faulty", 1, {NULL, m, z, reads_past_the_end, f}};
"""

# what -fsanitize= is told, who builds it, and the runtime as that one names it
KINDS = [
    ("address", suite.COMPILER, "libasan.so"),
    ("thread", suite.COMPILER, "libtsan.so"),
    ("address", ["clang"], "libclang_rt.asan-x86_64.so"),
]
SOME = ["--run=malloc.one-byte", "--run=realloc.null-allocates", "--run=exhaustion.nth-request"]
PART = [] if suite.LONG else ["--run=%s.*" % group for group in ("calloc", "free", "realloc")]
PROGRAM = "import numpy as n; a = n.arange(1000); a.resize(3000, refcheck=False)"


def runtime_of(compiler, name):
    """The path of the library, or None."""
    if not shutil.which(compiler[0]):
        return None
    said = subprocess.run([*compiler, "-print-file-name=" + name], capture_output=True, text=True)
    path = said.stdout.strip()
    return path if "/" in path else None  # a bare name is none that was found


def with_runtime(tap, what, kind, handler, runtime):
    """It is judged, on memory of the runtime's, as any other is."""
    env = {"LD_PRELOAD": runtime}
    result = suite.conform(handler, *SOME, env=env)
    tap.point(result.code == CONFORMANT and "3 passed" in result.stdout, what + ": judged", result)
    result = suite.conform(handler, "--exec", "--", "-c", PROGRAM, env=env)
    held = result.code == CONFORMANT and "no violation" in result.stderr
    tap.point(held, what + ": --exec", result)
    if kind != "address":
        return
    result = suite.conform("--handler=aligned", "--json=-", env=env, *PART)
    report = json.loads(result.stdout)
    told = "conformant in the" if PART else "CONFORMANT as far as a sanitizer lets it be seen"
    tap.point(report["conclusion"].startswith(told)
              and report["environment"]["checker"] == "a sanitizer",
              what + ": that less is tried is said", result)
    result = suite.conform(handler + ":faulty", "--run=realloc.keeps-contents", env=env)
    held = (result.code == NOT_CONFORMANT and
            re.search(r"ERROR:\s+AddressSanitizer:\s+heap-buffer-over", result.stdout) and
            re.search("hint +build the handler with -g", result.stdout) and
            "LD_PRELOAD " + runtime in result.stdout)
    tap.point(held, what + ": its report of a faulty one is shown", result)


def without_runtime(tap, what, kind, handler):
    wanted = r"conform: \S+\.so: is built with -fsanitize=%s, .*LD_PRELOAD=\$\(.*\n" % kind
    for more in (SOME, ["--exec", "--", "-c", PROGRAM], SOME[:1] + ["--no-fork"]):
        result = suite.conform(handler, *more)
        held = result.code == CANNOT_LOAD and not result.stdout
        tap.point(held and re.fullmatch(wanted, result.stderr),
                  "%s: without it, %s" % (what, more[0]), result)


def main():
    if suite.SANITIZED:
        suite.skip_all("the program has a runtime built in")
    tap = suite.Tap()
    with suite.scratch() as folder:
        source = folder + "/sanitized.c"
        with open(source, "w") as file:
            file.write(SOURCE)
        for kind, compiler, name in KINDS:
            what = "%s, -fsanitize=%s" % (compiler[0], kind)
            runtime = runtime_of(compiler, name)
            if runtime is None:
                tap.skip(what, "%s has no %s" % (compiler[0], name))
                continue
            started = suite.run(["true"], env={"LD_PRELOAD": runtime})
            if started.code != 0:  # older ones do not bear with where a newer kernel maps
                tap.skip(what, "a program with %s does not start here" % name)
                continue
            handler = "%s/%s-%s.so" % (folder, compiler[0].rpartition("/")[2], kind)
            suite.build(source, handler, "-g", "-fsanitize=" + kind, compiler=compiler)
            with_runtime(tap, what, kind, "--handler=" + handler, runtime)
            without_runtime(tap, what, kind, "--handler=" + handler)
    tap.end()


if __name__ == "__main__":
    main()
