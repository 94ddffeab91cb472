# SPDX-License-Identifier: BSD-3-Clause
"""Subjects that want more static TLS than glibc sets aside, as one linked with jemalloc does.

conform starts itself again with room for them and says so, where that helps.
"""

import os
import subprocess
import threading

import suite
from suite import CANNOT_LOAD, CANNOT_WORK_HERE, CONFORMANT

TUNABLE = "glibc.rtld.optional_static_tls=8192"
SOME = ["--run=abi.loads", "--run=malloc.zero"]

SOURCE = """\
#include "base.h"
static __thread char room[%d] __attribute__((tls_model("initial-exec")));
static void *free_room(void *ctx, size_t size) { room[0]++; return base_malloc(ctx, size); }
SOUND(nep49_handler, .malloc = free_room);
"""

REFUSES = """\
#include "nep49.h"
PyDataMem_Handler *nep49_get_handler(const char **why) { *why = "%s"; return 0; }
"""


def make(name, text):
    suite.write(name + ".c", text)
    suite.build(name + ".c", name + ".so", "-I" + os.path.join(suite.SOURCE, "handlers", "sound"),
                "-w")
    return "--handler=./%s.so" % name


def says(result, words):
    return (result.stdout + result.stderr).count(words)


def reports(tap, wide):
    files = ["--json=r.json", "--tap=r.tap", "--junit=r.xml"]
    result = suite.conform(wide, *SOME, *files)
    held = result.code == CONFORMANT and says(result, TUNABLE) == 1
    tap.point(held, "one that needs 4 KiB is tested, and the text says how", result)
    report = suite.load("r.json")
    held = report["environment"].get("tunables") == TUNABLE and report["conformant"]
    tap.point(held, "so does JSON", report["environment"])
    for name in ("r.tap", "r.xml"):
        with open(name) as file:
            text = file.read()
        tap.point(text.count(TUNABLE) >= 1, "so does " + name, text)


def pipe(tap, wide):
    """The first process opens it, and another writes to it."""
    os.mkfifo("fifo")
    read = []
    reader = threading.Thread(target=lambda: read.append(open("fifo").read()))
    reader.start()
    result = suite.conform(wide, *SOME, "--tap=fifo")
    reader.join()
    tap.point(result.code == CONFORMANT and read[0].startswith("TAP version 13\n1..2\n"),
              "a report into a pipe comes whole", "%s\n%s" % (read, result))


def main():
    tap = suite.Tap()
    with suite.scratch(enter=True):
        try:
            wide = make("wide", SOURCE % 4096)
        except subprocess.CalledProcessError:
            suite.skip_all("the compiler takes no tls_model")
        probe = suite.conform(wide, *SOME, env={"GLIBC_TUNABLES": TUNABLE.replace("8192", "1")})
        if "static TLS" not in probe.stderr:
            suite.skip_all("this libc sets enough aside")
        tap.point(probe.code == CANNOT_LOAD and TUNABLE in probe.stderr,
                  "what GLIBC_TUNABLES says already stays, with a word on what helps", probe)
        reports(tap, wide)
        pipe(tap, wide)
        one = [wide, "--run=malloc.zero"]
        rows = [
            ("--no-fork too", [*one, "--no-fork"], CONFORMANT, TUNABLE),
            ("exec too, before the program begins",
             ["exec", wide, "--", "-c", "import numpy"], CONFORMANT, TUNABLE),
            ("one that needs a megabyte is refused, after one more try",
             [make("too_wide", SOURCE % (1 << 20)), *SOME], CANNOT_LOAD, "static TLS"),
            ("a handler that complains for ever is started once more",
             [make("refuses", REFUSES % "no static TLS today"), *SOME], CANNOT_WORK_HERE,
             "static TLS"),
        ]
        if suite.LONG and os.environ.get("VALGRIND") and not suite.SANITIZED:
            rows.append(("--memcheck too", [*one, "--memcheck"], CONFORMANT, TUNABLE))
        for what, arguments, code, words in rows:
            result = suite.conform(*arguments)
            tap.point(result.code == code and says(result, words) == 1, what, result)
        result = suite.conform(wide, *SOME, env={"GLIBC_TUNABLES": "glibc.malloc.perturb=1"})
        tap.point(result.code == CONFORMANT, "other tunables stay", result)
    tap.end()


main()
