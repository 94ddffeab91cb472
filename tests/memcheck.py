# SPDX-License-Identifier: BSD-3-Clause
"""--memcheck: the reference handlers have no error of ours, errors belong to their property, and
nothing is left behind.

`make check` has one start of valgrind, for the errors that are found and a sound handler that has
none there; whole runs and all of the handlers are for `make check-long`.
"""

import os
import random
import re
import signal
import subprocess
import time

import suite
from suite import CANNOT_WORK_HERE, CONFORMANT, HARNESS_BROKE, NOT_CONFORMANT, USAGE

VALGRIND = os.environ["VALGRIND"]
WHOLE = ("aligned", "shift_header")  # in check-long
GROUPS = ("realloc.*", "free.*", "threads.*", "claim.*")
# A handler with an error in each of its corners, for each of which one property is there.
HANDLER = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>
#include "nep49.h"
static pid_t loader;
__attribute__((constructor)) static void load(void) { loader = getpid(); }
static __thread int calls;
static int from_null;
static void use(int x) { static volatile int sink; if (x) sink = x; }
static void *m(void *c, size_t n)
{
    char *p = malloc(n);
    (void)c, calls++;
    if (p && n == 5000)
        p[n] = 0;
    if (p && getpid() != loader)
        p[n] = 0;
    return p;
}
static void *z(void *c, size_t n, size_t e)
{
    char *p = calloc(n, e);
    (void)c, calls++;
    if (p && n * e == 5 << 10)
        use(p[-1]);
    return p;
}
static void *r(void *c, void *p, size_t n)
{
    char *q = realloc(p, n);
    (void)c;
    if (q && calls++ == 0 && gettid() != getpid())
        q[n] = 0;
    if (p == NULL && n > 1000 && ++from_null > 100) /* other properties have few of them */
        *(char *)16 = 1;
    if (q && p && n == 5 << 10) {
        char *fresh = malloc(10);
        use(fresh[5]);
        free(fresh);
    }
    return q;
}
static void f(void *c, void *p, size_t n)
{
    (void)c, calls++;
    if (p == NULL && n > 0) {
        char *gone = malloc(10);
        free(gone);
        use(gone[5]);
    }
    if (n == SIZE_MAX) {
        char *twice = malloc(10);
        free(twice);
        free(twice);
    }
    free(p);
}
NEP49_EXPORT PyDataMem_Handler nep49_handler = {"errs", 1, {NULL, m, z, r, f}};
"""

# One whose blocks of 8000 bytes, of which numpy.route-pickle has one, are a byte short: it is NumPy
# that goes wrong then, not a function of the handler.
SHORT = r"""
#include <stdlib.h>
#include "nep49.h"
static void *m(void *c, size_t n) { (void)c; return malloc(n == 8000 ? n - 1 : n ? n : 1); }
static void *z(void *c, size_t n, size_t e) { (void)c; return calloc(n ? n : 1, e ? e : 1); }
static void *r(void *c, void *p, size_t n) { (void)c; return realloc(p, n ? n : 1); }
static void f(void *c, void *p, size_t n) { (void)c, (void)n; free(p); }
NEP49_EXPORT PyDataMem_Handler nep49_handler = {"short", 1, {NULL, m, z, r, f}};
"""

# A defect of the interpreter, whichever is embedded: its pickle looks at what was never set.
DEFECT = r"""
#include <stdlib.h>
void look(void)
{
    static volatile int sink;
    char *fresh = malloc(10);
    if (fresh[5])
        sink = 1;
    free(fresh);
}
"""
HAS_DEFECT = """
import ctypes, pickle
sound, look = pickle.loads, ctypes.CDLL("%s").look
def loads(*arguments, **more):
    look()
    return sound(*arguments, **more)
pickle.loads = loads
"""

# What is wrong, the property that provokes it, its verdict, and what that says.
SAID = r"^expected no error under memcheck; seen \d+, the first: "
ERRORS = [
    ("a byte behind a block", "malloc.extent", "FAIL", SAID + r"Invalid write of size 1 at m \("),
    ("a byte before a block", "calloc.zeroed", "FAIL", SAID + r"Invalid read of size 1 at z \("),
    ("what was never set", "realloc.keeps-contents", "FAIL",
     SAID + r"Conditional jump or move depends on uninitialised value\(s\) at use \("),
    ("use after free", "free.null-with-size", "FAIL", SAID + r"Invalid read of size 1 at f \("),
    ("a second free", "free.any-size", "FAIL",
     SAID + r"Invalid free\(\).* at free \(.*, from f \("),
    ("a crash", "realloc.null-allocates", "CRASH",
     r"SIGSEGV .*; memcheck: Invalid write of size 1 at r \("),
    ("an error of a thread", "threads.first-call", "FAIL", SAID + r"Invalid write of size 1 at r "),
    ("an error of a child", "process.fork-child", "FAIL", SAID + r"Invalid write of size 1 at m "),
    ("no error", "free.null", "PASS", r"^$"),
]


def build(name, source):
    suite.write(name + ".c", source)
    return "./" + suite.build(name + ".c", name + ".so", "-w", "-g")


def memcheck(*arguments, **more):
    """The run, its report, and what it has left in the folder for temporary files."""
    os.mkdir("tmp")
    jobs = [] if suite.LONG else ["--jobs=1"]  # other tests run beside it
    result = suite.conform("--memcheck", "--json=r.json", *jobs, *arguments, timeout=600,
                           env=dict(more.get("env", {}), TMPDIR=os.path.abspath("tmp")))
    left = os.listdir("tmp")
    for name in left:
        subprocess.run(["rm", "-r", os.path.join("tmp", name)])
    os.rmdir("tmp")
    try:
        report = suite.load("r.json")
        os.unlink("r.json")
    except FileNotFoundError:
        report = None
    return result, report, left


def sound(tap, names, *chosen):
    """Reference handlers have no error."""
    for name in names:
        result, report, left = memcheck("--handler=" + name, *("--run=" + g for g in chosen))
        if result.code == CANNOT_WORK_HERE:
            tap.skip(name + " has no error", result.stderr.strip())
            continue
        bad = [p for p in report["properties"]
               if p["verdict"] not in ("PASS", "SKIP") and p["target"] == "handler"]
        run = [p for p in report["properties"] if p["verdict"] != "SKIP"]
        tap.point(result.code == CONFORMANT and not bad and not left
                  and (chosen or len(run) > len(report["properties"]) / 2), name + " has no error",
                  "%s\n%s\n%s" % (result, bad, left))


def errors(tap):
    """And none of another handler that has its turn before."""
    handler = build("errs", HANDLER)
    result, (sound, report), left = memcheck(
        "--handler=aligned", "--handler=" + handler,
        "--run=calloc.overflow",  # which is libc's here
        *("--run=" + each for _, each, _, _ in ERRORS))
    bad = [p for p in sound["properties"] if p["verdict"] != "PASS"]
    tap.point(sound["exit_code"] == CONFORMANT and not bad, "aligned has none of these", bad)
    told = {p["id"]: (p["verdict"], p["message"]) for p in report["properties"]}
    for what, name, verdict, message in ERRORS:
        held = told[name][0] == verdict and re.search(message, told[name][1])
        tap.point(held, "%s is attributed to %s" % (what, name), told[name])
    # valgrind 3.24 ends a process that asks calloc for nearly all there is, also with libc's.
    verdict, message = told["calloc.overflow"]
    tap.point(verdict == "PASS" or "libc's allocator comes to the same end" in message,
              "valgrind's calloc is not the handler's", (verdict, message))
    tap.point(result.code == NOT_CONFORMANT and not left, "errors are not conformant", result)
    tap.point(re.search(r"Invalid write of size 1 at m \(errs.c:\d+\)", re.sub(r"\s+", " ",
              result.stdout)), "the line that writes is shown", result)
    hinted = {p["id"] for p in report["properties"] if "with -g, and look" in p.get("hint", "")}
    wanted = {name for _, name, verdict, _ in ERRORS if verdict == "FAIL"}
    tap.point(hinted == wanted, "what memcheck found has a hint that fits", (hinted, wanted))
    commands = [p["reproduce"] for p in report["properties"] if p["verdict"] == "FAIL"]
    tap.point(not [each for each in commands if "preload" in each or "--memcheck" not in each],
              "the command that shows it again preloads nothing", commands)


def others(tap):
    """What the interpreter does wrong counts against no handler, and hides no error of one."""
    short = build("short", SHORT)
    os.mkdir("defect")
    suite.write("defect/look.c", DEFECT)
    look = suite.build("defect/look.c", "defect/look.so", "-w", "-g", "-O0")
    suite.write("defect/sitecustomize.py", HAS_DEFECT % os.path.abspath(look))
    for handler, code, said in (
            ("aligned", CONFORMANT, "^$"),
            (short, NOT_CONFORMANT, r"memcheck; seen \d+, the first: Invalid (read|write) of ")):
        result, report, left = memcheck("--handler=" + handler, "--run=numpy.route-pickle",
                                        env={"PYTHONPATH": os.path.abspath("defect")})
        message = report["properties"][-1]["message"]
        tap.point(result.code == code and re.search(said, message) and " look (" not in message
                  and not left, "beside an error of the interpreter: " + handler, message)


def same_end(tap):
    """What ends on libc's allocator as well, in the same way, is not the handler's."""
    os.mkdir("ends")
    suite.write("ends/sitecustomize.py",
                "import os, pickle\npickle.dumps = lambda *a, **k: os.abort()\n")
    result, report, left = memcheck("--handler=aligned", "--run=numpy.route-pickle",
                                    env={"PYTHONPATH": os.path.abspath("ends")})
    found = report["properties"][-1]
    tap.point(result.code == CONFORMANT and found["verdict"] == "SKIP" and not left
              and "libc's allocator comes to the same end" in found["message"],
              "a crash that libc's allocator has as well is not the handler's", (found, result))


def listen():
    """Whether this test runs under nohup, or behind a shell's &, is not to matter."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def interrupted(tap, count):
    """A signal at any moment of the start, before valgrind, in its own start, or after it; with
    check-long also when workers run."""
    seed = random.randrange(1 << 32)
    moments = random.Random(seed)
    wrong = []
    for seconds in [0.2 * moments.random() ** 2 for _ in range(count)] + [5] * suite.LONG:
        number = moments.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
        os.mkdir("tmp")
        process = subprocess.Popen(
            [suite.CONFORM, "--memcheck", "--handler=aligned", "--json=tmp/r.json",
             "--run=malloc.zero" if seconds < 1 else "--run=*"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(os.environ, TMPDIR=os.path.abspath("tmp")), preexec_fn=listen)
        time.sleep(seconds)
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
        left, processes = set(os.listdir("tmp")) - {"r.json"}, suite.end_orphans()
        subprocess.run(["rm", "-r", "tmp"])
        # nothing is said where it has not even begun to see to signals
        held = process.returncode == -number and err in (b"", b"conform: interrupted\n")
        held = held and (not out or b": INTERRUPTED: a part of " in out)
        if not held or left or processes:
            wrong.append("%s after %g s: %s %s %s %s %s" % (number.name, seconds,
                         process.returncode, out, err, left, processes))
    tap.point(not wrong, "%d signals: none is lost, and nothing is left" % count,
              "seed %d\n%s" % (seed, "\n".join(wrong)))


def refusals(tap):
    """What valgrind, or a file, cannot do is one line."""
    suite.write("broken.supp", "{ broken")
    for env, more, code, said in (
            ({"PATH": "/nowhere"}, ["--python=" + suite.PYTHON], HARNESS_BROKE,
             "conform: --memcheck: valgrind is not installed;"),
            ({"VALGRIND_OPTS": "--suppressions=broken.supp"}, [], HARNESS_BROKE,
             'FATAL: in suppressions file "broken.supp"'),
            ({"VALGRIND_OPTS": "--no-such-option"}, [], HARNESS_BROKE,
             "conform: --memcheck: valgrind did not start"),
            ({}, ["--tap=no/where"], USAGE, "--tap=no/where: cannot be written")):
        result, _, left = memcheck("--handler=aligned", *more, env=env)
        tap.point(result.code == code and said in result.stderr and not left, said, result)
    result = suite.conform("--memcheck", "--handler=aligned", env={"TMPDIR": "/nowhere"})
    tap.point(result.code == HARNESS_BROKE and "/nowhere/conform-memcheck-" in result.stderr
              and result.stderr.count("\n") == 1, "no folder for temporary files", result)


def main():
    if not VALGRIND:
        suite.skip_all("there is no valgrind, or configure was told to do without")
    tap = suite.Tap()
    suite.adopt_orphans()
    with suite.scratch(enter=True):
        if suite.LONG:
            names = suite.conform("handlers").stdout.split()
            sound(tap, [name for name in names if name not in WHOLE], *GROUPS)
            sound(tap, WHOLE)
            others(tap)
            same_end(tap)
        errors(tap)
        interrupted(tap, 100 if suite.LONG else 20)
        refusals(tap)
    tap.end()


main()
