# SPDX-License-Identifier: BSD-3-Clause
"""The command that a report gives for each finding: from any folder, and under a real gdb, it stops
where the verdict is made, or where the handler crashes, ends the process or hangs."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time

import suite

# Mutant, property, its verdict, and what gdb shows where it stops.
STOPS = [
    ("calloc_does_not_zero", "calloc.zeroed", "FAIL",
     r"conform_fail \(expected=.*seen=.*byte \d+ of \d+ is 0x.*calloc\(\d+, \d+\)"
     r".*<calloc_does_not_zero_calloc>"),
    ("free_zeroes_errno", "free.keeps-errno", "WARN", r"conform_fail \(.*<free_zeroes_errno_free>"),
    ("free_of_null_crashes", "free.null", "CRASH",
     r"SIGSEGV(.|\n)*#0 .*free_of_null_crashes_free \("),
    ("exits_when_refused", "env.never-exits", "CRASH",
     r"exit_group(.|\n)*exits_when_refused_malloc \("),
    ("calloc_keeps_lock_on_failure", "exhaustion.nth-request", "TIMEOUT",
     r"SIGINT(.|\n)*calloc_keeps_lock_on_failure_calloc \("),
]

# A handler that is found by a folder alone.
MODULE = """
import ctypes
struct = ctypes.addressof(ctypes.c_char.in_dll(ctypes.CDLL(%r), "calloc_does_not_zero"))
new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
name = b"mem_handler"  # the capsule keeps where it is
handler = new(struct, name, None)
"""


def command_of(tap, mutant, identity, verdict):
    """What the report gives where the handler is a file in the working directory."""
    result = suite.conform("--handler=faulty.so:" + mutant, "--run=" + identity, "--timeout=2",
                           "--json=-", cwd=suite.FAULTY)
    properties = json.loads(result.stdout)["properties"]
    each = next(each for each in properties if each["id"] == identity)
    tap.point(each["verdict"] == verdict, "%s is a %s of %s" % (identity, verdict, mutant), result)
    return each.get("reproduce", "")


def in_batch(command):
    """The same for a gdb that nobody sits at: where it stops it shows the stack."""
    words = shlex.split(command)
    place = words.index("--args")
    return ["gdb", "-batch", "-nx"] + words[1:place] + ["-ex", "bt"] + words[place:]


def program_under(pid):
    """What gdb runs, or None."""
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
            children = file.read().split()
    except OSError:
        children = []
    return int(children[-1]) if children else None


def interrupt_when_it_hangs(gdb):
    """As Ctrl-C does, once the program sleeps and uses no processor time any more."""
    before = None
    while gdb.poll() is None:
        time.sleep(1)
        pid = program_under(gdb.pid)
        if pid is None:
            continue
        with open("/proc/%d/stat" % pid) as file:
            fields = file.read().rpartition(")")[2].split()
        if fields[0] == "S" and fields[11:13] == before:
            return os.kill(pid, signal.SIGINT)
        before = fields[11:13]


def stops(tap, folder, mutant, identity, verdict, shown):
    command = command_of(tap, mutant, identity, verdict)
    name = "from another folder gdb stops at the %s of %s" % (verdict, mutant)
    if not GDB_WORKS:
        return tap.skip(name, "no gdb that can run a program")
    gdb = subprocess.Popen(in_batch(command), cwd=folder, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if verdict == "TIMEOUT":
        threading.Thread(target=interrupt_when_it_hangs, args=[gdb], daemon=True).start()
    out = suite.decode(gdb.communicate(timeout=100)[0])
    tap.point(re.search(shown, out), name, "%s\n%s" % (command, out))


def without_gdb(command):
    return re.sub(r"gdb (-ex ('[^']*'|\w+) )*--args ", "", command)


def module(tap, folder):
    """A handler of a module in the working directory, or in a folder of PYTHONPATH below it."""
    os.makedirs(os.path.join(folder, "below"))
    for name, place in [("in_here", ""), ("in_below", "below")]:
        with open(os.path.join(folder, place, name + ".py"), "w") as file:
            file.write(MODULE % os.path.join(os.path.abspath(suite.FAULTY), "faulty.so"))
        arguments = ["--handler=python:%s:handler" % name, "--run=calloc.zeroed", "--json=-"]
        result = suite.conform(*arguments, cwd=folder, env={"PYTHONPATH": "below"})
        each = json.loads(result.stdout)["properties"][-1]
        again = suite.run(["sh", "-c", without_gdb(each["reproduce"])], cwd="/")
        tap.point(again.code == suite.NOT_CONFORMANT and "FAIL    calloc.zeroed" in again.stdout,
                  "a module %s is found from another folder" % name, "%s\n%s" % (result, again))


def main():
    if suite.SANITIZED:
        suite.skip_all("a sanitizer ends a process in its own way")
    tap = suite.Tap()
    with suite.scratch() as folder:
        for case in STOPS:
            stops(tap, folder, *case)
        module(tap, folder)
    tap.end()


GDB_WORKS = shutil.which("gdb") is not None and "exited normally" in suite.run(
    ["gdb", "-batch", "-nx", "-ex", "run", "--args", "true"]).stdout
if __name__ == "__main__":
    main()
