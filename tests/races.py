# SPDX-License-Identifier: BSD-3-Clause
"""ThreadSanitizer on what the runner keeps of calls that several threads make at once.

The whole battery runs so in a tree that was configured with CFLAGS=-fsanitize=thread; this is the
part of it that takes a second.
"""

import os
import tempfile

import suite

FOLDERS = ["src", "handlers"]
TRIES = 10  # on a busy machine two threads may come one after the other
SOURCES = ["tests/races.c", "src/harness/asked.c"]


def build(program):
    """The program with the sanitizer, by the compiler of this build; how that ended."""
    include = ["-iquote" + os.path.join(suite.SOURCE, folder) for folder in FOLDERS]
    sources = [os.path.join(suite.SOURCE, source) for source in SOURCES]
    return suite.run([*suite.COMPILER, "-std=gnu11", "-g", "-O1", "-pthread", "-fsanitize=thread",
                      *include, "-o", program, *sources])


def main():
    tap = suite.Tap()
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "races")
        built = build(program)
        if "fsanitize" in built.stderr or "tsan" in built.stderr:
            suite.skip_all("the compiler has no ThreadSanitizer")
        tap.point(built.code == 0, "it compiles", built)
        for _ in range(TRIES):
            seen = suite.run([program, "racing"])
            if "data race" in seen.stderr:
                break
        else:
            tap.skip("a race is seen", "ThreadSanitizer does not work here: "
                     + seen.stderr[:200].strip())
            return tap.end()
        tap.point("races.c" in seen.stderr, "a race is seen", seen)
        result = suite.run([program])
        tap.point(result.code == 0 and not result.stderr, "the runner has none", result)
    tap.end()


main()
