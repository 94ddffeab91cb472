# SPDX-License-Identifier: BSD-3-Clause
"""Each project in examples/ is built and run as its README says, in a copy, and is CONFORMANT; its
files for CI hold what their schemas say.  make check does what is quick, make check-long all.
"""

import filecmp
import glob
import os
import re
import shutil
import sys

import suite

EXAMPLES = os.path.join(suite.SOURCE, "examples")
FAULTY, FOUND_BY = "calloc_wraps", "calloc.overflow"

# folder, programs and modules of Python's that it takes, whether it is quick, and what it is to
# print at the end; the commands are those of its README
PROJECTS = [
    ("c-make", ["make", "pkg-config"], [], True, "libmine.so: CONFORMANT"),
    ("c-meson", ["meson", "ninja", "pkg-config"], [], False, r"Ok: +1\b"),
    ("cpp-cmake", ["cmake", "c++"], [], False, "100% tests passed"),
    ("rust-cdylib", ["cargo"], [], False, "libmine.so: CONFORMANT"),
    ("cython", ["pkg-config"], ["Cython", "setuptools"], False, "mine:handler: CONFORMANT"),
    ("cffi", ["pkg-config"], ["cffi", "setuptools"], False, "mine:handler: CONFORMANT"),
    ("ctypes", ["make", "pkg-config"], [], False, "mine:handler: CONFORMANT"),
]


def prefix_in(folder):
    """What make install puts there for build systems, without the rest; and conform itself."""
    places = {"include": glob.glob(suite.SOURCE + "/handlers/nep49*.h"),
              "share/pkgconfig": [suite.BUILD + "/handlers/nep49.pc"],
              "share/cmake/nep49": glob.glob(suite.BUILD + "/handlers/nep49-config*.cmake")}
    prefix = os.path.join(folder, "prefix")
    for place, files in places.items():
        os.makedirs(os.path.join(prefix, place))
        for path in files:
            shutil.copy(path, os.path.join(prefix, place))
    return prefix


def environment(prefix):
    """That of somebody who has installed conform there."""
    plain = {name: "" for name in ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "TESTS")}
    path = os.pathsep.join([suite.BUILD, os.path.dirname(suite.PYTHON), os.environ["PATH"]])
    return dict(plain, PATH=path, PKG_CONFIG_PATH=prefix + "/share/pkgconfig",
                CMAKE_PREFIX_PATH=prefix, CARGO_NET_OFFLINE="true", CONFORM_FLAGS="")


def commands_of(folder):
    """Those of the README."""
    with open(os.path.join(EXAMPLES, folder, "README.md")) as file:
        return re.findall(r"^    (\S.*?)(?: {2,}#.*)?$", file.read(), re.M)


def missing(programs, modules):
    for name in programs:
        if not shutil.which(name):
            return "install " + name
    for name in modules:
        if suite.run([suite.PYTHON, "-c", "import " + name]).code != 0:
            return "install %s for this Python" % name
    return None


def is_conformant(tap, copy, variables, row):
    folder, programs, modules, quick, says = row
    what = folder + ": what its README says"
    if not (quick or suite.LONG):
        return
    lacks = missing(programs, modules)
    if lacks:
        tap.skip(what, lacks)
        return
    script = "set -e\n" + "\n".join(commands_of(folder))
    result = suite.run(["sh", "-c", script], cwd=os.path.join(copy, folder), env=variables,
                       timeout=600)
    tap.point(result.code == 0 and re.search(says, result.stdout), what, result)


def is_begun(tap, folder, variables):
    """init writes what is in examples/c-make, into a folder that is empty or not there."""
    source, new = os.path.join(EXAMPLES, "c-make"), os.path.join(folder, "new one")
    result = suite.conform("init", new)
    there = [os.path.relpath(os.path.join(at, name), new)
             for at, _, names in os.walk(new) for name in names]
    same = all(filecmp.cmp(os.path.join(source, name), os.path.join(new, name), False)
               for name in there)
    tap.point(result.code == 0 and same and set(there) == set(result.stdout.splitlines()[:-1])
              and "mine.c" in there, "init: the files of examples/c-make", (there, result))
    last = result.stdout.splitlines()[-1].replace("go on with: ", "")
    result = suite.run(["sh", "-c", last], env=dict(variables, CONFORM_FLAGS="--run=abi.*"))
    tap.point(result.code == 0 and "libmine.so: conformant" in result.stdout,
              "init: the command that it ends with", result)
    for name, words in ((new, "has something in it"), (new + "/mine.c", "is no folder"),
                        ("", "is empty"), (folder + "/no/such", "No such file")):
        result = suite.conform("init", name)
        tap.point(result.code == suite.USAGE and words in result.stderr and not result.stdout
                  and result.stderr.count("\n") == 1, "init: " + words, result)
    os.mkdir(folder + "/here")
    result = suite.conform("init", ".", cwd=folder + "/here")
    tap.point(result.code == 0 and os.path.exists(folder + "/here/mine.c"), "init .", result)


def is_judged_by_pytest(tap, copy, variables):
    """A sound handler passes, and of a faulty one that test fails which finds the fault."""
    if missing([], ["pytest"]):
        tap.skip("pytest", "install pytest for this Python")
        return
    sound, faulty = copy + "/c-make/libmine.so", suite.FAULTY + "/faulty.so:" + FAULTY
    runs = [(faulty, 1, "^FAILED .*" + re.escape("[%s]" % FOUND_BY))]
    if suite.LONG:
        runs.append((sound, 0, r"^\d+ passed, \d+ skipped in"))
    for handler, code, words in runs:
        result = suite.run([suite.PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                            "test_conform.py"], cwd=os.path.join(copy, "pytest"),
                           env=dict(variables, HANDLER=handler))
        tap.point(result.code == code and re.search(words, result.stdout, re.M),
                  "pytest: " + os.path.basename(handler), result)


def are_workflows(tap):
    """By the schemas that check-jsonschema brings along."""
    folder = os.path.join(EXAMPLES, "c-make")
    github, gitlab = folder + "/.github/workflows/conform.yml", folder + "/.gitlab-ci.yml"
    for name, path in (("vendor.github-workflows", github), ("vendor.gitlab-ci", gitlab)):
        if shutil.which("check-jsonschema"):
            result = suite.run(["check-jsonschema", "--builtin-schema", name, path])
            tap.point(result.code == 0, name, result)
        else:
            tap.skip(name, "pip install check-jsonschema")


def sources(folder):
    """conform as git would clone it, with what was changed here."""
    listed = suite.run(["git", "-C", suite.SOURCE, "ls-files", "-z"])
    for name in listed.stdout.split("\0") if listed.code == 0 else ():
        if os.path.isfile(os.path.join(suite.SOURCE, name)):
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            shutil.copy(os.path.join(suite.SOURCE, name), os.path.join(folder, name))
    return listed.code == 0


def is_fuzzed(tap, folder):
    """build.sh of oss-fuzz, in the environment that OSS-Fuzz makes, and what it leaves."""
    lacks = missing(["clang", "clang++", "git", "zip"], [])
    places = {name: os.path.join(os.path.abspath(folder), name) for name in ("SRC", "WORK", "OUT")}
    for path in places.values():
        os.makedirs(path)
    shutil.copytree(EXAMPLES + "/c-make", places["SRC"] + "/mine")
    if lacks or not sources(places["SRC"] + "/conform"):
        tap.skip("oss-fuzz: build.sh", lacks or "this is no clone of conform's repository")
        return
    flags = "-O1 -gline-tables-only -fsanitize=address -fsanitize=fuzzer-no-link"
    result = suite.run(
        ["sh", EXAMPLES + "/oss-fuzz/build.sh"], timeout=600,
        env=dict(places, CC="clang", CXX="clang++", CFLAGS=flags, CXXFLAGS=flags, MAKEFLAGS="",
                 LIB_FUZZING_ENGINE="-fsanitize=fuzzer", SANITIZER="address", PYTHON=suite.PYTHON,
                 FUZZING_ENGINE="libfuzzer", ARCHITECTURE="x86_64"))
    there = set(os.listdir(places["OUT"]))
    wanted = {"fuzz_mine" + end for end in ("", ".dict", ".options", "_seed_corpus.zip")}
    if not tap.point(result.code == 0 and there == wanted, "oss-fuzz: build.sh", result):
        return
    shutil.unpack_archive(places["OUT"] + "/fuzz_mine_seed_corpus.zip", places["WORK"] + "/seeds")
    result = suite.run(["./fuzz_mine", "-max_total_time=10", "-dict=fuzz_mine.dict",
                        "-malloc_limit_mb=1048576",
                        places["WORK"] + "/seeds"], cwd=places["OUT"], timeout=60)
    tap.point(result.code == 0 and "DONE" in result.stderr, "oss-fuzz: fuzz_mine finds nothing",
              result)


def main():
    tap = suite.Tap()
    wanted = sys.argv[1:]
    with suite.scratch() as folder:
        variables = environment(prefix_in(folder))
        copy = os.path.join(folder, "examples")
        shutil.copytree(EXAMPLES, copy)
        for row in PROJECTS:
            if not wanted or row[0] in wanted:
                is_conformant(tap, copy, variables, row)
        if suite.LONG and (not wanted or "oss-fuzz" in wanted):
            is_fuzzed(tap, os.path.join(folder, "fuzz"))
        if not wanted:
            is_begun(tap, folder, variables)
            is_judged_by_pytest(tap, copy, variables)
            are_workflows(tap)
    tap.end()


main()
