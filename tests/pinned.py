# SPDX-License-Identifier: BSD-3-Clause
"""The pinned handler where there is no device, on a stand-in for CUDA, tests/cuda.c.

Shows that the handler keeps the contract, that it takes the blocks of its claim from CUDA, gives
each back once and leaves a forked child alone, and that claim.pinned sees one that does not.
Whether CUDA then locks the pages, only CUDA can tell: on a machine with a device,

    ./conform --handler pinned
"""

import os
import re
import shutil

import suite

HANDLER = os.path.join(suite.SOURCE, "handlers", "pinned.c")
FROM_LIBC = "finish(malloc(%s + sizeof(struct header)), %s, LIBC);"

# What is changed in the handler, so that claim.pinned has to see it.
MUTANTS = {
    "calloc forgets": ("void *block = pinned_malloc(ctx, size);",
                       "void *block = " + FROM_LIBC % ("size", "size")),
    "realloc forgets": ("void *moved = pinned_malloc(ctx, new_size);",
                        "void *moved = " + FROM_LIBC % ("new_size", "new_size")),
    "large blocks only": ("if (size < pinned.from)", "if (size < pinned.from + 65536)"),
    "large blocks not": ("if (size < pinned.from)", "if (size < pinned.from || size >= 10000)"),
}
# What cudaHostAlloc does on a device: who sees it.
AS_ALLOCATED = {
    "ends with CUDA": ("return error == 0 || ", "return error == 0 && ", "process.use-at-exit"),
    "is shared with children": ("MAP_PRIVATE", "MAP_SHARED", "process.fork-child"),
}


def build_mutant(name, before, after):
    with open(HANDLER, encoding="utf-8") as file:
        text = file.read()
    if text.count(before) != 1:
        raise ValueError("handlers/pinned.c no longer has this once: " + before)
    stem = name.replace(" ", "_")
    with open(stem + ".c", "w", encoding="utf-8") as file:
        file.write(text.replace(before, after))
    return suite.build(stem + ".c", os.path.abspath(stem + ".so"), "-pthread")


def try_batteries(tap, cuda):
    groups = ["--run=%s.*" % each for each in ("malloc", "calloc", "realloc", "free", "claim")]
    part = [] if suite.LONG else groups + ["--run=exhaustion.*", "--run=process.*"]
    without = [] if suite.LONG else ["--skip=%s.*" % each for each in (
        "context", "interop", "numpy", "owndata", "profile", "runtime", "scenarios")]
    for options, settings in (
            (without, {}),
            (part, {"NEP49_PINNED_FROM": "4K"}),
            (part, {"CUDA_STANDIN_LIMIT": str(256 << 20)}),
            (["--memcheck"] + groups, {"NEP49_PINNED_FROM": "256"})):
        if "--memcheck" in options and (suite.SANITIZED or not suite.LONG):
            continue
        if "CUDA_STANDIN_LIMIT" in settings and not suite.LONG:
            continue  # it waits for memory that is not there
        result = suite.conform("--handler=pinned", "--timeout=60", "--jobs=1", *options,
                               timeout=600, env=dict(settings, NEP49_CUDART=cuda))
        words = options + ["%s=%s" % item for item in settings.items()]
        tap.point(result.code == suite.CONFORMANT, " ".join(["conformant"] + words), result)


def try_claim(tap, cuda):
    result = suite.conform("--handler=pinned", "--run=claim.pinned", "--verbose",
                           env={"NEP49_CUDART": cuda})
    tap.point(result.code == 0 and "PASS    claim.pinned" in result.stdout, "the claim is tested",
              result)
    runs = [(name, build_mutant(name, *each), {"NEP49_CUDART": cuda})
            for name, each in MUTANTS.items()]
    if not suite.SANITIZED:  # their runtime has to be the first that is loaded
        pageable = os.path.join(suite.FAULTY, "pinned_pageable.so")
        runs.append(("pinned_pageable", pageable, {"LD_PRELOAD": cuda}))
    for name, handler, env in runs:
        result = suite.conform("--handler=" + handler, "--run=claim.pinned", env=env)
        held = result.code == suite.NOT_CONFORMANT and "cuPointerGetAttribute says" in result.stdout
        tap.point(held, "claim.pinned sees it: " + name, result)
    for name, (before, after, identity) in AS_ALLOCATED.items():
        result = suite.conform("--handler=" + build_mutant(name, before, after), "--strict",
                               "--run=" + identity, env={"NEP49_CUDART": cuda})
        held = result.code == suite.NOT_CONFORMANT and identity in result.stdout
        tap.point(held, "%s sees it: %s" % (identity, name), result)


def try_refusals(tap, cuda):
    """What CUDA's driver asks for is not refused: it dies of that, and no handler can help it."""
    driver = shutil.copy(cuda, os.path.join(os.path.dirname(cuda), "libcuda.so.580.159"))
    for library, code, words in ((driver, suite.CONFORMANT, "1 passed"),
                                 (cuda, suite.NOT_CONFORMANT, "(in cuda")):
        result = suite.conform("--handler=pinned", "--run=exhaustion.nth-request",
                               env={"NEP49_CUDART": library, "CUDA_STANDIN_TRUSTS": "1"})
        tap.point(result.code == code and words in result.stdout,
                  "exhaustion.nth-request with a library that trusts malloc: " +
                  os.path.basename(library), result)


def try_example(tap, cuda):
    """examples/pinned/copies.py prints two lines for each size; here they are of no device."""
    program = os.path.join(suite.SOURCE, "examples", "pinned", "copies.py")
    handlers = os.path.join(suite.BUILD, "handlers")
    env = {"PYTHONPATH": os.path.join(suite.SOURCE, "python"), "NEP49_HANDLERS": handlers}
    result = suite.run([suite.PYTHON, program, "--library", cuda, "65536", "1048576"], env=env)
    row = r"^(64 KiB|1 MiB) +(default|pinned)(?: +[\d.]+ +\d+ us){2} +\d+ us$"
    rows = re.findall(row, result.stdout, re.M)
    tap.point(result.code == 0 and len(rows) == 4, "copies.py measures", result)
    result = suite.run([suite.PYTHON, program, "--library=/no/such.so"], env=env)
    tap.point(result.code == 1 and result.stderr.startswith("copies.py: no CUDA runtime"),
              "copies.py without CUDA says so", result)


def main():
    tap = suite.Tap()
    with suite.scratch() as folder:
        os.chdir(folder)
        source = os.path.join(suite.SOURCE, "tests", "cuda.c")
        cuda = suite.build(source, os.path.join(folder, "cuda.so"), "-pthread",
                           "-Wl,-soname,libcuda.so.1")
        try_batteries(tap, cuda)
        try_claim(tap, cuda)
        if suite.SANITIZED:
            tap.skip("a library that trusts malloc", "with sanitizers no request is refused")
            tap.skip("examples/pinned", "a sanitizer's runtime is not in Python")
        else:
            try_refusals(tap, cuda)
            try_example(tap, cuda)
        result = suite.conform("--handler=pinned", env={"NEP49_CUDART": cuda,
                                                        "CUDA_STANDIN_DEVICES": "0"})
        tap.point(result.code == suite.CANNOT_WORK_HERE and
                  "there is no CUDA device: no CUDA-capable device is detected" in result.stderr,
                  "without a device it says so", result)
        os.chdir(os.pardir)
    tap.end()


main()
