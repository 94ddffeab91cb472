# SPDX-License-Identifier: BSD-3-Clause
"""handlers/nep49.h is enough for a handler: in C from C99 on and in C++, with all warnings as
errors, beside NumPy's headers too.  What comes of it is conformant.
"""

import json
import os
import re
import shutil

import suite

FUNCTIONS = r"""
static void *m(void *c, size_t n) { (void)c; return malloc(n); }
static void *z(void *c, size_t n, size_t e) { (void)c; return calloc(n, e); }
static void *r(void *c, void *p, size_t n) { (void)c; return realloc(p, n ? n : 1); }
static void f(void *c, void *p, size_t n) { (void)c; (void)n; free(p); }
"""
CLAIMS = 'NEP49_EXPORT const char nep49_claims[] = "alignment=16";\n'
STRUCT = '{"mine", 1, {NULL, m, z, r, f}}'
DATA = FUNCTIONS + CLAIMS + "NEP49_EXPORT PyDataMem_Handler nep49_handler = %s;\n" % STRUCT
GETTER = FUNCTIONS + CLAIMS + """
static PyDataMem_Handler mine = %s;
PyDataMem_Handler *nep49_get_handler(const char **why) { *why = NULL; return &mine; }
""" % STRUCT

PLAIN = "#include <stdlib.h>\n#include \"nep49.h\"\n#include \"nep49.h\"\n"
ALONE = "#include \"nep49.h\"\n#include <stdlib.h>\n"
BESIDE_NUMPY = """#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <Python.h>
#include <numpy/ndarraytypes.h>
""" + PLAIN

TOO_EARLY = PLAIN + BESIDE_NUMPY.replace(PLAIN, "")

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
STRICT_C = STRICT + ["-Wmissing-prototypes", "-Wstrict-prototypes", "-Wc++-compat"]

# g++ has a warning without a name for a variable that is both extern "C" and initialised, so that
# the struct goes without -Werror there.
C = [("-std=" + std, STRICT_C, source) for std in ("c99", "c11", "gnu11", "c17")
     for source in (DATA, GETTER)]
CPP = [("-std=" + std, flags, source) for std in ("c++98", "c++11", "c++17")
       for flags, source in ((["-w"], DATA), (STRICT, GETTER))]


def headers_of_numpy():
    """Where Python's and NumPy's headers are, as flags."""
    code = ("import sysconfig, numpy; print(sysconfig.get_path('include'));"
            "print(numpy.get_include())")
    folders = suite.run([suite.PYTHON, "-c", code]).stdout.split()
    if not folders or not os.path.exists(os.path.join(folders[0], "Python.h")):
        return []
    return [flag for folder in folders for flag in ("-isystem", folder)]


def build(compiler, suffix, flags, source, name):
    """What the compiler said; the object has that name."""
    suite.write("mine" + suffix, source)
    command = list(compiler) + flags + ["-I", os.path.join(suite.SOURCE, "handlers"), "-shared",
                                        "-fPIC", "-o", name, "mine" + suffix]
    return suite.run(command)


def try_all(tap, compiler, suffix, rows):
    """What each is, its flags and its source; those that can be built have one start of conform."""
    built = {"./mine%d.so" % number: (what, build(compiler, suffix, flags, source,
                                                  "mine%d.so" % number))
             for number, (what, flags, source) in enumerate(rows)}
    handlers = [name for name, (_, result) in built.items() if result.code == 0]
    judged = suite.conform("--run=abi.*", "--run=malloc.alignment", "--jobs=1", "--json=-",
                           "--run=malloc.claimed-alignment", *("--handler=" + h for h in handlers))
    codes = {each["subject"]["argument"]: each["exit_code"] for each in json.loads(judged.stdout)}
    for name, (what, result) in built.items():
        tap.point(codes.get(name) == 0, what, result if result.code else judged)


def before_numpy(tap, compiler, suffix, numpy):
    """One error, and it says what to do; whoever goes without NumPy's headers says so."""
    name = " ".join(compiler)
    flags = ["-std=gnu11" if suffix == ".c" else "-std=c++17", *numpy]
    said = build(compiler, suffix, flags, TOO_EARLY + GETTER, "early.so").stderr
    errors = re.findall(r"^.*\berror:.*$", said, re.M)
    tap.point(len(errors) == 1 and "NumPy's headers before nep49.h" in errors[0],
              name + ", before NumPy's headers", said)
    result = build(compiler, suffix, flags + ["-DNEP49_WITHOUT_NUMPY"], PLAIN + GETTER, "no.so")
    tap.point(result.code == 0, name + ", where NumPy's headers are found and not used", result)


def main():
    tap = suite.Tap()
    numpy = headers_of_numpy()
    compilers = [(suite.COMPILER, ".c", C)]
    for name in "g++", "clang++":
        if shutil.which(name):
            compilers.append(([name], ".cc", CPP))
        else:
            tap.skip("as C++, by " + name, "install %s" % name.replace("clang++", "clang"))
    with suite.scratch(enter=True):
        for compiler, suffix, rows in compilers:
            name = " ".join(compiler)
            tried = [("%s %s, %s" % (name, standard,
                                     "a struct" if source is DATA else "a function"),
                      [standard] + flags, PLAIN + source) for standard, flags, source in rows]
            standard = "-std=gnu11" if suffix == ".c" else "-std=c++17"
            tried.append((name + ", before any other header", [standard] + STRICT, ALONE + GETTER))
            if numpy:
                tried.append((name + ", behind NumPy's headers", [standard] + STRICT + numpy,
                              BESIDE_NUMPY + GETTER))
                before_numpy(tap, compiler, suffix, numpy)
            else:
                tap.skip(name + ", behind NumPy's headers", "install Python's headers")
            try_all(tap, compiler, suffix, tried)
    tap.end()


main()
