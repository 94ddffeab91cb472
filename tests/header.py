# SPDX-License-Identifier: BSD-3-Clause
"""handlers/nep49.h is enough for a handler: in C from C99 on and in C++, with all warnings as
errors, beside NumPy's headers too.  What comes of it is conformant.
"""

import os
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


def try_one(tap, compiler, what, suffix, flags, source):
    with open("mine" + suffix, "w") as file:
        file.write(source)
    command = list(compiler) + flags + ["-I", os.path.join(suite.SOURCE, "handlers"), "-shared",
                                        "-fPIC", "-o", "mine.so", "mine" + suffix]
    result = suite.run(command)
    if result.code == 0:
        result = suite.conform("--handler=./mine.so", "--run=abi.*", "--run=malloc.alignment",
                               "--run=malloc.claimed-alignment", "--jobs=1")
    tap.point(result.code == 0, what, result)


def main():
    tap = suite.Tap()
    numpy = headers_of_numpy()
    compilers = [(suite.COMPILER, ".c", C)]
    for name in "g++", "clang++":
        if shutil.which(name):
            compilers.append(([name], ".cc", CPP))
        else:
            tap.skip("as C++, by " + name, "install %s" % name.replace("clang++", "clang"))
    with suite.scratch() as folder:
        os.chdir(folder)
        for compiler, suffix, rows in compilers:
            name = " ".join(compiler)
            for standard, flags, source in rows:
                form = "a struct" if source is DATA else "a function"
                try_one(tap, compiler, "%s %s, %s" % (name, standard, form), suffix,
                        [standard] + flags, PLAIN + source)
            standard = "-std=gnu11" if suffix == ".c" else "-std=c++17"
            try_one(tap, compiler, name + ", before any other header", suffix,
                    [standard] + STRICT, ALONE + GETTER)
            if numpy:
                try_one(tap, compiler, name + ", behind NumPy's headers", suffix,
                        [standard] + STRICT + numpy, BESIDE_NUMPY + GETTER)
            else:
                tap.skip(name + ", behind NumPy's headers", "install Python's headers")
        os.chdir("..")
    tap.end()


if __name__ == "__main__":
    main()
