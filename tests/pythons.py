# SPDX-License-Identifier: BSD-3-Clause
"""One build in every interpreter of this machine that has NumPy: the verdicts are the same.

Those are python3 and python3.N of PATH, what lies beside them as pyenv has it, and what PYTHONS
names, paths with colons between.  One that conform is not for has to be refused in one line.  One
that has all of Python in its executable is tried without the libpython that may lie beside it, too.
"""

import glob
import json
import os
import re
import shutil
import unittest.mock

import suite
from suite import CONFORMANT, FAULTY, NOT_CONFORMANT, USAGE

# What is read of each, by itself.
ASK = """
import json, os, sys, sysconfig
try:
    import numpy
except ImportError:
    numpy = None
print(json.dumps({
    "path": sys.executable, "prefix": sys.prefix, "version": list(sys.version_info[:3]),
    "free": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "implementation": sys.implementation.name, "numpy": numpy and numpy.__version__,
    "packages": numpy and os.path.dirname(os.path.dirname(numpy.__file__)),
    "library": sysconfig.get_path("stdlib"),
    "is_whole": "libpython" not in open("/proc/self/maps").read()}))
"""

# Of each kind of fixture some, of those that lean on Python or NumPy.
SOME = ["abi.*", "calloc.overflow", "free.keeps-pending-exception", "numpy.finalises",
        "numpy.installs", "numpy.name", "owndata.*", "realloc.keeps-contents",
        "threads.no-gil-needed"]
MUTANTS = {
    "calloc_wraps": "calloc.overflow",
    "free_clears_exception": "free.keeps-pending-exception",  # which calls Python itself
}

PROGRAM = """
import os, sys, numpy
array = numpy.arange(9)
array.resize(99, refcheck=False)
print(sys.executable, numpy.__version__, getattr(sys, "_is_gil_enabled", lambda: True)(), sys.argv,
      os.readlink("/proc/self/exe"),
      [each for each in os.environ.items() if each[0] in ("LD_PRELOAD", "CONFORM_STATIC_TLS")])
"""

# An executable that tells that it was started.  Whatever embeds Python calls more than the first.
TELLS = """
#include <fcntl.h>
int Py_BytesMain(int argc, char **argv);
int Py_IsInitialized(void);
int main(int argc, char **argv)
{
    creat(MARK, 0600);
    return MORE Py_BytesMain(argc, argv);
}
"""

# Where gdb stops.
SHOWN = "conform_fail (expected="


def candidates():
    folders = os.environ["PATH"].split(os.pathsep)
    beside = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(suite.PYTHON))))
    for folder in folders + glob.glob(os.path.join(beside, "*", "bin")):
        yield from sorted(glob.glob(os.path.join(folder, "python3")))
        yield from sorted(glob.glob(os.path.join(folder, "python3.*[0-9t]")))
    yield from filter(None, os.environ.get("PYTHONS", "").split(os.pathsep))


def interpreters():
    """What each says of itself, told once."""
    seen = set()
    for path in candidates():
        result = suite.run([path, "-B", "-c", ASK])
        if result.code != 0:
            continue
        python = json.loads(result.stdout)
        identity = os.path.realpath(python["path"]), python["prefix"]
        if identity not in seen:
            seen.add(identity)
            yield python


def without_libpython(python, folder):
    """The same, unpacked elsewhere and with no libpython there; the path of an environment with its
    packages."""
    name = os.path.basename(python["library"])
    library = os.path.join(folder, "lib", name)
    environment = os.path.join(folder, "environment")
    packages = os.path.join(environment, "lib", name)
    for each in os.path.join(folder, "bin"), library, os.path.join(environment, "bin"), packages:
        os.makedirs(each)
    shutil.copy(os.path.realpath(python["path"]), os.path.join(folder, "bin", name))
    for each in os.listdir(python["library"]):
        source, target = os.path.join(python["library"], each), os.path.join(library, each)
        if each.startswith("_sysconfigdata"):
            shutil.copyfile(source, target)
            with open(target, "a") as file:
                file.write("\nbuild_time_vars['LIBDIR'] = '/nowhere'\n")
        elif each != "site-packages":
            os.symlink(source, target)
    suite.write(os.path.join(environment, "pyvenv.cfg"), "home = %s/bin\n" % folder)
    os.symlink(python["packages"], os.path.join(packages, "site-packages"))
    path = os.path.join(environment, "bin", "python3")
    os.symlink(os.path.join(folder, "bin", name), path)
    return path


def by_its_files(tap, python, name, folder):
    """One whose files tell all is not started, and the report is the same as if it were asked."""
    words = "import sysconfig as s; print(*map(s.get_config_var, ('LIBDIR', 'INSTSONAME')))"
    libdir, library = suite.run([python["path"], "-c", words]).stdout.split()
    if not os.path.exists(os.path.join(libdir, library)):
        tap.skip(name + " is not started", "there is no %s in %s" % (library, libdir))
        return
    version = os.path.basename(python["library"])
    packages = os.path.join(folder, "environment", "lib", version)
    for each in "bin", "lib", "environment/bin", packages:
        os.makedirs(os.path.join(folder, each))
    os.symlink(os.path.join(libdir, library), os.path.join(folder, "lib", library))
    os.symlink(python["library"], os.path.join(folder, "lib", version))
    os.symlink(python["packages"], os.path.join(packages, "site-packages"))
    os.symlink("../../bin/python3", os.path.join(folder, "environment", "bin", "python3"))
    suite.write("environment/pyvenv.cfg", "home = %s/bin\n" % folder)
    suite.write("tells.c", TELLS)
    for each in [each for each in os.environ if re.match("PYTHON.|LD_LIBRARY_PATH", each)]:
        del os.environ[each]
    reports = []
    for what, started, more, environment in (
            ("is not started", False, "", {}),
            ("is asked if a variable is set", True, "", {"PYTHONHASHSEED": "0"}),
            ("is asked if it embeds Python", True, "Py_IsInitialized() ||", {})):
        suite.build("tells.c", os.path.join(folder, "bin", "python3"), "-DMORE=" + more,
                    '-DMARK="%s/mark"' % folder, "-fPIE", "-pie", "lib/" + library,
                    "-Wl,-rpath,%s/lib" % folder, shared=False)
        result, report = verdicts(os.path.join(folder, "environment", "bin", "python3"),
                                  "aligned", "abi.loads", **environment)
        tap.point(result.code == CONFORMANT and os.path.exists("mark") == started,
                  "%s %s" % (name, what), result)
        reports.append(report.get("environment"))
        if os.path.exists("mark"):
            os.remove("mark")
    tap.point(reports[0] == reports[1] == reports[2], name + ": the report is the same", reports)


def number(python):
    return "%d.%d.%d" % tuple(python["version"]) + "t" * python["free"]


def verdicts(python, handler, *properties, **env):
    arguments = ["--run=" + glob for glob in properties]
    result = suite.conform("--handler", handler, "--python", python, "--json=-", *arguments,
                           env=env)
    return result, json.loads(result.stdout) if result.stdout else {}


def in_one(tap, python, name, programs):
    """`programs` are the files that exec may run in."""
    path = python["path"]
    for handler in ("aligned", "shift_header"):
        result, report = verdicts(path, handler, *SOME)
        environment = report.get("environment", {})
        tap.point(result.code == CONFORMANT, "%s: %s" % (name, handler), result)
        told = [environment.get(each) for each in ("executable", "python", "numpy")]
        tap.point(told == [path, number(python), python["numpy"]]
                  and environment["gil"] is not python["free"], name + ": which it is", environment)
    for mutant, property_id in MUTANTS.items():
        result, report = verdicts(path, os.path.join(FAULTY, "faulty.so") + ":" + mutant,
                                  property_id)
        bad = [p["id"] for p in report.get("properties", ()) if p["verdict"] == "FAIL"]
        tap.point(result.code == NOT_CONFORMANT and bad == [property_id], name + ": " + mutant,
                  result)
    result = suite.conform("exec", "--handler=aligned", "--python", path, "--", "-c", PROGRAM)
    told = [[path, python["numpy"], str(not python["free"]), "['-c']",
             os.path.realpath(each), "[]"] for each in programs]
    tap.point(result.code == 0 and result.stdout.split() in told
              and "no violation" in result.stderr, name + ": exec", result)
    if python["free"]:
        tap.point("audited without the GIL" in result.stderr, name + ": exec says so", result)
        for word in "1", "0":
            result, report = verdicts(path, "aligned", "abi.*", PYTHON_GIL=word)
            tap.point(result.code == CONFORMANT
                      and report["environment"]["gil"] == (word == "1"),
                      "%s: PYTHON_GIL=%s" % (name, word), result)


def inside(tap, path, name):
    """What is another matter where conform is preloaded into an interpreter's executable."""
    result = suite.conform("exec", "--handler=aligned", "--python", path, "--", "-c", PROGRAM,
                           env={"LD_PRELOAD": "libdl.so.2"})
    tap.point("[('LD_PRELOAD', 'libdl.so.2')]" in result.stdout,
              name + ": what else is preloaded stays so", result)
    if shutil.which("gdb") is None:
        tap.skip(name + ": a debugger stops at the verdict", "install gdb")
        return
    words = "--handler", os.path.join(FAULTY, "faulty.so") + ":calloc_wraps", "--python", path
    suite.conform(*words, "--run=calloc.overflow", "--json=r.json")
    command = suite.load("r.json")["properties"][0].get("reproduce", "")
    for result in (suite.conform("debug", "calloc.overflow", *words),
                   suite.run(["sh", "-c", command.replace("gdb", "gdb -batch -nx", 1)])):
        tap.point(SHOWN in result.stdout, name + ": a debugger stops at the verdict", result)


def main():
    tap = suite.Tap()
    whole = 0
    for python in interpreters():
        version, numpy = tuple(python["version"]), python["numpy"]
        name = "Python %s%s" % (number(python), ", NumPy " + numpy if numpy else "")
        new = numpy and tuple(int(part) for part in numpy.split(".")[:2]) >= (1, 22)
        if python["implementation"] != "cpython" or version < (3, 9) or not new:
            result = suite.conform("--handler=aligned", "--python", python["path"])
            tap.point(result.code == USAGE and result.stderr.count("\n") == 1
                      and python["path"] in result.stderr, name + " is refused", result)
            continue
        is_whole = python["is_whole"] and not suite.SANITIZED  # its runtime is not preloaded
        if suite.LONG or os.path.realpath(python["path"]) == os.path.realpath(suite.PYTHON):
            in_one(tap, python, name, [suite.CONFORM] + [python["path"]] * is_whole)
        if os.path.realpath(python["path"]) == os.path.realpath(suite.PYTHON):
            with suite.scratch(enter=True) as folder, unittest.mock.patch.dict(os.environ):
                by_its_files(tap, python, name, folder)
        if not is_whole:
            continue
        whole += 1
        with suite.scratch(enter=True) as folder:
            path = without_libpython(python, folder)
            name += ", no libpython"
            in_one(tap, dict(python, path=path), name, [path])
            inside(tap, path, name)
    if whole == 0:
        tap.skip("an interpreter without libpython",
                 "install NumPy for one that has all of Python in its executable, as Debian's has")
    tap.end()


if __name__ == "__main__":
    main()
