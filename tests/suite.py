# SPDX-License-Identifier: BSD-3-Clause
"""What the tests in Python share: TAP, running conform, compiling handlers, processes.

Needs no NumPy.  Automake's TESTS environment says where everything is.
"""

import contextlib
import ctypes
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

CONFORM = os.environ["CONFORM"]
PYTHON = os.environ["PYTHON"]
SOURCE = os.environ["top_srcdir"]
BUILD = os.environ["top_builddir"]
COMPILER = shlex.split(os.environ["CC"])
FAULTY = os.path.join(BUILD, "handlers", "faulty")

SANITIZED = "SANITIZERS" in os.environ  # the build is one with AddressSanitizer
SLOWDOWN = 5 if SANITIZED else 1  # how much longer all may take there
LONG = "CHECK_LONG" in os.environ  # make check-long: what takes minutes is done as well

# OpenBLAS would start a thread for each core while NumPy is imported, and let it spin: half as much
# again of processor time for each start of Python, hundreds of which there are.
if not LONG:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

VERDICTS = ("PASS", "FAIL", "WARN", "SKIP", "CRASH", "TIMEOUT", "BROK", "INCOMPLETE")

# The exit codes of the design.
CONFORMANT, NOT_CONFORMANT, USAGE, CANNOT_LOAD, HARNESS_BROKE, INCOMPLETE = range(6)
CANNOT_WORK_HERE = 77


class Tap:
    """Test points, printed as they come; the plan comes last.  Threads may share one."""

    def __init__(self):
        self.count = self.failed = 0
        self.begin = time.monotonic()
        self.lock = threading.Lock()

    def say(self, held, name, more=""):
        """The next number, and its line with what belongs to it, before any other's."""
        with self.lock:
            self.count += 1
            mark = "ok" if held else "not ok"
            sys.stdout.write("%s %d - %s%s\n" % (mark, self.count, name, more))
            sys.stdout.flush()

    def point(self, held, name, why="", todo=None):
        """One test point; `why` is shown where it did not hold.  Returns whether it held."""
        directive = " # TODO " + todo if todo and not held else ""
        lines = [] if held else str(why).splitlines() or ["(no more is known)"]
        self.say(held, name, directive + "".join("\n#   " + line for line in lines))
        if not held and not todo:
            self.failed += 1
        return held

    def skip(self, name, reason):
        self.say(True, name, " # SKIP " + reason)

    def end(self):
        remove_left_files()
        used = sum(os.times()[:4])
        print("# %.1f s, %.1f s of processors" % (time.monotonic() - self.begin, used))
        print("1..%d" % self.count)
        sys.exit(1 if self.failed else 0)


def remove_left_files():
    """What mutants leave in /dev/shm, once the process is gone that it is named for.  One that
    judges them may be about to look: it has a minute."""
    for name in os.listdir("/dev/shm") if os.path.isdir("/dev/shm") else []:
        number = re.match(r"nep49-faulty\D*(\d+)", name)
        path = os.path.join("/dev/shm", name)
        with contextlib.suppress(OSError):
            if number and not os.path.exists("/proc/" + number.group(1)) \
                    and time.time() - os.stat(path).st_mtime > 60:
                os.remove(path)


def skip_all(reason):
    print("1..0 # SKIP " + reason)
    sys.exit(0)


class Result:
    """How a command ended, and what it printed."""

    def __init__(self, code, stdout, stderr):
        self.code, self.stdout, self.stderr = code, stdout, stderr

    def __str__(self):
        return "exit %s\nstdout: %s\nstderr: %s" % (self.code, self.stdout, self.stderr)


def decode(data):
    return data.decode("utf-8", "backslashreplace")


def run(command, timeout=120, env=None, **more):
    """Run it to its end.  One that does not end in time has the code "timeout"."""
    timeout *= SLOWDOWN
    environment = dict(os.environ)
    environment.pop("NO_COLOR", None)
    environment.update(env or {})
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=more.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        env=environment,
        **more,
    )
    try:
        out, err = process.communicate(timeout=timeout)
        return Result(process.returncode, decode(out or b""), decode(err))
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return Result("timeout", "", "it did not end within %g s" % timeout)


def conform(*arguments, **more):
    return run([CONFORM] + list(arguments), **more)


def listed_ids(*arguments):
    """The ids that list prints: each begins an indented line, and headings are not indented."""
    return re.findall(r"^ +(\S+)", conform("list", *arguments).stdout, re.M)


@contextlib.contextmanager
def scratch(enter=False):
    """A folder in the build tree, removed afterwards; with `enter` it is the working directory."""
    before = os.getcwd()
    folder = tempfile.mkdtemp(prefix="scratch-", dir=before)
    try:
        if enter:
            os.chdir(folder)
        yield folder
    finally:
        os.chdir(before)
        shutil.rmtree(folder, ignore_errors=True)


def write(name, content):
    """Writes a string, bytes, or any other value as JSON.  Returns the name."""
    if not isinstance(content, (str, bytes)):
        content = json.dumps(content)
    with open(name, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return name


def load(name):
    """Returns the value of a JSON file."""
    with open(name, encoding="utf-8") as file:
        return json.load(file)


def build(source, output, *flags, compiler=COMPILER, shared=True):
    """Compile and link one file of C, by default to a shared object; returns its path."""
    command = list(compiler) + ["-I", os.path.join(SOURCE, "handlers")]
    if shared:
        command += ["-shared", "-fPIC"]
    subprocess.run(command + ["-o", output, source] + list(flags), check=True)
    return output


def adopt_orphans():
    """From now on a process whose parent has died becomes a child of this one, and is seen."""
    PR_SET_CHILD_SUBREAPER = 36
    return ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def end_orphans(but=()):
    """Kill what has been left to this process, and return how many that were; not these."""
    killed = 0
    for _ in range(100):
        with open("/proc/thread-self/children") as file:
            children = {int(word) for word in file.read().split()} - set(but)
        for pid in children:
            state = open("/proc/%d/stat" % pid).read().rpartition(")")[2].split()[0]
            killed += state != "Z"
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        if not children:
            break
    return killed
