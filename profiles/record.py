# SPDX-License-Identifier: BSD-3-Clause
"""Makes the caller profiles again: routes.py recorded on several versions of NumPy.

    profiles/record.py [--work FOLDER] [--only VERSION]... CONFORM [PYTHON]...

`make profiles` calls it.  For each version it makes a virtual environment from the newest of the
interpreters that has a wheel of it, and has CONFORM, the program, record there twice: two traces
that differ are an error.  The interpreters are those that are named, or else those that
tools/environments finds.

Nothing but the traces is left in the source tree; with --work the environments are kept there and
used again.
"""

import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ENVIRONMENTS = os.path.join(HERE, os.pardir, "tools", "environments")
NEWEST = "newest"
VERSIONS = ("1.22", "1.24", "1.26", "2.0", "2.2", NEWEST)

# Every realloc moves there, so that a trace does not say what one libc had room for.
HANDLER = "guard"

# What would make one recording differ from the next, or from that of another machine.
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}


class Failure(Exception):
    pass


def output_of(command, **more):
    """What it prints; Failure with the end of that where it does not go well."""
    result = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        universal_newlines=True, **more
    )
    if result.returncode != 0:
        lines = result.stdout.strip().splitlines()[-15:]
        raise Failure("%s: exit %d\n  %s" % (" ".join(command), result.returncode,
                                             "\n  ".join(lines)))
    return result.stdout.strip()


def environment(version, pythons, work):
    """The interpreter of a virtual environment with that NumPy."""
    named = [word for python in pythons for word in ("--interpreter", python)]
    return output_of([sys.executable, "-B", ENVIRONMENTS, "--cache", work] + named
                     + ["+" + version]).splitlines()[-1]


def record(conform, python, trace):
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("NEP49_", "NPY_", "NUMPY_", "PYTHON"))}
    output_of([conform, "exec", "--handler", HANDLER, "--python", python, "--quiet", "--untimed",
               "--record=" + trace, "--", "routes.py"], cwd=HERE, env=dict(env, **ENVIRONMENT))
    with open(trace, "rb") as file:
        return file.read()


def profile(version, pythons, conform, work):
    """Records one; returns its name and what changed."""
    python = environment(version, pythons, work)
    full = output_of([python, "-c", "import numpy; print(numpy.__version__)"])
    name = "numpy-%s.trace" % ".".join(full.split(".")[:2])
    trace = os.path.join(work, name)
    made = record(conform, python, trace)
    if made != record(conform, python, trace):
        raise Failure("NumPy %s: two recordings of the same routes differ" % full)
    kept = os.path.join(HERE, name)
    before = None
    if os.path.exists(kept):
        with open(kept, "rb") as file:
            before = file.read()
    if made != before:
        with open(kept, "wb") as file:
            file.write(made)
    return name, full, "new" if before is None else "the same" if made == before else "changed"


def main():
    parser = argparse.ArgumentParser(description="Make the caller profiles again.")
    parser.add_argument("--work")
    parser.add_argument("--only", action="append", choices=VERSIONS)
    parser.add_argument("conform")
    parser.add_argument("python", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="profiles-") as temporary:
        work = os.path.abspath(options.work or temporary)
        os.makedirs(work, exist_ok=True)
        try:
            conform = os.path.abspath(options.conform)
            for version in options.only or VERSIONS:
                name, full, change = profile(version, options.python, conform, work)
                print("%s: NumPy %s, %s" % (name, full, change))
                sys.stdout.flush()
        except Failure as failure:
            sys.exit("record.py: %s" % failure)


if __name__ == "__main__":
    main()
