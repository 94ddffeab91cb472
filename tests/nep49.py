# SPDX-License-Identifier: BSD-3-Clause
"""The Python package nep49: what it puts in force is in force, here and nowhere else, and what will
not do is told in one line.
"""

import json
import os
import re

import suite

HANDLERS = os.path.abspath(os.path.join(suite.BUILD, "handlers"))
PACKAGE = os.path.abspath(os.path.join(suite.SOURCE, "python"))
BEGIN = """
import asyncio, contextvars, gc, sys, threading
import numpy as np
import nep49

def name():
    return nep49.handler_of(np.empty(100)).name

usual = name()
"""
# Each has to print True and nothing else.
PROGRAMS = {
    "use: in force inside, and not behind": """
with nep49.use("aligned", alignment=4096) as handler:
    array = np.empty(10)
    print(array.ctypes.data % 4096 == 0 and nep49.handler_of(array) == ("aligned", 1,
          "alignment=4096", None) and handler.claims == "alignment=4096" and name() == "aligned"
          and name() != usual and usual == "default_allocator")
""",
    "use: another one inside, and the first again": """
with nep49.use("aligned", alignment=4096):
    with nep49.use("aligned", alignment=64):
        inner = nep49.handler_of(np.empty(10)).claims
    outer = nep49.handler_of(np.empty(10)).claims
print((inner, outer, name()) == ("alignment=64", "alignment=4096", usual))
""",
    "use: not behind an exception": """
try:
    with nep49.use("arena"):
        raise ValueError(name())
except ValueError as error:
    print(str(error) == "arena" and name() == usual)
""",
    "install: from here on": """
handler = nep49.install("cache")
print(name() == handler.name == "cache" and nep49.load("cache") is handler)
""",
    "an array outlives what it was made with": """
with nep49.use("guard"):
    array = np.arange(1000)
gc.collect()
array.resize(5000, refcheck=False)
print(array[999] == 999 and array[1000:].sum() == 0 and nep49.handler_of(array).name == "guard")
""",
    "each task has its own": """
async def one(which, turns):
    with nep49.use(which):
        for _ in range(turns):
            await asyncio.sleep(0)
            if name() != which:
                return False
    return name() == usual

async def both():
    return await asyncio.gather(one("aligned", 5), one("cache", 9))

print(all(asyncio.run(both())) and name() == usual)
""",
    "a thread that runs in a copy of the context has it": """
seen = []
with nep49.use("aligned"):
    thread = threading.Thread(target=contextvars.copy_context().run,
                              args=(lambda: seen.append(name()),))
    thread.start()
    thread.join()
print(seen == ["aligned"])
""",
    "handler_of: a view has no memory of its own": """
array = np.empty(10)
print(nep49.handler_of(array[2:]) == (None,) * 4 and nep49.handler_of(array) == (usual, 1, None,
      None))
""",
    "statistics: live blocks and bytes, the peak, and how many were made": """
handler = nep49.load("trace")
with handler.use():
    arrays = [np.empty(1000, "u1") for _ in range(5)]
first = handler.statistics()
del arrays[2:]
second = nep49.handler_of(arrays[0]).statistics
print(first == (5, 5000, 5000, 5) and second == (2, 2000, 5000, 5))
""",
    "statistics: None for what it does not count, and where it counts nothing": """
with nep49.use("arena") as handler:
    arrays = [np.empty(n, "u1") for n in (10, 100000, 3000000)]
    threads = [threading.Thread(target=contextvars.copy_context().run,
                                args=(lambda: arrays.append(np.empty(9)),)) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
print(handler.statistics() == (6, None, None, None) and nep49.load("cache").statistics() is None)
""",
    "arena: says how many outlive it": """
import warnings
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    with nep49.arena(size="64K"):
        gone = [np.empty(100) for _ in range(1000)]
        del gone
    quiet = len(said)
    with nep49.arena(size="64K"):
        stays = np.empty(100), np.empty(1 << 20)
    with nep49.arena(size="64K"):
        gone = np.empty(1)
        del gone
text = ["%s:%d: %s" % (w.filename, w.lineno, w.message) for w in said]
print(quiet == 0 and text == ["<string>:%d: 2 of the arena's blocks outlive it" % 18])
""",
    "shm: another process attaches an array, and both see what is written": """
import subprocess
with nep49.use("shm"):
    array = np.arange(100000, dtype="f4")
name = nep49.shm.name_of(array)
there = "import sys, numpy as np, nep49; a = nep49.shm.attach(sys.argv[1], 'f4', (100, 1000));"
there += "print(a.sum(dtype='f8')); a[3] = 7"
seen = subprocess.run([sys.executable, "-c", there, name], capture_output=True, text=True)
print(float(seen.stdout) == 4999950000 and (array[3000:4000] == 7).all() and array[4001] == 4001)
""",
    "shm: what is attached outlives the array, and the name does not": """
with nep49.use("shm"):
    array = np.full(100000, 3)
name = nep49.shm.name_of(array)
here = nep49.shm.attach(name, array.dtype)
view, size = here[5:], here.size
del array, here
gc.collect()
try:
    nep49.shm.attach(name)
    told = "another name"  # as long as somebody has it
except FileNotFoundError:
    told = "gone"
kept = int(view.sum()) == 3 * (size - 5)
del view
gc.collect()
try:
    nep49.shm.attach(name)
except FileNotFoundError:
    print(kept and size == 100000)
""",
    "shm: what has no name, and what is none": """
def said(function, *arguments):
    try:
        return function(*arguments)
    except ValueError as error:
        return str(error)
with nep49.use("shm"):
    array, small = np.zeros(100000), np.zeros(10)
name, why = nep49.shm.name_of(array), "the array is not a shared one: "
print(all(said(nep49.shm.name_of, each).startswith(why)
          for each in (small, np.zeros(100000), array[8192:]))
      and said(nep49.shm.attach, "nobody") == "'nobody' is not the name of a shared array"
      and said(nep49.shm.attach, name, "f8", 100001) ==
          "800000 bytes are shared by that name, and 800008 are asked for")
""",
    "a handler that was loaded takes no options": """
try:
    nep49.use(nep49.load("aligned"), alignment=64)
except TypeError as error:
    print("takes no options" in str(error))
""",
    "an option that it has not": """
try:
    nep49.load("aligned", size=3)
except TypeError as error:
    print(str(error) == "aligned takes no size; it takes alignment")
""",
}
# What is loaded, and a part of what it says.
REFUSED = {
    "nowhere": "there is no handler called nowhere (aligned, arena, ",
    "./nowhere.so": "cannot open shared object file",
    "./broken.so": "invalid ELF header",
    "./empty.so": "has neither nep49_handler nor nep49_get_handler",
    "./version.so": "its version is 2, and NumPy knows 1",
    "./missing.so": "it has no realloc and no free",
    "./name.so": "its name has no end, or is not UTF-8",
    "./getter.so": "no room in here",
}
SOURCE = """
#include <stdlib.h>
#include <nep49.h>
static void *m(void *c, size_t n) { (void)c; return malloc(n); }
static void *z(void *c, size_t n, size_t e) { (void)c; return calloc(n, e); }
static void *r(void *c, void *p, size_t n) { (void)c; return realloc(p, n ? n : 1); }
static void f(void *c, void *p, size_t n) { (void)c; (void)n; free(p); }
"""
OBJECTS = {
    "empty": "int nothing;",
    "version": 'NEP49_EXPORT PyDataMem_Handler nep49_handler = {"v", 2, {0, m, z, r, f}};',
    "missing": 'NEP49_EXPORT PyDataMem_Handler nep49_handler = {"v", 1, {0, m, z, 0, 0}};',
    "name": 'NEP49_EXPORT PyDataMem_Handler nep49_handler = {"\\xff", 1, {0, m, z, r, f}};',
    "getter": 'NEP49_EXPORT PyDataMem_Handler *nep49_get_handler(const char **why)\n'
              '{ *why = "no room in here"; return NULL; }',
    "dirty": 'static void *d(void *c, size_t n, size_t e) { (void)c; return malloc(n * e); }\n'
             'NEP49_EXPORT PyDataMem_Handler nep49_handler = {"dirty", 1, {0, m, d, r, f}};',
    "mine": 'NEP49_EXPORT PyDataMem_Handler nep49_handler = {"mine", 1, {0, m, z, r, f}};\n'
            'NEP49_EXPORT const char nep49_claims[] = "alignment=16";',
}


def build():
    for name, text in OBJECTS.items():
        suite.write(name + ".c", (SOURCE if name != "empty" else "") + text + "\n")
        suite.build(name + ".c", name + ".so", "-w", "-I", os.path.join(suite.SOURCE, "handlers"))
    suite.write("broken.so", "no object at all\n" * 1000)


def python(*arguments, **more):
    return suite.run([suite.PYTHON, *arguments],
                     env={"PYTHONPATH": PACKAGE, "NEP49_HANDLERS": HANDLERS,
                          "PYTHONDONTWRITEBYTECODE": "yes", **more})


def refused(tap):
    lines = ["for each in sys.argv[1:]:", "    try:", "        nep49.load(each)",
             "    except nep49.HandlerError as error:", "        print(error)"]
    result = python("-c", BEGIN + "\n".join(lines), *REFUSED)
    said = result.stdout.splitlines()
    for (name, part), line in zip(REFUSED.items(), said + [""] * len(REFUSED)):
        tap.point(part in line, "%s: one line says why not" % name, line)
    tap.point(result.code == 0 and len(said) == len(REFUSED), "and nothing else", result)


def tried(tap):
    """By conform, where that is installed, before it is in force."""
    installed = {"PATH": os.path.dirname(suite.CONFORM) + ":" + os.environ["PATH"]}
    program = ("import sys, nep49\ntry:\n    print(nep49.load(sys.argv[1], tried=len(sys.argv) < 3)"
               ".name)\nexcept nep49.HandlerError as error:\n    print(error)")
    for what, arguments, part in (
            ("dirty", ["./dirty.so"], "dirty.so: it breaks calloc.zeroed"),
            ("dirty, untried", ["./dirty.so", "no"], "dirty"), ("mine", ["./mine.so"], "mine")):
        result = python("-c", program, *arguments, **installed)
        tap.point(result.code == 0 and part in result.stdout and result.stdout.count("\n") == 1,
                  what + ": conform tries it first", result)


def script(tap):
    with open("script.py", "w") as file:
        file.write("import sys, numpy, nep49\n"
                   "print(nep49.handler_of(numpy.empty(9)), sys.argv[1:], __name__)\n")
    result = python("-m", "nep49", "--handler", "aligned", "--option", "alignment=256",
                    "script.py", "--one", "two")
    tap.point(result.code == 0 and result.stdout == "Made(name='aligned', version=1, claims="
              "'alignment=256', statistics=None) ['--one', 'two'] __main__\n",
              "python -m nep49 runs a script", result)
    result = python("-m", "nep49", "--handler", "nowhere", "script.py")
    tap.point(result.code == 2 and result.stderr.startswith("nep49: there is no handler called "),
              "or says why not", result)


def documented(tap):
    """Each option is in the table of the page, and the variable behind it where handlers are."""
    with open(os.path.join(suite.SOURCE, "docs", "python.md")) as file:
        rows = dict(re.findall(r"^\| `(\w+)` \| (`[\w`, ]+`) \|$", file.read(), re.M))
    with open(os.path.join(suite.SOURCE, "docs", "handlers.md")) as file:
        page = file.read()
    result = python("-c", "import nep49, json; print(json.dumps(nep49.OPTIONS))")
    options = json.loads(result.stdout)
    tap.point({name: ", ".join("`%s`" % key for key in keys) for name, keys in options.items()}
              == rows, "docs/python.md has the options", (options, rows))
    unknown = [variable for keys in options.values() for variable in keys.values()
               if "`%s`" % variable not in page]
    tap.point(not unknown, "docs/handlers.md has their variables", unknown)


TESTS = """
import ctypes
import numpy as np
import pytest
import nep49

def test_sound(tmp_path):
    array = np.ones(1000)
    assert array.sum() == 1000 and nep49.handler_of(array).name == "guard"

def test_is_wrong():
    assert 1 == 2

def test_overruns():
    array = np.ones(512)
    ctypes.memset(array.ctypes.data + array.nbytes, 1, 8)

def test_writes_a_byte_behind():
    array = np.ones(5, "u1")
    ctypes.memset(array.ctypes.data + 5, 1, 1)

@pytest.mark.skip(reason="why not")
def test_skipped():
    pass
"""


def pytest_plugin(tap):
    """A test that its process does not survive is failed alone."""
    def run(*arguments):
        return suite.run([suite.PYTHON, "-B", "-m", "pytest", "-p", "nep49.pytest_plugin", "-q",
                          "-p", "no:cacheprovider", *arguments, "test_it.py"],
                         env={"PYTHONPATH": PACKAGE, "NEP49_HANDLERS": HANDLERS})

    if suite.run([suite.PYTHON, "-c", "import pytest"]).code != 0:
        tap.skip("the pytest plugin", "there is no pytest")
        return
    suite.write("test_it.py", TESTS)
    result = run("--nep49-handler=guard")
    tap.point(result.code == 1 and "3 failed, 1 passed, 1 skipped in" in result.stdout
              and re.search(r'_ test_overruns _+\nSIGSEGV under the handler guard\n'
                            r'(.*\n)+.*test_it.py", line 16 in test_overruns\n', result.stdout)
              and re.search(r'_ test_writes_a_byte_behind _+\nSIGABRT under', result.stdout)
              and "somebody wrote past its end" in result.stdout
              and "_pytest/" not in result.stdout, "each test under guard", result)
    for words, said in ((["--nep49-handler=none"], "--nep49-handler: "),
                        (["--nep49-option=a=b"], "--nep49-option goes with --nep49-handler")):
        result = run(*words)
        tap.point(result.code == 4 and said in result.stderr, " ".join(words), result)


def main():
    if suite.SANITIZED:
        suite.skip_all("a handler with a sanitizer wants a Python with one")
    tap = suite.Tap()
    with suite.scratch(enter=True):
        build()
        for what, program in PROGRAMS.items():
            result = python("-c", BEGIN + program)
            tap.point(result.code == 0 and result.stdout == "True\n" and not result.stderr, what,
                      result)
        result = python("-c", BEGIN + "nep49.install('./mine.so')\nprint(nep49.handler_of("
                        "np.empty(9)))")
        tap.point(result.stdout == "Made(name='mine', version=1, claims='alignment=16', "
                  "statistics=None)\n",
                  "anybody's handler, by its path", result)
        refused(tap)
        tried(tap)
        script(tap)
        pytest_plugin(tap)
        documented(tap)
    tap.end()


main()
