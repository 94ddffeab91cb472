# SPDX-License-Identifier: BSD-3-Clause
"""Signals aimed at any moment of each command, from its start to its end.

    tests/interrupted.py [--signals=COUNT] [--seed=SEED] [COMMAND...]

A command is measured first, and then told to end, each time at another moment of the time that it
took.  Whatever the moment, it ends within two seconds, times the load of the machine over its cores
where that is more than one, and leaves no process and no file.  And it is one of these:

* It dies of the signal with "conform: interrupted", and all that it prints and writes is valid and
  marked as a part.
* The signal came in the first 0.05 s, times the same load, before conform has begun to see to it,
  or the command is one that only prints: it dies of the signal with no word, and with no report.
* It came before there was anything to tell of, while valgrind or Python started: nothing but
  "conform: interrupted".
* It was over when the signal came: it ends within 0.25 s, as if there had been none.
"""

import argparse
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import time

import suite

OURS = {"program.py", "hangs.c", "hangs.so", "r.trace", "tmp"}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# An array after the other, for a second: it sleeps, so as to leave the machine to others.
PROGRAM = """
import time
import numpy as np
end = time.monotonic() + 1
while time.monotonic() < end:
    kept = [np.ones(n) for n in range(100)]
    time.sleep(0.01)
"""

# As many calls as take the replay half a second, some of them live at the end.
RECORDED = """
import numpy as np
kept = [np.arange(n % 3000) for n in range(30000)]
for array in kept[:15000]:
    array.resize(5000, refcheck=False)
"""

HANGS = """
#include <unistd.h>
#include "base.h"
static void *hanging_malloc(void *ctx, size_t size)
{
    if (size == 808)
        for (;;)
            pause();
    return base_malloc(ctx, size);
}
SOUND(nep49_handler, .malloc = hanging_malloc);
"""

# What is printed where it is a part, and how the whole ends when it is left alone.
COMMANDS = {
    "battery": (["-H", "aligned", "--json=r.json", "--tap=r.tap", "--skip=numpy.*",
                 "--skip=interop.*"], ": INTERRUPTED: a part of "),
    "battery repeated": (["-H", "aligned", "--run=calloc.*", "--run=free.n*", "--repeat=5",
                          "--json=r.json"], ": INTERRUPTED"),
    "memcheck": (["-H", "aligned", "--memcheck", "--run=malloc.zero", "--json=r.json"],
                 ": INTERRUPTED: a part of "),
    "exec": (["exec", "-H", "aligned", "--", "program.py"], "INTERRUPTED: this is a part of"),
    "fail-each": (["exec", "-H", "aligned", "--fail-each", "--", "-c",
                   "import numpy as n; [n.ones(i) for i in range(9)]"],
                  "INTERRUPTED: this is a part of the runs"),
    "replay": (["replay", "-H", "aligned", "r.trace"], "PARTIAL"),
    "replay of a call that hangs": (["replay", "-H", "./hangs.so", "r.trace", "--timeout=1"],
                                    "PARTIAL"),
    "list": (["list"], None),
    "bench": (["bench", "-H", "aligned", "--quick", "--max-time=0.5"], "interrupted"),
    "clauses": (["clauses"], None),
}


def slowness():
    return max(1, os.getloadavg()[0] / os.cpu_count()) * suite.SLOWDOWN


def arrange():
    """Whether this test runs under nohup, or behind a shell's &, is not to matter."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


class End:
    """How a command ended, that got a signal after so many seconds."""

    def __init__(self, arguments, number=None, moment=0):
        begin = time.monotonic()
        process = subprocess.Popen(
            [suite.CONFORM] + arguments,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(os.environ, TMPDIR=os.path.abspath("tmp")), preexec_fn=arrange,
        )
        if number is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(moment)
            process.send_signal(number)
        sent = time.monotonic()
        try:
            out, err = process.communicate(timeout=60 * suite.SLOWDOWN)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        self.took, self.after = time.monotonic() - begin, time.monotonic() - sent
        self.code, self.number = process.returncode, number
        self.out, self.err = suite.decode(out), suite.decode(err)

    def __str__(self):
        return "exit %s, %.2f s after it\nstdout: %s\nstderr: %s" % (
            self.code, self.after, self.out[-600:], self.err[-600:])


def reports(arguments):
    return [each.partition("=")[2] for each in arguments if re.match("--(json|tap)=", each)]


def read_json():
    """The report, or None where there is none."""
    if not os.path.exists("r.json"):
        return None
    with open("r.json") as file:
        return json.load(file)


def is_part(end, mark, report, repeats):
    """Whether it is what a command that was interrupted half-way has to say.

    One that repeats may have come to the end of a round.
    """
    if end.code != -end.number or not end.err.endswith("conform: interrupted\n"):
        return False
    if report is not None:
        told = {each["verdict"] for each in report["properties"] if each["target"] == "handler"}
        told |= {each["verdict"] for each in report["properties"]} & {"INCOMPLETE"}
        if not report["interrupted"] or report["conformant"]:
            return False
        if "INCOMPLETE" not in told and not repeats:
            return False
        if "TIMEOUT" in told or "CRASH" in told or "FAIL" in told or "BROK" in told:
            return False
    return mark in end.out + end.err


class Aim:
    """What a command may do when a signal comes."""

    def __init__(self, name):
        self.name = name
        self.arguments, self.mark = COMMANDS[name]
        self.alone = End(self.arguments)
        self.counts = {}
        self.clear()

    def clear(self):
        """What is left, apart from the reports: nothing."""
        files = set(os.listdir(".")) - OURS
        left = sorted(files - set(reports(self.arguments))) + os.listdir("tmp")
        for file in files:
            os.unlink(file)
        return left

    def judge(self, end, moment):
        """In a word what came of it, or None where that may not be."""
        report = read_json()
        written = [os.path.exists(each) for each in reports(self.arguments)]
        whole = all(written) and (report is None or not report["interrupted"])
        as_alone = end.code == self.alone.code and "nterrupted" not in end.err
        if whole and as_alone and end.after < 0.25 * slowness():
            return "over"
        if self.mark is not None and all(written) and is_part(
                end, self.mark, report, self.name == "battery repeated"):
            return "part"
        if end.code != -end.number or any(written):
            return None
        if self.mark is None and end.err == "":
            return "silent"
        early = moment < 0.05 * slowness()
        if early and not end.out and end.err in ("", "conform: interrupted\n"):
            return "silent"
        starts_something = self.name in ("exec", "fail-each", "memcheck")
        if starts_something and end.err == "conform: interrupted\n" and not end.out:
            return "said"
        return None

    def fire(self, number, moment):
        """What is wrong when this signal comes at that moment, or None."""
        end = End(self.arguments, number, moment)
        came_of_it = self.judge(end, moment)
        self.counts[came_of_it] = self.counts.get(came_of_it, 0) + 1
        left = self.clear()
        processes = suite.end_orphans()
        wrong = [] if came_of_it else ["not as it may end"]
        if end.after > 2 * slowness():
            wrong.append("it took too long")
        if left or processes:
            wrong.append("left: %s, %d processes" % (left, processes))
        if not wrong:
            return None
        return "%s after %.4f s: %s\n%s" % (number.name, moment, "; ".join(wrong), end)


def aim(tap, name, count, seed):
    this = Aim(name)
    moments = random.Random("%d %s" % (seed, name))
    wrong = []
    for _ in range(count):
        number = moments.choice(SIGNALS)
        # a third of them at the start, where least is set up
        moment = this.alone.took * moments.random() ** moments.choice((1, 1, 3))
        wrong.append(this.fire(number, moment))
    wrong = [each for each in wrong if each]
    counts = ", ".join("%d %s" % (n, word) for word, n in this.counts.items())
    tap.point(not wrong, "%s, of %.2f s: %d signals (%s)" % (name, this.alone.took, count, counts),
              "%d of %d wrong, seed %d\n%s" % (len(wrong), count, seed, "\n".join(wrong[:10])))


def folders():
    return {name for name in os.listdir("/dev/shm") if name.startswith("conform-")}


def leaves_no_folder(tap):
    """resources.files works in one that is in memory; others may come and go meanwhile."""
    if not os.access("/dev/shm", os.W_OK):
        tap.skip("no folder in memory is left", "there is no /dev/shm")
        return
    before = folders()
    process = subprocess.Popen(
        [suite.CONFORM, "-Haligned", "--run=resources.files", "--until-fail", "--jobs=1"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=arrange)
    end = time.monotonic() + 30
    while not folders() - before and time.monotonic() < end:
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    process.wait()
    left = folders() - before
    while left & folders() and time.monotonic() < end + 30:
        time.sleep(0.1)
    tap.point(not left & folders(), "no folder in memory is left", left & folders())


# As an import of NumPy's may have it: another exception comes of Ctrl-C, or none.
SWALLOWS = """
print("begun", flush=True)
try:
    import time
    time.sleep(60)
except KeyboardInterrupt:
    %s
import numpy
time.sleep(60)
"""


def swallowed_in_an_import(tap):
    for what in "raise ImportError('no datetime')", "pass":
        process = subprocess.Popen(
            [suite.CONFORM, "exec", "-Haligned", "--", "-c", SWALLOWS % what],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=arrange)
        process.stdout.readline()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60 * suite.SLOWDOWN)
        tap.point(process.returncode == -signal.SIGINT and err.endswith(b"conform: interrupted\n"),
                  'an import makes "%s" of Ctrl-C' % what, err)


def prepare():
    os.mkdir("tmp")
    suite.write("program.py", PROGRAM)
    suite.write("hangs.c", HANGS)
    sound = os.path.join(os.path.abspath(suite.SOURCE), "handlers", "sound")
    suite.build("hangs.c", "./hangs.so", "-w", "-I", sound)
    suite.conform("exec", "-H", "aligned", "-q", "--record=r.trace", "--", "-c", RECORDED)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--signals", type=int, default=10 if suite.LONG else 2)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("commands", nargs="*")
    arguments = parser.parse_args()
    print("# seed %d" % arguments.seed)
    tap = suite.Tap()
    suite.adopt_orphans()
    with suite.scratch(enter=True):
        prepare()
        leaves_no_folder(tap)
        swallowed_in_an_import(tap)
        for name in arguments.commands or COMMANDS:
            if name == "memcheck" and not os.environ.get("VALGRIND"):
                tap.skip(name, "there is no valgrind")
                continue
            is_for_later = name == "memcheck" or (name == "bench" and not suite.LONG)
            if is_for_later and arguments.signals < 50 and name not in arguments.commands:
                tap.skip(name, "it is slow: for --signals=50 and more")
                continue
            aim(tap, name, arguments.signals, arguments.seed)
    tap.end()


main()
