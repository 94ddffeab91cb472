# SPDX-License-Identifier: BSD-3-Clause
"""Runs a script with a handler in force.

    python -m nep49 --handler NAME [--option KEY=VALUE]... SCRIPT [ARGUMENT...]

Its threads have NumPy's default handler, as each new context has.
"""

import argparse
import os
import runpy
import sys

import nep49


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m nep49",
                                     description="Runs a script with a handler in force.")
    parser.add_argument("--handler", required=True, help="one of %s, or a path"
                        % ", ".join(nep49.handlers()))
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE",
                        help="what the handler is told")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    words = parser.parse_args()
    options = dict(each.partition("=")[::2] for each in words.option)
    try:
        nep49.install(words.handler, **options)
    except (nep49.HandlerError, TypeError) as error:
        parser.exit(2, "nep49: %s\n" % error)
    if not os.path.exists(words.script):
        parser.exit(2, "nep49: %s: there is no such file\n" % words.script)
    sys.argv = [words.script] + words.arguments
    runpy.run_path(words.script, run_name="__main__")


if __name__ == "__main__":
    main()
