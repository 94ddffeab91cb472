# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong in the control of a property ends in a verdict against the handler.

A property does the same without what it is about first (control_run, control_begin, the control of
expect_no_growth, expect_ordinary, expect_out_of_memory).  For each such place there is a mutant in
handlers/faulty/controls.c that goes wrong there; tests/mutants.py checks that it does.
"""

import concurrent.futures
import glob
import os
import re
import resource

import elf
import mutants
import suite
from suite import CONFORMANT, INCOMPLETE, NOT_CONFORMANT

# These spoil many properties, and what they are attributed to is left out here: for each kind of
# call that goes wrong one property fails then, and free(NULL, 0) is another than free(NULL, n).
# The first meets all of the battery, and the others what calls the functions itself.
LEFT_OUT = [
    ("calloc_does_not_zero", "calloc.zeroed*", 1),
    ("free_of_null_crashes", "free.null*", 2),
    ("realloc_refuses_null", "realloc.null-allocates", 1),
]
CALLS = ["--run=%s.*" % group for group in (
    "calloc", "env", "exhaustion", "free", "malloc", "process", "profile", "realloc")]

# With a descriptor for each block; it bears that none is left.
TAKES_DESCRIPTORS = "descriptor_for_each_block_while_there_are"

# Over the whole battery, in `make check` over what CALLS has.
WHOLE = ["aborts_from_90033"]


# In C: with a function for it, or growth that is compared with that of a control.
CONTROL = r"\bcontrol_(?:run|begin)\(|\bexpect_no_growth\([^,]*,[^,]*,\s*(?!NULL)\w"


def python_functions():
    """The source of each function of a property, by (module, name), and what its module imports."""
    found = {}
    for path in glob.glob(os.path.join(suite.SOURCE, "conformance", "*.py")):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        module = os.path.basename(path)[:-3]
        names = {name: origin for origin, line in re.findall(
            r"from conform_(\w+) import (\([^)]*\)|.*)", text) for name in re.findall(r"\w+", line)}
        for name, body in re.findall(r"(?ms)^def (\w+)\(.*?:\n(.*?)(?=^\S|\Z)", text):
            found[module, name] = body, names
        # Those that are made in a loop: globals()["out_of_memory_" + suffix] = partial(run, ...).
        for prefix, body in re.findall(r'globals\(\)\["(\w+)" \+ suffix\] = (.*)', text):
            found[module, prefix] = body, names
    return found


def python_controls(functions, module, name, seen):
    """How many controls the function has, and those that it mentions, each of them once."""
    key = module, name if (module, name) in functions else re.sub(r"(_memory_).*", r"\1", name)
    if key not in functions or key in seen:
        return 0
    seen.add(key)
    body, names = functions[key]
    return body.count("with control(") + sum(
        python_controls(functions, names.get(word, module), word, seen)
        for word in set(re.findall(r"(?<![.\w])\w+", body)))


def check_places(tap, named):
    """Each control of a property, or of the functions before it in C, has a mutant."""
    functions = python_functions()
    for path in sorted(glob.glob(os.path.join(suite.SOURCE, "conformance", "*.c"))):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        counts, count = [], 0
        for function in text.split("\n}\n"):
            count += len(re.findall(CONTROL, function))
            if count > 0 and "\nPROPERTY(" in function:
                counts.append((re.findall(r'\.id *= "(.*?)"', function)[-1], count))
                count = 0
        counts += [(id_, python_controls(functions, module, name, set())) for module, name, id_
                   in re.findall(r'PYTHON_PROPERTY\((\w+), (\w+),\s*\.id *= "(.*?)"', text)]
        for id_, count in counts:
            if count > 0:
                have = [name for name, ids in named.items() if id_ in ids]
                tap.point(len(have) >= count, id_ + " has a mutant for each control", have)


# ---- the mutants


def find_mutants():
    """The mutants of controls.c, and the ids that each names."""
    shared = elf.Object(os.path.join(suite.FAULTY, "faulty.so"))
    return {name: shared.text("kills_" + name).split() for name in mutants.find_in_controls()}


def run(name, *filters):
    handler = os.path.join(suite.FAULTY, "faulty.so:" + name)
    (properties,), result = mutants.verdicts_of([handler], filters, seconds=10)
    return result, properties


def check_whole(tap, name, ids):
    result, properties = run(name, *([] if suite.LONG else CALLS))
    first = properties.get(ids[0], {"verdict": "absent"})
    tap.point(result.code == NOT_CONFORMANT and mutants.verdict_of(first) in mutants.KILLS,
              "%s is not conformant" % name, first)


def check_left_out(tap, name, pattern, kinds):
    whole = suite.LONG or name == LEFT_OUT[0][0]
    result, properties = run(name, *([] if whole else CALLS), "--skip=" + pattern)
    failed = [each for each in properties.values() if each["verdict"] in mutants.KILLS
              and each["target"] == "handler"]
    tap.point(result.code == NOT_CONFORMANT and len(failed) == kinds,
              "%s fails %d without %s" % (name, kinds, pattern), failed)


def check_fits_once(tap):
    """What could not be run for want of the handler is no SKIP."""
    with suite.scratch() as folder:
        handler = suite.build(os.path.join(suite.SOURCE, "tests", "fits_once.c"),
                              os.path.join(folder, "fits_once.so"))
        result = suite.conform("--handler=" + handler, "--run=malloc.zero",
                               env={"FITS_ONCE": os.path.join(folder, "device")})
    tap.point(result.code == INCOMPLETE and "device is gone" in " ".join(result.stdout.split()),
              "a handler that cannot be loaded again is not conformant", result)


def limit_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))


def check_takes_descriptors(tap):
    """What the runner reads when none is left it has open."""
    result = suite.conform(
        "--handler=" + os.path.join(suite.FAULTY, "faulty.so:" + TAKES_DESCRIPTORS),
        "--run=malloc.lasts", "--run=realloc.long-run", "--strict", preexec_fn=limit_descriptors)
    tap.point(result.code == CONFORMANT and "2 passed" in result.stdout,
              "a handler that takes all descriptors has a verdict", result)


def main():
    if suite.SANITIZED:
        suite.skip_all("with sanitizers there are no controls")
    tap = suite.Tap()
    named = find_mutants()
    check_places(tap, named)
    with concurrent.futures.ThreadPoolExecutor((os.cpu_count() or 2) + 1) as pool:
        jobs = [pool.submit(check_whole, tap, name, named[name]) for name in WHOLE]
        jobs.append(pool.submit(check_fits_once, tap))
        jobs.append(pool.submit(check_takes_descriptors, tap))
        jobs += [pool.submit(check_left_out, tap, *each) for each in LEFT_OUT]
        for job in jobs:
            job.result()
    tap.end()


main()
