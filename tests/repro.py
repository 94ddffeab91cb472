# SPDX-License-Identifier: BSD-3-Clause
"""--repro: a C file for each failure, which any compiler takes without a warning, and which shows
the failure from any folder, and none with a sound handler; none if calls alone do not show it.
"""

import json
import os
import re
import shutil

import suite
from suite import CONFORMANT, NOT_CONFORMANT, USAGE

# Mutant, property, and what its reproducer says.
KINDS = [
    ("calloc_does_not_zero", "calloc.zeroed",
     r"memory from calloc that is not zero: call 1, calloc\(\d+, \d+\): byte \d+"),
    ("calloc_wraps", "calloc.overflow", r"memory for a product that overflows: "),
    ("calloc_believes_an_old_errno", "calloc.zeroed",
     r"memory from calloc that is not zero: "),
    ("calloc_trusts_what_another_thread_freed", "calloc.zeroed",
     r"memory from calloc that is not zero: "),
    ("claimed_alignment_not_of_large_calloc", "malloc.claimed-alignment",
     r"memory that is not aligned as claimed: call 1, calloc"),
    ("exits_when_refused", "env.never-exits",
     r"the process exits: call \d+, malloc.*: with status 0$"),
    ("malloc_leaves_in_the_middle", "malloc.lasts", r"the process exits: call \d+, malloc.* 0$"),
    ("free_leaks_large", "free.reclaims", r"memory that grows: "),
    ("free_of_null_crashes", "free.null", r"SIGSEGV: call 1, free\(NULL, 0\)"),
    ("free_zeroes_errno", "free.keeps-errno", r"errno changed by free: "),
    ("getter_makes_another", "abi.getter-stable", r"another handler from the getter: "),
    ("malloc_refuses_one_in_1000", "malloc.lasts",
     r"a small request that is refused: call \d{3,}, malloc\(\d+\)"),
    ("malloc_searches_for_ever", "malloc.extent", r"no end: call \d+, malloc\(3217\)"),
    ("name_is_latin_1", "abi.name-utf8", r"a name that is not UTF-8: "),
    ("realloc_forgets_the_last_byte", "realloc.keeps-contents",
     r"contents lost by realloc: call \d+, realloc\("),
    ("realloc_is_missing", "abi.functions-present", r"a function that is missing: "),
    ("struct_remembers_a_block", "abi.struct-constant", r"a handler struct that changed: "),
    ("version_is_2", "abi.version", r"a version that is not 1: "),
    ("ends_the_thread_when_refused", "env.never-exits", r"the thread ends: call 1, malloc\("),
    ("child_writes_to_its_parent", "process.fork-child",
     r"a block that changed: call \d+, .*: byte \d+ is "),
]
# In a reproducer, wrong in the third of its programs alone.
AT_TIMES = """
#include "sound/base.h"
static void *its_calloc(void *ctx, size_t nelem, size_t elsize)
{
    const char *tries = getenv("REPRODUCER_TRY");
    return getenv("AT_TIMES") == NULL || (tries != NULL && *tries == '2')
               ? base_malloc(ctx, nelem * elsize) : base_calloc(ctx, nelem, elsize);
}
SOUND(nep49_handler, .calloc = its_calloc);
"""
# No list of calls shows these: the process, Python, an exception.
OTHERS = [("prints_each_call", "env.quiet"), ("tracks_its_own", "numpy.tracemalloc"),
          ("free_clears_exception", "free.keeps-pending-exception"),
          ("claims_unknown", "abi.claims-known")]

WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-g"]
AWKWARD = ["two words.so", "it's $HOME `id`.so", 'a "quoted" one.so', "back\\slash\\n.so",
           "what??=.so", "caf\u00e9 \u20ac.so", "a\nb\tc.so", "*|comment.so"]
MODULE = """
import ctypes
struct = ctypes.addressof(ctypes.c_char.in_dll(ctypes.CDLL(%r), "calloc_does_not_zero"))
new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
name = b"mem_handler"
handler = new(struct, name, None)
"""


# `make check` has every so manieth, `make check-long` all.
FEW = 3
ENDLESS = {"malloc_searches_for_ever"}  # takes ten times what others do


def compilers():
    """The two that most have, and this build's where it is another."""
    found = [[path] for path in map(shutil.which, ("gcc", "clang")) if path]
    known = [os.path.realpath(path) for path, in found]
    ours = os.path.realpath(shutil.which(suite.COMPILER[0]) or suite.COMPILER[0])
    return found + ([] if ours in known else [suite.COMPILER])


def handler_of(mutant):
    """An object of mutants by the symbol, or one that is the mutant."""
    alone = os.path.join(suite.FAULTY, mutant + ".so")
    if os.path.exists(alone):
        return alone
    for name in sorted(os.listdir(suite.FAULTY)):
        path = os.path.join(suite.FAULTY, name)
        if name.endswith(".so") and b"\0kills_%s\0" % mutant.encode() in open(path, "rb").read():
            return os.path.abspath(path) + ":" + mutant
    raise LookupError(mutant)


def reproduce(handler, *arguments, folder="made", **more):
    """What the report says of each property, and how conform ended."""
    result = suite.conform("--handler=" + handler, "--repro=" + folder, "--json=repro.json",
                           "--timeout=5", *arguments, **more)
    try:
        with open(os.path.join(more.get("cwd", "."), "repro.json")) as file:
            properties = json.load(file)["properties"]
    except (OSError, ValueError):
        properties = []
    return {each["id"]: each for each in properties}, result


def compile_file(source, compiler, output):
    return suite.run(list(compiler) + WARNINGS + ["-o", output, source, "-ldl", "-lm", "-pthread"])


def shows(tap, mutant, identity, said):
    """Under each compiler, from another folder, and nothing with a sound handler."""
    properties, result = reproduce(handler_of(mutant), "--run=" + identity)
    each = properties.get(identity, {})
    if not tap.point("repro" in each and os.path.isabs(each["repro"])
                     and "in C      " + each["repro"] in result.stdout,
                     "a reproducer of %s" % mutant, result):
        return
    for compiler in compilers():
        made = compile_file(each["repro"], compiler, "reproducer")
        tap.point(made.code == 0 and not made.stdout + made.stderr,
                  "%s has nothing to say to it" % os.path.basename(compiler[-1]), made)
        ran = suite.run([os.path.abspath("reproducer")], cwd="/")
        tap.point(ran.code == 1 and re.search("^reproduced: " + said, ran.stdout, re.M),
                  "it shows what is wrong", ran)
        sound = suite.run(["./reproducer", SOUND])
        tap.point(sound.code == 0 and sound.stdout == "not reproduced\n",
                  "and nothing of a sound handler", sound)


def shows_at_times(tap):
    suite.build(suite.write("at_times.c", AT_TIMES), "at_times.so")
    properties, result = reproduce("./at_times.so", "--run=calloc.zeroed")
    source = properties.get("calloc.zeroed", {}).get("repro", "none")
    made = compile_file(source, suite.COMPILER, "reproducer")
    ran = suite.run(["./reproducer"], env={"AT_TIMES": "1"}) if made.code == 0 else made
    tap.point(ran.code == 1 and "reproduced: memory from calloc" in ran.stdout,
              "a failure that the third program shows", "%s\n%s" % (result, ran))


def shows_not(tap, mutant, identity):
    properties, result = reproduce(handler_of(mutant), "--run=" + identity)
    each = properties.get(identity, {})
    why = re.match("not reproduced by calls alone: .", each.get("no_repro", ""))
    tap.point("repro" not in each and why
              and not os.path.exists("made/%s.c" % identity)
              and "in C      none: " in result.stdout,
              "%s is not shown by calls alone, which is said" % mutant, result)


def wrong_use(tap):
    compile_file("made/calloc.zeroed.c", suite.COMPILER, "reproducer")
    for arguments in (["a", "b"], ["--help"], ["no-such.so"], ["made/calloc.zeroed.c"]):
        ran = suite.run(["./reproducer"] + arguments)
        tap.point(ran.code == 2 and not ran.stdout and ran.stderr.count("\n") == 1,
                  "the reproducer does not take %s" % arguments, ran)


def folders(tap):
    """One that is there, that is to be made, and that cannot be."""
    handler, run = handler_of("calloc_does_not_zero"), "--run=calloc.zeroed"
    os.makedirs("is-there")
    suite.write("is-there/other", "kept")
    properties, result = reproduce(handler, run, folder="is-there")
    tap.point(sorted(os.listdir("is-there")) == ["calloc.zeroed.c", "other"]
              and result.code == NOT_CONFORMANT, "a folder that is there keeps what it has", result)
    _, result = reproduce("aligned", "--run=malloc.extent", folder="new")
    tap.point(result.code == CONFORMANT and os.listdir("new") == [],
              "a sound handler by its name has none", result)
    for folder in ("is-there/other", "is-there/other/below", "no/such/folder", ""):
        os.path.exists("repro.json") and os.unlink("repro.json")
        properties, result = reproduce(handler, run, folder=folder)
        tap.point(result.code == USAGE and result.stderr.count("\n") == 1 and not properties
                  and result.stderr.startswith("conform: --repro=%s: " % folder),
                  "no folder: '%s'" % folder, result)
    os.makedirs("closed", mode=0o555)
    if os.access("closed", os.W_OK):
        tap.skip("a folder that cannot be written", "root can")
    else:
        properties, result = reproduce(handler, run, folder="closed")
        tap.point(result.code == USAGE and "closed" in result.stderr and not properties,
                  "a folder that cannot be written", result)


def awkward_names(tap):
    path, symbol = handler_of("calloc_does_not_zero").rsplit(":", 1)
    for name in AWKWARD if suite.LONG else AWKWARD[::FEW]:
        shutil.copy(path, name)
        properties, result = reproduce("./%s:%s" % (name, symbol), "--run=calloc.zeroed")
        source = properties.get("calloc.zeroed", {}).get("repro", "none")
        made = compile_file(source, suite.COMPILER, "reproducer")
        ran = suite.run([os.path.abspath("reproducer")], cwd="/") if made.code == 0 else made
        tap.point(ran.code == 1 and "reproduced: memory from calloc" in ran.stdout,
                  "a handler in %s" % ascii(name), "%s\n%s" % (result, ran))
        os.unlink(name)


def module(tap):
    """Nothing of C can load it."""
    suite.write("in_python.py", MODULE % handler_of("calloc_does_not_zero").rsplit(":", 1)[0])
    properties, result = reproduce("python:in_python:handler", "--run=calloc.zeroed")
    each = properties.get("calloc.zeroed", {})
    tap.point("repro" not in each and "Python module" in each.get("no_repro", ""),
              "a handler from Python has none, and why is said", result)


def main():
    if suite.SANITIZED:
        suite.skip_all("a sanitizer ends a process in its own way")
    tap = suite.Tap()
    with suite.scratch(enter=True):
        short = [case for case in KINDS[::FEW] if case[0] not in ENDLESS]
        for case in KINDS if suite.LONG else short:
            shows(tap, *case)
        for case in OTHERS:
            shows_not(tap, *case)
        shows_at_times(tap)
        wrong_use(tap)
        folders(tap)
        awkward_names(tap)
        module(tap)
    tap.end()


SOUND = os.path.abspath(os.path.join(suite.BUILD, "handlers", "aligned.so"))
main()
