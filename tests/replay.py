# SPDX-License-Identifier: BSD-3-Clause
"""--record, replay and --print: what a program asked for, on other handlers."""

import os
import re
import subprocess
import sys

import suite
from suite import CONFORMANT, USAGE

FAULTY = os.path.join(suite.FAULTY, "faulty.so")
SOUND = os.path.join(suite.BUILD, "handlers", "sound", "sound.so")

PROGRAM = """
import sys
import numpy as np
kept = [np.arange(n) for n in range(100)]
a = np.zeros(1000)
a.resize(5000, refcheck=False)
np.fromstring(' '.join(['1'] * 5000), sep=' ')
np.array([3, 1, 2])[::-1].sort()
for n in range(100):
    kept[n % 7] = np.ones(50 + n)
    kept[n % 5] = np.zeros(40 + n)
try:
    np.empty(sys.maxsize, "u1")
except MemoryError:
    pass
"""


def record(tap, path):
    result = suite.conform("exec", "-H", "aligned", "-q", "--record=" + path, "--", "-c", PROGRAM)
    tap.point(result.code == 0 and os.path.getsize(path) > 500, "--record writes a trace", result)


def prints(tap, path):
    result = suite.conform("replay", path, "--print")
    wanted = [r"^# handler: aligned$", r"^# numpy: \d", r"malloc\(\d+\) = block \d+$",
              r"calloc\(8000, 1\) = block", r"realloc\(block \d+ of 8000, 40000\)",
              r"realloc\(.*without the GIL$", r"^# \d+ calls, 0 blocks live$"]
    missing = [each for each in wanted if not re.search(each, result.stdout, re.M)]
    tap.point(result.code == 0 and not missing, "--print shows it", missing or result)
    with open("/dev/full", "w") as full:
        result = suite.conform("replay", path, "--print", stdout=full)
    tap.point(result.code == suite.HARNESS_BROKE and "stdout cannot be written" in result.stderr,
              "--print on a full disk", result)


def replays(tap, path):
    for handler in ("aligned", "shift_header", SOUND + ":always_moves", SOUND + ":guard_pages"):
        result = suite.conform("replay", "-H", handler, path)
        good = result.code == 0 and re.search(r"^\d+ calls replayed", result.stdout)
        tap.point(good, "it replays on " + os.path.basename(handler), result)
    result = suite.conform("replay", "-H", "aligned", path, "--unchecked", "-q")
    tap.point(result.code == 0 and result.stdout == "", "--unchecked --quiet", result)


# What replaying the trace shows of a mutant.
FOUND = [
    ("shares_equals", r"FAIL    malloc.disjoint  call \d+,"),
    ("malloc_misaligns_whole_pages", "FAIL    malloc.alignment  "),
    ("aligns_resized_to_eight", "FAIL    realloc.alignment  "),
    ("calloc_does_not_zero", "FAIL    calloc.zeroed  "),
    ("realloc_does_not_copy", "FAIL    realloc.keeps-contents  "),
    ("malloc_fills_into_the_next", "FAIL    malloc.neighbours  "),
    ("refuses_everything", "FAIL    malloc.lasts  call 1,"),
    ("renames_itself", "FAIL    abi.struct-constant  "),
    ("traps_division_by_zero", "FAIL    env.float-state  "),
    ("malloc_is_missing", r"CRASH   \S+ in call 1: malloc"),
    ("exits_when_refused", r"CRASH   exit in call \d+: malloc\(%d\)" % sys.maxsize),
]


def finds(tap, path):
    for name, pattern in FOUND:
        result = suite.conform("replay", "-H", FAULTY + ":" + name, path)
        found = re.search("^" + pattern, result.stdout, re.M)
        tap.point(result.code == suite.NOT_CONFORMANT and found, "it finds " + name, result)
    result = suite.conform("replay", "-H", FAULTY + ":free_zeroes_errno", path)
    tap.point(result.code == 0 and result.stdout.count("WARN    free.keeps-errno  ") == 1,
              "it warns of free_zeroes_errno once", result)
    result = suite.conform("replay", "-H", FAULTY + ":calloc_does_not_zero", path,
                           "--unchecked")
    tap.point(result.code == 0, "--unchecked checks nothing", result)
    result = suite.conform("replay", "-H", "aligned", "--claim=alignment=8192", path)
    tap.point(result.code == suite.NOT_CONFORMANT
              and "FAIL    malloc.claimed-alignment  call 1," in result.stdout,
              "a claim that is made for it", result)


def refuses(tap, path, folder):
    with open(path, "rb") as file:
        whole = file.read()
    damaged = os.path.join(folder, "damaged")
    with open(damaged, "wb") as file:
        file.write(whole[:300] + b"\xff" * 9 + whole[309:])
    foreign = os.path.join(suite.SOURCE, "README.md")
    for name, argument in (("damaged", damaged), ("foreign", foreign)):
        result = suite.conform("replay", "-H", "aligned", argument)
        good = result.code == suite.USAGE and re.search(r"offset \d+", result.stderr)
        tap.point(good and result.stderr.count("\n") == 1, "one that is %s is refused" % name,
                  result)
    result = suite.conform("replay", "-H", "aligned", os.path.join(folder, "absent"))
    refused = result.code == suite.USAGE and "No such file" in result.stderr
    tap.point(refused, "none is there", result)
    cut = os.path.join(folder, "cut")
    with open(cut, "wb") as file:
        file.write(whole[: len(whole) // 2])
    result = suite.conform("replay", cut, "--print")
    calls = len(re.findall(r"= block", result.stdout))
    tap.point(calls > 20, "one that is cut short is shown as far as it goes", result)


PARTS = """
import _conform_exec
import numpy as np
a = np.arange(10.0)
_conform_exec.begin_part("an array that gets no memory")
_conform_exec.refuse(1)
try:
    np.empty(5)
except MemoryError:
    pass
print(_conform_exec.refuse(0))
_conform_exec.begin_part("an array that grows")
a.resize(20, refcheck=False)
_conform_exec.begin_part("the end")
"""


def from_pipes(tap, path, folder):
    """One without a writer has no trace, and nobody waits for it; one with a writer is read."""
    pipe = os.path.join(folder, "pipe")
    os.mkfifo(pipe)
    for words in (["-Haligned"], ["--print"]):
        result = suite.conform("replay", pipe, *words, timeout=60)
        tap.point(result.code == USAGE and result.stderr.count("\n") == 1
                  and "not a trace" in result.stderr,
                  "a FIFO that nobody writes to, %s" % words[0], result)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # for the writer to begin
    with open(path, "rb") as trace, open(pipe, "wb") as writer:
        running = subprocess.Popen([suite.CONFORM, "replay", pipe, "-Haligned", "-q"])
        writer.write(trace.read())
    tap.point(running.wait(timeout=60) == CONFORMANT, "a FIFO with a writer", running.returncode)
    os.close(reader)


def tells_parts(tap, folder):
    """A program names its parts, refuses itself memory, and gives the same file each time."""
    files = []
    for name in ("first", "second"):
        path = os.path.join(folder, name)
        result = suite.conform("exec", "-H", "guard", "-q", "--record=" + path, "--untimed", "--",
                               "-c", PARTS, env={"PYTHONHASHSEED": "0"})
        tap.point(result.code == 0 and result.stdout == "1\n", "a program in parts", result)
        with open(path, "rb") as file:
            files.append(file.read())
    tap.point(files[0] == files[1], "without times two traces of it are the same")
    result = suite.conform("replay", path, "--print")
    wanted = (r"^# part: an array that gets no memory\n.*malloc\(40\) = NULL\n"
              r"# part: an array that grows\n.*realloc\(block \d+ of 80, 160\) = .*\n"
              r"# part: the end\n")
    tap.point(re.search(wanted, result.stdout, re.M), "--print shows them", result)
    result = suite.conform("replay", "-H", FAULTY + ":realloc_is_missing", path)
    wanted = r"CRASH   \S+ in call \d+, in an array that grows: realloc\(block \d+ of 80, 160\)"
    tap.point(re.search(wanted, result.stdout), "a crash is attributed to its part", result)
    program = "import _conform_exec as c; c.begin_part('x'); print(c.refuse(0)); import numpy"
    result = suite.conform("exec", "-H", "aligned", "-q", "--", "-c", program)
    tap.point(result.code == 0 and result.stdout == "0\n", "parts without --record", result)
    program = "import _conform_exec, numpy; _conform_exec.refuse(1)"
    result = suite.conform("exec", "-H", "aligned", "-q", "--", "-c", program)
    tap.point(result.code == 1 and "refuse() goes with --record" in result.stderr,
              "refusing without --record is refused", result)


def survives_a_crash(tap, folder):
    path = os.path.join(folder, "crashed")
    program = "import numpy, os; kept = numpy.ones(77); os.abort()"
    suite.conform("exec", "-H", "aligned", "-q", "--record=" + path, "--", "-c", program)
    result = suite.conform("replay", path, "--print")
    tap.point(re.search(r"malloc\(616\) = block", result.stdout), "a crash leaves what was written",
              result)


CALLS_PYTHON = """
#include <stdlib.h>
#include "nep49.h"
int PyGILState_Check(void);
static void *m(void *ctx, size_t size) { return malloc(size); }
static void *c(void *ctx, size_t n, size_t size) { return calloc(n, size); }
static void *r(void *ctx, void *p, size_t size) { return realloc(p, size ? size : 1); }
static void f(void *ctx, void *p, size_t size) { if (size > 1u << 30) PyGILState_Check(); free(p); }
NEP49_EXPORT PyDataMem_Handler nep49_handler = {
    .name = "calls Python", .version = 1, .allocator = {NULL, m, c, r, f}};
"""


def wants_python(tap, path, folder):
    """Python is wanted where the handler has to find its functions, and nowhere else."""
    suite.write(os.path.join(folder, "calls.c"), CALLS_PYTHON)
    handler = suite.build(os.path.join(folder, "calls.c"), os.path.join(folder, "calls.so"))
    result = suite.conform("replay", "-H", handler, path)
    tap.point(result.code == suite.CONFORMANT, "a handler that calls Python", result)
    result = suite.conform("replay", "-H", handler, path, env={"PATH": "/nowhere"})
    told = "it calls Python, and no python3" in result.stderr
    tap.point(result.code == suite.CANNOT_LOAD and told,
              "a handler that calls Python, where there is none", result)
    result = suite.conform("replay", "-H", "aligned", path, env={"PATH": "/nowhere"})
    tap.point(result.code == suite.CONFORMANT, "one that does not, where there is none", result)


def main():
    tap = suite.Tap()
    with suite.scratch() as folder:
        path = os.path.join(folder, "program.trace")
        record(tap, path)
        prints(tap, path)
        replays(tap, path)
        finds(tap, path)
        refuses(tap, path, folder)
        from_pipes(tap, path, folder)
        survives_a_crash(tap, folder)
        wants_python(tap, path, folder)
        tells_parts(tap, folder)
    tap.end()


main()
