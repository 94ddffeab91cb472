# SPDX-License-Identifier: BSD-3-Clause
"""Subjects that were built with a sanitizer, whose runtime conform preloads; and allocators that
are preloaded.

Both have allocating functions of their own, and this program stands before those as well.
"""

import json
import os
import re
import shutil
import sysconfig

import suite
from suite import CANNOT_LOAD, CONFORMANT, NOT_CONFORMANT, USAGE

SOURCE = r"""
#include <limits.h>
#include <stdlib.h>
#include "nep49.h"
static int count = INT_MAX - 9;
static void *m(void *c, size_t n) { (void)c; return malloc(n ? n : 1); }
static void *z(void *c, size_t n, size_t e) { (void)c; return calloc(n ? n : 1, e ? e : 1); }
static void f(void *c, void *p, size_t n) { (void)c, (void)n; free(p); }
static void *sound(void *c, void *p, size_t n) { (void)c; return realloc(p, n ? n : 1); }
static void *reads_past_the_end(void *c, void *p, size_t n)
{
    char *new = m(c, n), *old = p;
    for (size_t i = 0; new != NULL && old != NULL && i < n; i++)
        new[i] = old[i];
    if (new != NULL)
        free(p);
    return new;
}
static void *counts(void *c, size_t n) { count++; return m(c, n); }
NEP49_EXPORT PyDataMem_Handler nep49_handler = {"sound", 1, {NULL, m, z, sound, f}};
NEP49_EXPORT PyDataMem_Handler faulty = {"faulty", 1, {NULL, m, z, reads_past_the_end, f}};
NEP49_EXPORT PyDataMem_Handler undefined = {"undefined", 1, {NULL, counts, z, sound, f}};
"""

# Each block has pages of its own, which the kernel is asked for while conform is asked.
ALLOCATOR = r"""
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
enum { HEAD = 4096 };
void *memalign(size_t alignment, size_t size)
{
    if (size > (size_t)-1 / 2)
        return 0;
    size_t *p = mmap(0, HEAD + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || alignment > HEAD)
        return 0;
    *p = size;
    return (char *)p + HEAD;
}
void *malloc(size_t size) { return memalign(16, size); }
void free(void *p)
{
    size_t *head = (size_t *)((char *)p - HEAD);
    if (p)
        munmap(head, HEAD + *head);
}
#ifndef PARTIAL
void *calloc(size_t n, size_t size)
{
    return size && n > (size_t)-1 / 2 / size ? 0 : memalign(16, n * size);
}
void *realloc(void *p, size_t size)
{
    void *new = memalign(16, size);
    size_t old = p ? *(size_t *)((char *)p - HEAD) : 0;
    if (new && p)
        memcpy(new, p, old < size ? old : size), free(p);
    return new;
}
#endif
"""

# what -fsanitize= is told, who builds it, and the runtime as that one names it
KINDS = [
    ("address", suite.COMPILER, "libasan.so"),
    ("thread", suite.COMPILER, "libtsan.so"),
    ("undefined", suite.COMPILER, "libubsan.so"),
    ("address", ["clang"], "libclang_rt.asan-x86_64.so"),
    ("undefined", ["clang"], "libclang_rt.ubsan_standalone-x86_64.so"),
]
if suite.LONG:
    KINDS += [
        ("address,undefined", suite.COMPILER, "libasan.so"),
        ("leak", suite.COMPILER, "liblsan.so"),
        ("thread", ["clang"], "libclang_rt.tsan-x86_64.so"),
    ]
SOME = ["--run=malloc.zero", "--run=realloc.null-allocates", "--run=calloc.overflow"]
if suite.LONG:
    SOME.append("--run=exhaustion.nth-request")
PART = [] if suite.LONG else ["--run=realloc.*"]
PROGRAM = "import numpy as n; a = n.arange(1000); a.resize(3000, refcheck=False)"


MODULE = """
#define NEP49_WITHOUT_NUMPY
#include <Python.h>
#include "sanitized.c"
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "sanitized", NULL, -1, NULL, NULL, NULL,
                                    NULL, NULL};
PyMODINIT_FUNC PyInit_sanitized(void)
{
    PyObject *made = PyModule_Create(&module);
    PyModule_AddObject(made, "faulty", PyCapsule_New(&faulty, "mem_handler", NULL));
    return made;
}
"""
BY_CTYPES = """import ctypes
library = ctypes.CDLL(%r)
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
name = b"mem_handler"
struct = (ctypes.c_char * 168).in_dll(library, "nep49_handler")
handler = new_capsule(ctypes.addressof(struct), name, None)
"""
ADDRESS_REPORT = r"ERROR:\s+AddressSanitizer:\s+heap-buffer-over"


def runtime_of(compiler, name):
    """The path of the library, or None."""
    if not shutil.which(compiler[0]):
        return None
    said = suite.run([*compiler, "-print-file-name=" + name]).stdout.strip()
    return said if "/" in said else None  # a bare name is none that was found


def one_line(tap, what, result, code, words):
    held = result.code == code and not result.stdout
    tap.point(held and re.fullmatch("conform: .*%s.*\n" % words, result.stderr), what, result)


def judged(tap, what, kind, compiler, handler):
    """conform finds the runtime, and tests the handler on its memory as any other."""
    result = suite.conform(handler, *SOME)
    tap.point(result.code == CONFORMANT and "%d passed" % len(SOME) in result.stdout,
              what + ": judged", result)
    if compiler is suite.COMPILER and kind == "address" or suite.LONG:
        result = suite.conform("exec", handler, "--", "-c", PROGRAM)
        held = result.code == CONFORMANT and "no violation" in result.stderr
        tap.point(held, what + ": exec", result)
    if kind.startswith("address") and (compiler is suite.COMPILER or suite.LONG):
        result = suite.conform(handler + ":faulty", "--run=realloc.keeps-contents")
        held = (result.code == NOT_CONFORMANT and re.search("^FAIL +realloc", result.stdout, re.M)
                and re.search(ADDRESS_REPORT, result.stdout)
                and re.search("hint +Build the handler with -g", result.stdout)
                and re.search(r"actual +heap-buffer-overflow.*,\s+inside\s+realloc", result.stdout))
        tap.point(held, what + ": its report of a faulty one is shown", result)
    if kind.endswith("undefined"):
        result = suite.conform(handler + ":undefined", "--run=malloc.zero")
        held = (result.code == NOT_CONFORMANT and re.search("^FAIL +malloc", result.stdout, re.M)
                and re.search("actual +signed integer overflow", result.stdout))
        tap.point(held, what + ": what is undefined counts", result)


def told(tap, runtime):
    """That less is tried, also where the runtime is preloaded and the handler does not need it."""
    result = suite.conform("--handler=aligned", "--json=-", *PART, env={"LD_PRELOAD": runtime})
    report = json.loads(result.stdout)
    words = "conformant in the" if PART else "CONFORMANT as far as a sanitizer lets it be seen"
    tap.point(report["conclusion"].startswith(words)
              and report["environment"]["checker"] == "a sanitizer"
              and "allocator" not in report["environment"],
              "preloaded by the user: that less is tried is reported", result)


def modules(tap, folder, address):
    """An extension in a package, and an object that a file of Python names, are recognized before
    anything of them is imported."""
    env = {"PYTHONPATH": folder}
    python = ["--python=" + suite.PYTHON, "--json=-"]
    suite.write(folder + "/by_ctypes.py", BY_CTYPES % address)
    modules = [("by ctypes", "by_ctypes:handler", SOME, CONFORMANT, "")]
    include = "-I" + sysconfig.get_path("include")
    if os.path.exists(include[2:] + "/Python.h"):
        os.mkdir(folder + "/package")
        suite.write(folder + "/module.c", MODULE)
        suite.write(folder + "/package/__init__.py", "from .sanitized import faulty\n")
        suite.build(folder + "/module.c", folder + "/package/sanitized.so", "-g",
                    "-fsanitize=address", include)
        modules.append(("a module", "package.sanitized:faulty", ["--run=realloc.keeps-*"],
                        NOT_CONFORMANT, ADDRESS_REPORT))
    for what, name, some, code, words in modules:
        result = suite.conform("--handler=python:" + name, *some, *python, env=env)
        report = json.loads(result.stdout or "{}")
        tap.point(result.code == code and re.search(words, result.stdout)
                  and report["environment"].get("checker") == "a sanitizer", what, result)


def refused(tap, folder, handlers):
    """What cannot run is reported in one line, by each command."""
    address = handlers.get("address")
    if address:
        with open(address, "rb") as file:
            elsewhere = file.read().replace(b"libasan.so.", b"libasan.so_")
        suite.write(folder + "/elsewhere.so", elsewhere)
        for more in (SOME, ["exec", "--", "-c", PROGRAM], SOME[:1] + ["--no-fork"]):
            result = suite.conform(more[0], "--handler=%s/elsewhere.so" % folder, *more[1:])
            one_line(tap, "a runtime that is not there: " + more[0], result, CANNOT_LOAD,
                     "-fsanitize=address, and the runtime of .* is not found")
        if os.environ["VALGRIND"]:
            result = suite.conform("--handler=" + address, "--memcheck")
            one_line(tap, "memcheck", result, USAGE, "-fsanitize=address, which does not go")
    if address and "thread" in handlers:
        result = suite.conform("--handler=" + address, "--handler=" + handlers["thread"])
        one_line(tap, "two that exclude each other", result, USAGE, "test them one at a time")
    if runtime_of(["clang"], "libclang_rt.msan-x86_64.a"):
        suite.build(folder + "/sanitized.c", folder + "/memory.so", "-fsanitize=memory",
                    compiler=["clang"])
        result = suite.conform("--handler=%s/memory.so" % folder, *SOME)
        one_line(tap, "one that cannot run", result, CANNOT_LOAD, "build it with -fsani")


def allocators(tap, folder):
    """A whole one is asked, and what it does on the way is not taken for the handler's; one that
    lacks a function is not."""
    suite.write(folder + "/allocator.c", ALLOCATOR)
    for what, flags, words in (("whole", [], "asked wherever libc would be"),
                               ("partial", ["-DPARTIAL"], "libc is asked instead: it has no ")):
        path = suite.build(folder + "/allocator.c", "%s/%s.so" % (folder, what), "-O1",
                           "-fno-builtin", *flags)
        result = suite.conform("--handler=shift_header", *SOME, env={"LD_PRELOAD": path})
        held = result.code == CONFORMANT and path + " is preloaded, and " + words in result.stdout
        tap.point(held, what + " allocator that is preloaded", result)


def main():
    if suite.SANITIZED:
        suite.skip_all("the program has a runtime built in")
    tap = suite.Tap()
    handlers = {}
    with suite.scratch() as folder:
        source = suite.write(folder + "/sanitized.c", SOURCE)
        for kind, compiler, name in KINDS:
            what = "%s, -fsanitize=%s" % (compiler[0], kind)
            runtime = runtime_of(compiler, name)
            if runtime is None:
                tap.skip(what, "%s has no %s" % (compiler[0], name))
                continue
            started = suite.run(["true"], env={"LD_PRELOAD": runtime})
            path = "%s/%s-%s.so" % (folder, compiler[0].rpartition("/")[2], kind)
            suite.build(source, path, "-g", "-fsanitize=" + kind, compiler=compiler)
            if started.code != 0:  # older ones do not bear with where a newer kernel maps
                result = suite.conform("--handler=" + path, *SOME)
                tap.point(result.code in (CONFORMANT, CANNOT_LOAD), what + ": as well as it can be",
                          result)
                continue
            handlers.setdefault(kind, path)
            judged(tap, what, kind, compiler, "--handler=" + path)
        if "address" in handlers:
            modules(tap, folder, handlers["address"])
            told(tap, runtime_of(*KINDS[0][1:]))
        refused(tap, folder, handlers)
        allocators(tap, folder)
    tap.end()


if __name__ == "__main__":
    main()
