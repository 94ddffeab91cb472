# SPDX-License-Identifier: BSD-3-Clause
"""Runs a script, a module or a command with a handler installed.

    python -m nep49 --handler NAME [--option KEY=VALUE]... SCRIPT [ARGUMENT...]
    python -m nep49 --handler NAME [--option KEY=VALUE]... -m MODULE [ARGUMENT...]
    python -m nep49 --handler NAME [--option KEY=VALUE]... -c COMMAND [ARGUMENT...]

Threads of `threading` have the handler too.  If the program dies of a signal, faulthandler prints
the Python lines of each thread.  `trace` prints its report on stderr, unless it has an `output`.
"""

import argparse
import faulthandler
import importlib.util
import os
import runpy
import sys
import types

import nep49


def begin_path(folder: str) -> None:
    """Has sys.path begin as it does without -m nep49."""
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        sys.path[0] = folder


def run_command(command: str) -> None:
    begin_path("")
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(command, "<string>", "exec"), module.__dict__)


def run_script(path: str) -> None:
    begin_path(os.path.dirname(os.path.realpath(path)))
    runpy.run_path(path, run_name="__main__")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m nep49", description="Runs a script, a module or a command with a handler "
        "installed.", usage="%(prog)s --handler NAME [--option KEY=VALUE]... "
        "(SCRIPT | -m MODULE | -c COMMAND) [ARGUMENT...]")
    parser.add_argument("--handler", required=True, metavar="NAME", help="one of %s, or a path"
                        % ", ".join(["default", *nep49.handlers()]))
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE",
                        help="an option of the handler (repeatable)")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("-m", action="store_true", dest="module", help="run a module")
    kind.add_argument("-c", action="store_true", dest="command", help="run a command")
    parser.add_argument("program", help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    words = parser.parse_args()
    for each in words.option:
        if "=" not in each:
            parser.error("--option takes KEY=VALUE, not %s" % each)
    options = dict(each.split("=", 1) for each in words.option)
    if words.handler == "trace" and "NEP49_TRACE" not in os.environ:
        options.setdefault("output", "-")
    if words.module:
        try:
            found = importlib.util.find_spec(words.program) is not None
        except (ImportError, ValueError):  # of a package that it is to lie in
            found = False
        if not found:
            parser.exit(2, "nep49: there is no module called %s\n" % words.program)
    elif not words.command and not os.path.exists(words.program):
        parser.exit(2, "nep49: %s: there is no such file\n" % words.program)
    try:
        handler = nep49.load(words.handler, **options)
    except (nep49.HandlerError, TypeError, ValueError) as error:
        parser.exit(2, "nep49: %s\n" % error)
    handler.install()
    nep49._install_in_threads(handler)
    faulthandler.enable()
    sys.argv = ["-c" if words.command else words.program, *words.arguments]
    if words.module:
        runpy.run_module(words.program, run_name="__main__", alter_sys=True)
    elif words.command:
        run_command(words.program)
    else:
        run_script(words.program)


if __name__ == "__main__":
    main()
