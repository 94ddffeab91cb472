# SPDX-License-Identifier: BSD-3-Clause
"""Each file that is written is there as a whole, or as it was before: at every moment between two
system calls of the process that writes it, which is what kill -9 would leave; on a disk that is
full, and where the name is that of a link.
"""

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import xml.etree.ElementTree

import suite
from suite import CONFORMANT, HARNESS_BROKE, NOT_CONFORMANT, USAGE

OLD = b"old"
FORMATS = "badge", "bundle", "html", "json", "junit", "tap"
RUN = ["-Haligned", "-q", "--run=abi.n*"]
MUTANT = suite.FAULTY + "/faulty.so:calloc_does_not_zero"
SMALL = """mount -t tmpfs -o size=%dk none small || exit 99
printf old >small/r
"$@"
echo $? $(ls -A small) $(head -c 4 small/r | tr -d '\\0')
"""

TRACEME, SYSCALL = 0, 24
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def words(option, formats=FORMATS):
    return ["%s%s=out/%s" % (option, each, each) for each in formats]


def commands():
    """What is run, and the files that it writes."""
    return {
        "a battery": (RUN + words("--"), FORMATS, CONFORMANT),
        "report": (["report", "1.json"] + words("--", ("badge", "html")), ("badge", "html"),
                   CONFORMANT),
        "--repro": (["-q", "-H" + MUTANT, "--run=calloc.zeroed", "--repro=out"],
                    ("calloc.zeroed.c",), NOT_CONFORMANT),
        "init": (["init", "out"], ("mine.c", "Makefile", "README.md", ".gitlab-ci.yml",
                                   ".github/workflows/conform.yml"), CONFORMANT),
    }


def prepare(what, files):
    shutil.rmtree("out", ignore_errors=True)
    os.mkdir("out")
    for each in files if what != "init" else ():
        with open("out/" + each, "wb") as file:
            file.write(OLD)


def content(name):
    try:
        with open("out/" + name, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def is_whole(name, data):
    """As its reader sees it."""
    if name == "bundle":
        return suite.conform("verify", "out/bundle").code != USAGE
    if name == "json":
        return bool(json.loads(data))
    if name in ("badge", "junit"):
        return xml.etree.ElementTree.fromstring(data) is not None
    if name == "tap":
        return b"\n1..3\n" in data
    return data.rstrip().endswith({"html": b"</html>"}.get(name, b""))


class Traced:
    """The command, which stops before and behind each system call of its first process."""

    def __init__(self, arguments):
        self.process = subprocess.Popen(
            [suite.CONFORM] + arguments, preexec_fn=lambda: libc.ptrace(TRACEME, 0, None, None),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.code = None

    def moments(self):
        pid, status = os.waitpid(self.process.pid, 0)
        while os.WIFSTOPPED(status):
            yield
            number = os.WSTOPSIG(status)
            libc.ptrace(SYSCALL, pid, None, None if number == signal.SIGTRAP else number)
            _, status = os.waitpid(pid, 0)
        self.code = self.process.returncode = os.waitstatus_to_exitcode(status)


def can_trace():
    traced = Traced(["--version"])
    count = sum(1 for _ in traced.moments())
    return traced.code == 0 and count > 10


def files_below(folder):
    return {os.path.relpath(os.path.join(path, name), folder)
            for path, _, names in os.walk(folder) for name in names}


def stepped(tap, what, arguments, files, code):
    """Checks what the files have between any two system calls."""
    prepare(what, files)
    before = {name: content(name) for name in files}
    seen, writing, marks, others = {name: set() for name in files}, False, {}, files_below("out")
    traced = Traced(arguments)
    for moment, _ in enumerate(traced.moments()):
        there = files_below("out")
        writing = writing or there != others
        others = there
        for name in there & set(files):
            status = os.stat("out/" + name)
            mark = status.st_ino, status.st_size, status.st_mtime_ns
            if marks.get(name) != mark:
                seen[name].add(content(name))
            marks[name] = mark
    after = {name: content(name) for name in files}
    wrong = {name: sorted(map(len, seen[name] - {before[name], after[name], None}))
             for name in files if not seen[name] <= {before[name], after[name], None}}
    unread = [name for name in files if after[name] in (OLD, None)
              or not is_whole(name, after[name])]
    tap.point(traced.code == code and writing and not wrong and not unread
              and files_below("out") == set(files),
              "%s: whole or as before at all %d moments" % (what, moment + 1),
              "status %s; in part %s; unread %s; %s" % (traced.code, wrong, unread, others))


def links(tap):
    """Written through, also to where nothing is yet."""
    os.mkdir("there")
    for name, target in (("one", "there/one"), ("two", "one"), ("loop", "loop"),
                         ("nowhere", "no/such")):
        os.symlink(target, name)
    for name, code in (("two", CONFORMANT), ("one", CONFORMANT), ("loop", USAGE),
                       ("nowhere", USAGE)):
        result = suite.conform("report", "--html=" + name, "1.json")
        tap.point(result.code == code and os.path.islink(name)
                  and os.listdir("there") == ["one"] and (code == CONFORMANT or re.match(
                      "conform: --html=%s: cannot be written: .*\n$" % name, result.stderr)),
                  "a report's name is a link: %s" % name, result)


def full(tap):
    """A disk of so many KiB has the old file, or the new one, and nothing else."""
    os.mkdir("small")
    options = [["--%s=small/r" % name] for name in ("json", "html", "bundle")]
    for kib in 4, 8, 64:
        for option in options:
            name = "a disk of %d KiB: %s" % (kib, *option)
            command = [suite.CONFORM, *RUN, *option]
            result = suite.run(["unshare", "-rm", "sh", "-c", SMALL % kib, "-", *command])
            if not re.match(r"\d", result.stdout) or result.code == 99:
                tap.skip(name, "no small file system can be mounted here")
                return
            tap.point(result.stdout == "%d r old\n" % HARNESS_BROKE
                      if "No space" in result.stderr else
                      re.match(r"0 r (?!old)", result.stdout) and not result.stderr, name, result)
    command = [suite.CONFORM, "init", "small/new"]
    result = suite.run(["unshare", "-rm", "sh", "-c", SMALL % 12, "-", *command])
    tap.point(result.stdout == "%d new r old\n" % HARNESS_BROKE, "a full disk: init", result)


def main():
    if suite.SANITIZED:
        suite.skip_all("a sanitizer does not work where its process is traced")
    if not can_trace():
        suite.skip_all("no process can be traced here")
    tap = suite.Tap()
    with suite.scratch(enter=True):
        suite.conform(*RUN, "--json=1.json")
        for what, (arguments, files, code) in commands().items():
            stepped(tap, what, arguments, files, code)
        links(tap)
        full(tap)
    tap.end()


main()
