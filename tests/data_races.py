# SPDX-License-Identifier: BSD-3-Clause
"""--tsan: data races are found in handlers that were compiled for it, and in no sound one.
"""

import glob
import json
import os
import re
import shutil
import subprocess

import elf
import suite
from suite import CANNOT_LOAD, CONFORMANT, NOT_CONFORMANT, USAGE

HANDLERS = os.path.join(suite.SOURCE, "handlers")
FLAGS = ["-std=gnu11", "-g", "-O1", "-w", "-pthread", "-iquote", HANDLERS]
ID = "threads.no-data-race"

# The functions of handlers/faulty/data_races.c that the two accesses of a mutant are in.
PLACES = {
    "counts_without_lock": "counts_without_lock_malloc",
    "notes_the_largest_without_lock": "notes_the_largest_without_lock_malloc",
    "reads_statistics_without_lock": "live_(malloc|free)",
    "counts_on_the_heap_without_lock": "asking_malloc",
    "is_made_ready_without_lock": "is_made_ready_without_lock_malloc",
    "checks_twice_without_atomics": "make_table|checks_twice_without_atomics_malloc",
}
ACCESS = r"a (?:read|write) of \d+ bytes? at (\w+) \(data_races\.c:\d+\)"

# Files of handlers/sound; those whose blocks are mappings, which change hands without libc.
SOUND = ["ordered", "mappings"]
MORE = ["locks", "pools", "resources", "sizes"]  # make check-long's
REFERENCE = ["cache", "aligned", "arena", "guard", "shift_header", "shm", "trace"]
FEW = 1
PART = [] if suite.LONG else ["--run=threads.no*", "--run=threads.concurrent",
                              "--run=threads.hand-over"]

# Memory that changes hands by atomics, in a library that ThreadSanitizer does not see into; and a
# handler with a header in it.
LIBRARY = r"""
#include <stdatomic.h>
#include <sys/mman.h>
static char *all;
static _Atomic unsigned next;
static _Atomic(void *) kept[64];
__attribute__((constructor)) static void make(void)
{
    all = mmap(0, 1 << 28, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
               0);
}
void *cell_take(void)
{
    for (int i = 0; i < 64; i++) {
        void *p = atomic_exchange(&kept[i], (void *)0);
        if (p)
            return p;
    }
    return all + 4096 * (atomic_fetch_add(&next, 1) % 65536);
}
void cell_give(void *p)
{
    for (int i = 0; p && i < 64; i++)
        p = atomic_exchange(&kept[i], p);
}
"""
ON_LIBRARY = r"""
#include "sound/base.h"
void *cell_take(void);
void cell_give(void *);
static void *m(void *c, size_t n)
{
    if (n > 4000)
        return base_malloc(c, n);
    return base_finish(cell_take(), n);
}
static void *z(void *c, size_t n, size_t e)
{
    void *p = n > 4000 || e > 4000 ? NULL : m(c, n * e);
    return p ? memset(p, 0, n * e) : base_calloc(c, n, e);
}
static void f(void *c, void *p, size_t n)
{
    if (p && base_size(p) > 4000)
        base_free(c, p, n);
    else if (p)
        cell_give((char *)p - BASE_HEADER);
}
static void *r(void *c, void *p, size_t n)
{
    void *q = m(c, n);
    if (q && p) {
        memcpy(q, p, base_size(p) < n ? base_size(p) : n);
        f(c, p, 0);
    }
    return q;
}
NEP49_EXPORT PyDataMem_Handler nep49_handler = {"on a library", 1, {NULL, m, z, r, f}};
"""

# More races than the pipe for its output has room for reports.
MANY_RACES = '#include "sound/base.h"\n' + "".join(
    "static long c%d; __attribute__((noinline)) static void f%d(void) { c%d++; }\n" % (i, i, i)
    for i in range(80)) + """
static void *m(void *c, size_t n)
{
    %s
    return base_malloc(c, n);
}
SOUND(many, .malloc = m);
""" % " ".join("f%d();" % i for i in range(80))


def build(source, output, *flags, sanitize=True):
    """The object, or what the compiler said."""
    command = [*suite.COMPILER, *FLAGS, "-shared", "-fPIC", "-o", output, source, *flags]
    result = suite.run(command + (["-fsanitize=thread"] if sanitize else []))
    return result if result.code else None


def tsan(handler, *more):
    """How it ended, and what was said of the properties that are not PASS."""
    return tsan_all([handler], *more)[0]


def tsan_all(handlers, *more):
    """The same of each, with one start."""
    result = suite.conform("--tsan", "--json=-", *("--handler=" + each for each in handlers), *more,
                           timeout=300 * len(handlers))
    try:
        reports = json.loads(result.stdout)
    except ValueError:
        return [(result, {})] * len(handlers)
    return [(suite.Result(report["exit_code"], report["conclusion"], result.stderr),
             {p["id"]: (p["verdict"], p["message"]) for p in report["properties"]
              if p["verdict"] != "PASS"})
            for report in (reports if len(handlers) > 1 else [reports])]


def works():
    """None, or why ThreadSanitizer cannot be tried here."""
    source = suite.write("works.c", "int main(void) { return 0; }")
    built = suite.run([*suite.COMPILER, "-fsanitize=thread", "-o", "works", source])
    if built.code:
        return "the compiler has no ThreadSanitizer"
    ran = suite.run(["setarch", "-R", "./works"] if shutil.which("setarch") else ["./works"])
    return "it does not start here: " + ran.stderr[:200].strip() if ran.code else None


def mutants(tap):
    build(os.path.join(HANDLERS, "faulty", "data_races.c"), "./faulty.so")
    names = {name[6:] for name in elf.Object("./faulty.so").symbols if name.startswith("kills_")}
    tap.point(names == set(PLACES), "each mutant is in the table", names ^ set(PLACES))
    # on a busy machine two threads may not meet at once: a few rounds count, as in tests/mutants.py
    found = tsan_all(["./faulty.so:" + name for name in PLACES], "--run=" + ID, "--repeat=4",
                     "--until-fail")
    for (name, place), (result, others) in zip(PLACES.items(), found):
        verdict, text = others.get(ID, ("", ""))
        seen = re.findall(ACCESS, text)
        tap.point(result.code == NOT_CONFORMANT and verdict == "FAIL" and len(seen) == 2
                  and all(re.fullmatch(place, each) for each in seen),
                  name + " is named with both lines", "%s: %s\n%s" % (verdict, text, result))
    result, others = tsan("./faulty.so:counts_without_lock", *PART)
    causes = {message.partition(":")[0] for _, message in others.values() if "caused" in message}
    held = others[ID][0] == "FAIL" and causes == {"caused by " + ID}
    tap.point(held, "one property tells a race that several meet", result)
    result, others = tsan("./faulty.so:counts_without_lock", "--skip=" + ID, *PART)
    tap.point("FAIL" in [verdict for verdict, _ in others.values()],
              "another does where that one is left out", result)


def preloaded(tap):
    """The runtime may have come by the user's own LD_PRELOAD: what it reports counts."""
    runtime = suite.run([*suite.COMPILER, "-print-file-name=libtsan.so"]).stdout.strip()
    if not os.path.isabs(runtime) or suite.run(["true"], env={"LD_PRELOAD": runtime}).code:
        return tap.skip("preloaded, and no --tsan", "no libtsan.so that starts a program here")
    result = suite.conform("--handler=./faulty.so:counts_without_lock", "--run=threads.concurrent",
                           env={"LD_PRELOAD": runtime})
    tap.point(result.code == NOT_CONFORMANT and "data race" in result.stdout,
              "preloaded, and no --tsan", result)


def sound(tap):
    for each in SOUND + (MORE if suite.LONG else []):
        build(os.path.join(HANDLERS, "sound", each + ".c"), "./%s.so" % each)
        names = [name for name in elf.Object("./%s.so" % each).symbols if not name.startswith("_")]
        found = tsan_all(["./%s.so:%s" % (each, name) for name in names],
                         *([] if suite.LONG else ["--run=" + ID]))
        for name, (result, others) in zip(names, found):
            bad = {i: said for i, said in others.items() if said[0] != "SKIP"}
            tap.point(result.code == CONFORMANT and not bad, "sound: " + name, "%s" % bad or result)
    for name in REFERENCE if suite.LONG else REFERENCE[:FEW]:
        wrong = build(os.path.join(HANDLERS, name + ".c"), "./%s.so" % name)
        result, others = tsan("./%s.so" % name)
        bad = {i: said for i, said in others.items() if said[0] != "SKIP"}
        tap.point(not wrong and result.code == CONFORMANT and not bad and len(others) < 3,
                  "the reference handler " + name, "%s %s" % (bad, wrong or result))


def blind_spot(tap):
    build(suite.write("library.c", LIBRARY), "./libcells.so", sanitize=False)
    build(suite.write("on_library.c", ON_LIBRARY), "./on_library.so", "-L.", "-lcells",
          "-Wl,-rpath," + os.getcwd())
    _, others = tsan("./on_library.so", "--run=" + ID)
    tap.point(others.get(ID, ("PASS", ""))[0] != "FAIL",
              "what a library does that is not compiled for it is not the handler's", others)


def many(tap):
    build(suite.write("many.c", MANY_RACES), "./many.so")
    result, others = tsan("./many.so:many", "--run=" + ID)
    count = re.match(r"(?:.*; seen )?(\d+) data races, one of them: ", others.get(ID, ("", ""))[1])
    tap.point(count and int(count.group(1)) > 20, "more races than there is room to print", result)


def refusals(tap):
    result = suite.conform("--tsan", "--handler=aligned")
    held = result.code == USAGE and not result.stdout and re.fullmatch(
        r"conform: --tsan: aligned is not compiled for ThreadSanitizer; .*-fsanitize=thread.*\n",
        result.stderr)
    tap.point(held, "a handler that was not compiled for it", result)
    result = suite.conform("--tsan", "--handler=python:numpy:ndarray")
    held = result.code == USAGE and result.stderr.count("\n") == 1
    tap.point(held and "is in a Python module" in result.stderr, "a Python module", result)
    with open("faulty.so", "rb") as file:
        contents = file.read()
    with open("elsewhere.so", "wb") as file:
        file.write(contents.replace(b"libtsan.so.", b"libtsan.so_"))
    result = suite.conform("--tsan", "--handler=./elsewhere.so:counts_without_lock")
    held = result.code == CANNOT_LOAD and "ThreadSanitizer, libtsan.so_" in result.stderr
    tap.point(held and not result.stdout and result.stderr.count("\n") == 1,
              "a runtime that is not there", result)
    subprocess.run([*suite.COMPILER, *FLAGS, "-fPIC", "-fsanitize=thread", "-c", "-o", "bare.o",
                    os.path.join(HANDLERS, "faulty", "data_races.c")], check=True)
    subprocess.run([*suite.COMPILER, "-shared", "-o", "bare.so", "bare.o"], check=True)
    result = suite.conform("--tsan", "--handler=./bare.so:counts_without_lock", "--run=" + ID)
    tap.point(result.code == NOT_CONFORMANT and "data race" in result.stdout,
              "a runtime that is not named is the compiler's", result)
    result = suite.conform("--handler=aligned", "--run=" + ID, "--json=-")
    said = json.loads(result.stdout)["properties"][0]
    tap.point(said["verdict"] == "SKIP" and "--tsan" in said["message"],
              "without it, the property says what it takes", said)


def tsan_tests(tap):
    mutants(tap)
    preloaded(tap)
    sound(tap)
    blind_spot(tap)
    if suite.LONG:
        many(tap)
    refusals(tap)


def main():
    if suite.SANITIZED:
        suite.skip_all("the program has another sanitizer")
    with suite.scratch(enter=True):
        tap = suite.Tap()
        why = works()
        if why:
            tap.skip("--tsan", why)
        else:
            tsan_tests(tap)
        left = glob.glob(".*[0-9]")
        tap.point(not left, "nothing is left in the folder", left)
    tap.end()


main()
