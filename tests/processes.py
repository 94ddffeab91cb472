# SPDX-License-Identifier: BSD-3-Clause
"""conform's own processes: what their parent ignores, who kills them, what hangs in them, and a
reader that goes away."""

import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import time

import suite
from suite import CANNOT_LOAD, CONFORMANT, HARNESS_BROKE, NOT_CONFORMANT, USAGE

SLEEPS = "import numpy, time; numpy.ones(9); time.sleep(60)"
ONES = "import numpy as n; [n.ones(i) for i in range(50)]"

# Where it hangs.  A constructor runs before there is any handler to ask for.
SUBJECT = """
#include <unistd.h>
#include "sound/base.h"
static void hang(void)
{
    for (;;)
        pause();
}
#ifdef IN_MALLOC
static void *hanging_malloc(void *ctx, size_t size)
{
    (void)ctx;
    if (size > 0)
        hang();
    return NULL;
}
#define MORE .malloc = hanging_malloc
#endif
#ifdef IN_FREE
static void hanging_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    if (p != NULL)
        hang();
}
#define MORE .free = hanging_free
#endif
#ifndef MORE
#define MORE
#endif
static PyDataMem_Handler handler = {
    .name = "hangs", .version = 1, .allocator = {FUNCTIONS(base), MORE}};
#ifdef IN_CONSTRUCTOR
__attribute__((constructor)) static void construct(void)
{
    hang();
}
#endif
NEP49_EXPORT PyDataMem_Handler *nep49_get_handler(const char **why)
{
    (void)why;
#ifdef IN_GETTER
    hang();
#endif
    return &handler;
}
"""

# Each command, with what it comes to when it is left alone.
COMMANDS = {
    "battery": (["--run=malloc.*"], CONFORMANT),
    "--no-fork": (["--run=malloc.zero", "--no-fork"], CONFORMANT),
    "--python": (["--run=malloc.zero", "--python=" + sys.executable], CONFORMANT),
    "exec": (["exec", "--", "-c", "import numpy as n; n.ones(9); exit(7)"], 7),
    "--fail-each": (["exec", "--fail-each", "--", "-c", "import numpy as n; n.ones(9)"],
                    CONFORMANT),
    "replay": (["replay", "r.trace"], CONFORMANT),
}

# The same that do not come to their end.
ENDLESS = {
    "battery": ["--handler=./IN_MALLOC.so"],
    "battery, no end of loading": ["--handler=./IN_CONSTRUCTOR.so"],
    "--no-fork": ["--handler=./IN_MALLOC.so", "--no-fork", "--run=malloc.zero"],
    "exec": ["exec", "--handler=aligned", "--", "-c", SLEEPS],
    "exec, no end of loading": ["exec", "--handler=./IN_GETTER.so", "--", "-c", SLEEPS],
    "--fail-each": ["exec", "--handler=aligned", "--fail-each", "--", "-c", SLEEPS],
    "replay": ["replay", "--handler=./IN_FREE.so", "r.trace"],
    "replay, no end of loading": ["replay", "--handler=./IN_CONSTRUCTOR.so", "r.trace"],
}


def ignored():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def blocked():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])


def parents(tap):
    """A parent that ignores or blocks SIGCHLD, as some service managers and containers do."""
    for name, (arguments, code) in COMMANDS.items():
        for word, arrange in (("ignored", ignored), ("blocked", blocked)):
            result = suite.conform(*arguments[:1], "-Haligned", *arguments[1:], preexec_fn=arrange)
            tap.point(result.code == code, "%s, SIGCHLD %s" % (name, word), result)


def begin(arguments):
    return subprocess.Popen(
        [suite.CONFORM] + arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: [signal.signal(n, signal.SIG_DFL) for n in (2, 15)])


def ended(process, number):
    """What it printed when it got the signal, or None where it did not end of it."""
    process.send_signal(number)
    try:
        out, _ = process.communicate(timeout=5 * suite.SLOWDOWN)
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
        return None
    return suite.decode(out) if process.returncode == -number else None


def killers(tap):
    """SIGKILL takes all of its processes along, and what asks for an end gets one."""
    numbers = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
    for name, arguments in ENDLESS.items():
        processes = [begin(arguments) for _ in numbers]
        time.sleep(0.5)
        outputs = [ended(*each) for each in zip(processes, numbers)]
        time.sleep(0.1)
        left = suite.end_orphans()
        for number, out in zip(numbers, outputs):
            silent = number == signal.SIGKILL or name == "--no-fork"
            held = out is not None and (silent or "conform: interrupted\n" in out)
            tap.point(held and not left, "%s, %s" % (name, number.name),
                      "%s\n%d processes are left of the three" % (out, left))


def hangs(tap):
    cases = [
        ("IN_MALLOC", r"TIMEOUT no end after 1 s in call 1: malloc\(\d+\)"),
        ("IN_FREE", r"TIMEOUT no end after 1 s in call \d+: free\(block \d+ of \d+"),
        ("IN_CONSTRUCTOR", r"TIMEOUT no end after 1 s, loading the handler$"),
        ("IN_GETTER", r"TIMEOUT no end after 1 s, loading the handler$"),
    ]
    programs = ([], ["--fail-each"])
    with concurrent.futures.ThreadPoolExecutor() as pool:  # each but waits
        replays = [pool.submit(suite.conform, "replay", "-H", "./%s.so" % where, "r.trace",
                               "--timeout=1") for where, _ in cases]
        runs = [pool.submit(suite.conform, "exec", "-H", "./IN_GETTER.so", "--timeout=1", *more,
                            "--", "-c", ONES) for more in programs]
    for (where, words), replay in zip(cases, replays):
        result = replay.result()
        held = result.code == NOT_CONFORMANT and re.search(words, result.stdout, re.M)
        tap.point(held, "replay, hangs " + where, result)
    for more, run in zip(programs, runs):
        result = run.result()
        held = result.code == CANNOT_LOAD and "no end of loading it after 1 s" in result.stderr
        tap.point(held, "exec %s, hangs IN_GETTER" % " ".join(more), result)


def python_hangs(tap):
    """An interpreter that does not come up: the run ends none the less."""
    os.mkdir("site")
    suite.write("site/sitecustomize.py", "import time\ntime.sleep(600)\n")
    begin = time.monotonic()
    result = suite.conform("-H", "aligned", "--run=numpy.*", "--timeout=1", "--max-time=2",
                           env={"PYTHONPATH": os.path.abspath("site")})
    took = time.monotonic() - begin
    held = result.code == USAGE and "cannot be embedded: it does not come" in result.stderr
    tap.point(held and took < 10 * suite.SLOWDOWN, "Python hangs when it starts: %.1f s" % took,
              result)


def python_dies(tap):
    """Before the handler was loaded: the interpreter is at fault."""
    suite.write("site/sitecustomize.py", "import os\nos.abort()\n")
    result = suite.conform("-H", "aligned", env={"PYTHONPATH": os.path.abspath("site")})
    held = (result.code == USAGE and result.stdout == "" and result.stderr.count("\n") == 1
            and "cannot be embedded: the process ends with SIGABRT" in result.stderr)
    tap.point(held, "Python dies when it starts", result)


def readers(tap):
    """A reader that goes away after the first line, or before it."""
    for name, (arguments, _) in COMMANDS.items():
        if name in ("exec", "--no-fork"):
            continue
        output, closed = os.pipe()
        os.close(output)
        result = suite.conform(*arguments[:1], "-Haligned", *arguments[1:], stdout=closed)
        os.close(closed)
        held = result.code == HARNESS_BROKE and "stdout cannot be written" in result.stderr
        tap.point(held, name + ", nobody reads stdout", result)
    for name, (arguments, code) in COMMANDS.items():
        output, closed = os.pipe()
        os.close(output)
        process = subprocess.Popen([suite.CONFORM, *arguments[:1], "-Haligned", *arguments[1:]],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=closed)
        os.close(closed)
        tap.point(process.wait(60) == code, name + ", nobody reads stderr", process.returncode)


def main():
    tap = suite.Tap()
    suite.adopt_orphans()
    with suite.scratch(enter=True):
        suite.write("subject.c", SUBJECT)
        for where in ("IN_MALLOC", "IN_FREE", "IN_CONSTRUCTOR", "IN_GETTER"):
            suite.build("subject.c", "./%s.so" % where, "-D" + where)
        suite.conform("exec", "-H", "aligned", "-q", "--record=r.trace", "--", "-c", ONES)
        killers(tap)
        parents(tap)
        hangs(tap)
        python_hangs(tap)
        python_dies(tap)
        readers(tap)
    tap.end()


main()
