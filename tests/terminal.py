# SPDX-License-Identifier: BSD-3-Clause
"""conform on a terminal: colors and the progress line; and interrupted, by three signals."""

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import time

import suite

# A constructor that never returns.
HANGS = """
#include <unistd.h>
#include "nep49.h"
__attribute__((constructor)) static void wait(void) { for (;;) pause(); }
NEP49_EXPORT PyDataMem_Handler nep49_handler;
"""
# The same, and a process in a session of its own that its parent's death does not end.
LEAVES_A_PROCESS = HANGS.replace("for (;;)", "if (fork() == 0) setsid(); for (;;)")

GREEN = "\033[32m"
REDRAW = "\r\033[K"
PROGRESS = re.compile(r"\r\x1b\[K\[\d+/\d+\] [^\r\n]+")


def read_all(fd, until, seconds=60):
    """What comes from the terminal until its last writer has gone, or `until` is among it."""
    seen = b""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not select.select([fd], [], [], 0.1)[0]:
            continue
        try:
            data = os.read(fd, 65536)
        except OSError:  # Linux says EIO when the other side is closed
            break
        if not data:
            break
        seen += data
        if until is not None and re.search(until, suite.decode(seen)):
            break
    return suite.decode(seen)


def on_terminal(arguments, env, stdout=True, stderr=True):
    """What a terminal shows of a run; what does not go there is thrown away."""
    master, slave = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
    environment.update(env)
    process = subprocess.Popen(
        [suite.CONFORM] + arguments,
        stdin=slave,
        stdout=slave if stdout else subprocess.DEVNULL,
        stderr=slave if stderr else subprocess.DEVNULL,
        env=environment,
    )
    os.close(slave)
    shown = read_all(master, None)
    os.close(master)
    return process.wait(), shown


def terminals(tap):
    """A row: what, arguments, environment, to the terminal, whether color and progress show."""
    run = ["--handler=aligned", "--run=abi.*"]
    xterm = {"TERM": "xterm"}
    both = {"stdout": True, "stderr": True}
    for what, more, env, ends, color, progress in [
        ("a terminal", [], xterm, both, True, True),
        ("a dumb terminal", [], {"TERM": "dumb"}, both, False, False),
        ("a terminal without TERM", [], {}, both, False, False),
        ("NO_COLOR", [], {"TERM": "xterm", "NO_COLOR": "1"}, both, False, True),
        ("an empty NO_COLOR", [], {"TERM": "xterm", "NO_COLOR": ""}, both, True, True),
        ("--color=never", ["--color=never"], xterm, both, False, True),
        ("--color=always", ["--color=always"], {"NO_COLOR": "1"}, both, True, False),
        ("--color=auto", ["--color=auto"], xterm, both, True, True),
        ("--quiet", ["--quiet"], xterm, both, False, False),
        ("stdout alone", [], xterm, {"stdout": True, "stderr": False}, True, False),
        ("stderr alone", [], xterm, {"stdout": False, "stderr": True}, False, True),
    ]:
        code, shown = on_terminal(run + more, env, **ends)
        held = code == 0 and (GREEN in shown) == color and bool(PROGRESS.search(shown)) == progress
        if progress:  # the line is gone when the report begins
            held = held and REDRAW in shown and not PROGRESS.search(shown.rpartition(REDRAW)[2])
            held = held and not re.search(r"\[[1-9]\d*/\d+\] starting", shown)
        else:
            held = held and "\033[K" not in shown
        tap.point(held, "%s: color %s, progress %s" % (what, color, progress), repr(shown))


def wait_for(process, seconds):
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(seconds)
    process.kill()
    return "still there after %d s, wait status then %d" % (seconds, process.wait())


def start(arguments, stderr, ignored=()):
    def arrange():
        """Whether this test runs under nohup, or behind a shell's &, is not to matter."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

    environment = dict(os.environ, TERM="xterm")
    return subprocess.Popen(
        [suite.CONFORM] + arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=environment,
        preexec_fn=arrange,
    )


def interrupt(tap, number, handler):
    """Interrupts a run whose progress line shows that the handler hangs; tests/interrupted.py has
    the reports of such runs."""
    master, slave = pty.openpty()
    process = start([handler, "--timeout=60"], slave)
    os.close(slave)
    shown = read_all(master, r"\[0/\d+\] abi\.loads")
    time.sleep(0.2)
    process.send_signal(number)
    code = wait_for(process, 10)
    shown += read_all(master, None, 5)
    os.close(master)
    printed = process.stdout.read()
    process.stdout.close()
    what = "%s, %s" % (signal.Signals(number).name, handler.rpartition("/")[2])
    tap.point(code == -number and shown.rpartition(REDRAW)[2] == "conform: interrupted\r\n"
              and b": INTERRUPTED: a part of " in printed, what, (code, shown, printed))
    time.sleep(0.3)  # for the processes that are about to end
    tap.point(suite.end_orphans() == 0, what + ": leaves no process")


def ignored_signal(tap):
    process = start(["--handler=aligned", "--run=malloc.*"], subprocess.PIPE,
                    ignored=[signal.SIGHUP])
    for _ in range(20):
        process.send_signal(signal.SIGHUP)
        time.sleep(0.005)
    out, err = process.communicate(timeout=60)
    held = process.returncode == 0 and not err and b"aligned: conformant in" in out
    tap.point(held, "a signal that was ignored stays ignored", (process.returncode, err))


def main():
    try:
        for end in pty.openpty():
            os.close(end)
    except OSError as error:
        suite.skip_all("no pseudo-terminal can be opened: %s" % error)
    tap = suite.Tap()
    suite.adopt_orphans()
    with suite.scratch(enter=True):
        for name, source in (("hangs", HANGS), ("leaves", LEAVES_A_PROCESS)):
            suite.write(name + ".c", source)
            suite.build(name + ".c", name + ".so")
        terminals(tap)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            interrupt(tap, number, "--handler=./hangs.so")
        interrupt(tap, signal.SIGINT, "--handler=./leaves.so")
        ignored_signal(tap)
    tap.end()


main()
