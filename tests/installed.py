# SPDX-License-Identifier: BSD-3-Clause
"""What make install makes works where it is, under DESTDIR, and after it was moved as a whole: the
program takes its handlers, profiles and suppressions from beside itself.
"""

import glob
import os
import re
import shlex
import shutil

import suite

# Each is broken in its place, and the complaint names the file.
SUPPRESSIONS = "share/conform/memcheck.supp"
PROFILE = "share/conform/profiles/numpy-1.22.trace"

HANDLER = """
#include <stdlib.h>
#include <nep49.h>
static void *m(void *c, size_t n) { (void)c; return malloc(n); }
static void *z(void *c, size_t n, size_t e) { (void)c; return calloc(n, e); }
static void *r(void *c, void *p, size_t n) { (void)c; return realloc(p, n ? n : 1); }
static void f(void *c, void *p, size_t n) { (void)c; (void)n; free(p); }
NEP49_EXPORT PyDataMem_Handler nep49_handler = {"mine", 1, {NULL, m, z, r, f}};
"""


def make(*arguments):
    """In the build tree, without what a make that runs the tests leaves to those under it."""
    plain = {name: "" for name in ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "TESTS")}
    return suite.run([os.environ.get("MAKE", "make"), "-s", *arguments], cwd=suite.BUILD,
                     env=plain, timeout=300)


def prefix_in(folder):
    """The folder above bin, wherever configure said that it would be."""
    programs = glob.glob(os.path.join(folder, "**", "bin", "conform"), recursive=True)
    return os.path.dirname(os.path.dirname(programs[0])) if programs else folder


def broken(path, prefix, *arguments):
    """What is said where that file of the installation is no such file."""
    path = os.path.join(prefix, path)
    with open(path, "rb") as file:
        whole = file.read()
    suite.write(path, "this is neither a trace nor a suppression\n")
    result = suite.run([os.path.join(prefix, "bin", "conform"), "-H", "aligned", *arguments])
    suite.write(path, whole)
    return result, os.path.realpath(path) in " ".join((result.stdout + result.stderr).split())


def works(tap, prefix, where):
    conform = os.path.join(prefix, "bin", "conform")
    listed = suite.run([conform, "handlers"])
    tap.point(listed.code == 0 and listed.stdout == suite.conform("handlers").stdout,
              where + ": all handlers are found", listed)
    module, = glob.glob(os.path.join(prefix, "**", "nep49", "__init__.py"), recursive=True)
    known = suite.run([suite.PYTHON, "-c", "import nep49; print(*nep49.handlers(), sep='\\n')"],
                      env={"PYTHONPATH": os.path.dirname(os.path.dirname(module))})
    tap.point(known.stdout == listed.stdout, where + ": nep49 knows the same handlers", known)
    result = suite.run([conform, "--handler", "aligned", "--run", "malloc.*"])
    path = os.path.realpath(glob.glob(os.path.join(prefix, "lib*", "**", "aligned.so"),
                                      recursive=True)[0])
    tap.point(result.code == suite.CONFORMANT and path in result.stdout,
              where + ": a handler of its own is tried", result)
    result = suite.run([conform, "--handler", "aligned", "--run", "runtime.*"])
    page = glob.glob(os.path.join(os.path.realpath(prefix), "**", "numpy-defects", "defects.md"),
                     recursive=True)
    told = re.search(r"about NumPy itself, not counted; --verbose or (.*)", result.stdout)
    tap.point(told and [told.group(1)] == page, where + ": its page of NumPy's defects is named",
              (page, result))
    result, named = broken(PROFILE, prefix, "--run", "profile.numpy-1.22")
    tap.point(result.code == suite.HARNESS_BROKE and named,
              where + ": a profile of its own is replayed", result)
    if not os.environ["VALGRIND"]:
        tap.skip(where + ": memcheck's suppressions are its own",
                 "install valgrind, and configure again")
        return
    result, named = broken(SUPPRESSIONS, prefix, "--memcheck", "--run", "malloc.alignment")
    tap.point(result.code != suite.CONFORMANT and named,
              where + ": memcheck's suppressions are its own", result)


PROJECTS = {
    "meson.build": """project('mine', 'c')
shared_module('mine', 'mine.c', dependencies: dependency('nep49', version: '>=0.1'))
""",
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.10...4.0)
project(mine C)
find_package(nep49 0.1 REQUIRED CONFIG)
add_library(mine MODULE mine.c)
target_link_libraries(mine PRIVATE nep49::nep49)
""",
}


def is_found(tap, prefix):
    """The header, by each way that build systems look for one; in the folder of mine.c."""
    path = {"PKG_CONFIG_PATH": os.path.join(prefix, "share", "pkgconfig")}
    said = suite.run([os.environ.get("PKG_CONFIG", "pkg-config"), "--cflags", "nep49"], env=path)
    flags = shlex.split(said.stdout)
    built = suite.run([*suite.COMPILER, "-shared", "-fPIC", *flags, "-o", "by-pc.so", "mine.c"])
    tap.point(said.code == 0 and flags and built.code == 0, "pkg-config finds the header",
              (said, built))
    path["PKG_CONFIG_PATH"] += "".join(":" + each for each in glob.glob(os.path.join(
        prefix, "lib*", "**", "pkgconfig"), recursive=True))
    said = [suite.run([os.environ.get("PKG_CONFIG", "pkg-config"), *words, "conform"], env=path)
            for words in (["--variable=conform"], ["--variable=handlers"],
                          ["--variable=fuzz_handler"], ["--libs-only-L"], ["--libs-only-l"])]
    program, handlers, target, folder, libraries = (
        " ".join(shlex.split(each.stdout)) for each in said)
    there = [program, handlers + "/aligned.so", target, folder[2:] + "/libconform-fuzz.a"]
    tap.point(all(map(os.path.exists, there)) and libraries == "-lconform-fuzz -lz",
              "and the program, its handlers and what fuzzers are linked with", (there, said))
    for name, contents in PROJECTS.items():
        suite.write(name, contents)
    for tool, commands, environment in (
            ("meson", (["meson", "setup", "by-meson"], ["meson", "compile", "-C", "by-meson"]),
             path),
            ("cmake", (["cmake", "-B", "by-cmake", "."], ["cmake", "--build", "by-cmake"]),
             {"CMAKE_PREFIX_PATH": prefix})):
        if not shutil.which(tool):
            tap.skip(tool + " finds the header", "install " + tool)
            continue
        results = [suite.run(command, env=environment) for command in commands]
        tap.point(all(result.code == 0 for result in results), tool + " finds the header",
                  "\n".join(str(result) for result in results))


def in_its_environment(tap, prefix):
    """Installed in a virtual environment that is not active, it takes the Python of that."""
    os.environ.pop("VIRTUAL_ENV", None)
    made = suite.run([suite.PYTHON, "-m", "venv", "--without-pip", prefix])
    packages = suite.run([suite.PYTHON, "-c", "import os, numpy; "
                          "print(os.path.dirname(os.path.dirname(numpy.__file__)))"]).stdout
    for folder in glob.glob(os.path.join(prefix, "lib", "python*", "site-packages")):
        suite.write(os.path.join(folder, "numpy.pth"), packages)
    python = os.path.join(prefix, "bin", "python3")
    result = suite.run([os.path.join(prefix, "bin", "conform"), "-H", "./mine.so", "--run",
                        "abi.version"], env={"PATH": "/usr/bin:/bin"})
    tap.point(made.code == 0 and result.code == suite.CONFORMANT and "(%s)" % python
              in " ".join(result.stdout.split()), "the Python of its own environment", result)


def main():
    tap = suite.Tap()
    with suite.scratch() as folder:
        destination = os.path.join(folder, "destination")
        result = make("install", "DESTDIR=" + destination)
        if not tap.point(result.code == 0, "make install DESTDIR=", result):
            tap.end()
        prefix = prefix_in(destination)
        works(tap, prefix, "in place")
        result = make("installcheck", "DESTDIR=" + destination)
        tap.point(result.code == 0, "make installcheck DESTDIR=", result)
        os.chdir(folder)
        suite.write("mine.c", HANDLER)
        built = suite.run([*suite.COMPILER, "-shared", "-fPIC", "-I", prefix + "/include", "-o",
                           "mine.so", "mine.c"])
        tap.point(built.code == 0, "a handler is compiled with the header that it has", built)
        moved = os.path.join(folder, "tools and more")
        os.rename(prefix, moved)
        works(tap, moved, "moved")
        is_found(tap, moved)
        os.symlink(os.path.join(moved, "bin", "conform"), "conform")
        result = suite.run(["./conform", "-H", "./mine.so", "--run", "abi.*"])
        tap.point(result.code == suite.CONFORMANT, "by a link to it", result)
        for path in glob.glob(os.path.join(moved, "lib*", "conform", "aligned.so")):
            os.rename(os.path.dirname(path), "gone")
        result = suite.run(["./conform", "handlers"])
        tap.point(result.code == suite.CANNOT_LOAD and not result.stdout
                  and re.match("conform: there are no reference handlers", result.stderr),
                  "without its handlers it says so", result)
        in_its_environment(tap, moved)
    tap.end()


if __name__ == "__main__":
    main()
