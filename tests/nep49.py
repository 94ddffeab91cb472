# SPDX-License-Identifier: BSD-3-Clause
"""The Python package nep49: what it installs is active here and nowhere else, and each wrong use is
reported in one line.
"""

import glob
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
    print(array.ctypes.data % 4096 == 0 and nep49.handler_of(array) is handler
          and handler.claims == "alignment=4096" and name() == "aligned" and nep49.current() is
          handler and name() != usual and usual == "default_allocator")
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
    "use: again, within itself, as a decorator, and a Handler in its place": """
def thrice():
    with one, one:
        inside.append(name())
    inside.append(name())
used, inside = nep49.use("aligned", alignment=512), []
for one in used, used.handler, nep49.arena(size="64K"):
    for _ in range(2):
        with one:
            thrice()
    inside.append(name())
used(lambda: inside.append(name()))()
print(inside == (["aligned"] * 4 + [usual]) * 2 + ["arena"] * 4 + [usual, "aligned"]
      and name() == usual and repr(used) == "nep49.use('aligned', alignment=512)"
      and repr(one) == "nep49.arena(size='64K')")
""",
    "use: one of it in several threads and tasks at once": """
used, seen = nep49.use("aligned"), []
def one():
    with used:
        barrier.wait()
        seen.append(name())
        barrier.wait()
    seen.append(name())
async def task(turns):
    with used:
        for _ in range(turns):
            await asyncio.sleep(0)
        seen.append(name())
    seen.append(name())
async def tasks():
    await asyncio.gather(task(5), task(2))
barrier = threading.Barrier(3)
threads = [threading.Thread(target=one) for _ in range(3)]
for each in threads:
    each.start()
for each in threads:
    each.join()
asyncio.run(tasks())
print(sorted(seen) == ["aligned"] * 5 + [usual] * 5 and name() == usual)
""",
    "use: left in another order than entered, as generators do": """
def generate(which):
    with nep49.use(which):
        yield
first, second = generate("aligned"), generate("cache")
next(first), next(second)
first.close()
between = name()
second.close()
print(between == "cache" and name() == usual)
""",
    "install: from here on, and what was active before": """
before = nep49.install("cache")
print(name() == nep49.current().name == "cache" and nep49.load("cache") is nep49.current()
      and before.name == usual and nep49.install("arena") == nep49.load("cache")
      and before.install().name == "arena" and name() == usual)
""",
    "default: NumPy's own": """
default = nep49.load("default")
nep49.install("cache")
with nep49.use("default"):
    inside = name()
nep49.install("default")
print(inside == name() == usual and default == nep49.current() == nep49.handler_of(np.empty(9))
      and default.path is None and default.claims == "" and default.statistics() is None
      and repr(default) == "<nep49.Handler default_allocator>")
""",
    "dir: only what is meant": """
print(dir(nep49) == sorted([*nep49.__all__, "__version__"]) and dir(nep49.shm) == nep49.shm.__all__)
""",
    "load: a path of any type, and a Handler": """
import pathlib
mine = nep49.load("./mine.so", tried=False)
print(mine is nep49.load(handler=pathlib.Path("mine.so"), tried=False) is nep49.load(b"./mine.so")
      is nep49.load(mine) is nep49.use(pathlib.Path("mine.so"), tried=False).handler)
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
    "handler_of: a view has that of the array that owns its memory": """
with nep49.use("cache"):
    array = np.arange(6.)
views = [array[2:], array.reshape(2, 3).T, np.asarray(memoryview(array)), array.view(np.matrix),
         np.frombuffer(array), np.lib.stride_tricks.as_strided(array[1:]), array.view("u1")]
others = [np.frombuffer(b"abc", "u1"), np.asarray(bytearray(9)),
          np.ctypeslib.as_array((nep49.ctypes.c_int * 3)())]
print({nep49.handler_of(each) for each in views} == {nep49.load("cache")}
      and {nep49.handler_of(each) for each in others} == {None})
""",
    "statistics: live blocks and bytes, the peak, and how many were made": """
handler = nep49.load("trace")
with handler.use():
    arrays = [np.empty(1000, "u1") for _ in range(5)]
first = handler.statistics()
del arrays[2:]
second = nep49.handler_of(arrays[0]).statistics()
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
    with nep49.arena(size="64K"): stays = np.empty(100), np.empty(1 << 20)
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
    "shm: whatever its dtype and shape, as a view of the whole array too": """
with nep49.use("shm"):
    array = np.zeros((200, 100), [("a", "i4"), ("b", "f8", (2,)), ("c", "S3")])
array["b"][3, 4] = 5
name = nep49.shm.name_of(array)
here = nep49.shm.attach(name, array.dtype, array.shape)
turned = nep49.shm.attach(name, array.dtype.descr, np.array([100, 200]), order="F")
print((here == array).all() and (turned == array.T).all() and turned["b"][4, 3, 1] == 5
      and nep49.shm.name_of(array.reshape(-1)) == nep49.shm.name_of(array.T) == name)
""",
    "shm: the end of a process gives its mappings back": """
import subprocess
ends = ["", "sys.exit(3)", "1 / 0", "os.fork() or sys.exit(); os.wait(); sys.exit(int(a[0]) - 1)",
        "f = os.fork()\\nif f == 0:\\n    del a\\nelse:\\n    os.wait(); print(a[0])"]
gone = []
for end in ends:
    with nep49.use("shm"):
        array = np.ones(100000)
    name = nep49.shm.name_of(array)
    there = "import os, sys, nep49; a = nep49.shm.attach(sys.argv[1], 'f8'); a[3] = 7\\n"
    subprocess.run([sys.executable, "-c", there + end, name], stderr=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL)
    assert array[3] == 7
    del array
    try:
        nep49.shm.attach(name)
    except FileNotFoundError:
        gone.append(end)
print(gone == ends)
""",
}
# Each is evaluated, and its exception has this text, or begins with it if "..." is its end.
WRONG = {
    "handler_of([1, 2])": "TypeError: handler_of takes a numpy.ndarray, not list",
    "handler_of('x' * 100)": "TypeError: handler_of takes a numpy.ndarray, not str",
    "handler_of(memoryview(b'abc'))": "TypeError: handler_of takes a numpy.ndarray, not memoryview",
    "handler_of(np.zeros(3)[0])": "TypeError: handler_of takes a numpy.ndarray, not float64",
    "handler_of(Series())":
        "TypeError: handler_of takes a numpy.ndarray, not Series; call its to_numpy()",
    "load(None)": "TypeError: a handler is a name, a path or a Handler, not NoneType",
    "install(object())": "TypeError: a handler is a name, a path or a Handler, not object",
    "install(b'nowhere')": "HandlerError: there is no handler called 'nowhere' (default, ...",
    "load('alined')": "HandlerError: there is no handler called 'alined'; did you mean 'aligne...",
    "Handler('aligned')": "TypeError: Handler is made by load(), which takes a name or a path",
    "use('cache')(3)": "TypeError: nep49.use('cache') decorates a function, not int",
    "load('')": "HandlerError: there is no handler called '' (default, ...",
    "use(nep49.load('aligned'), alignment=64)":
        "TypeError: a handler that was loaded takes no options",
    "load('aligned', size=3)": "TypeError: aligned takes no size; it takes alignment",
    "load('aligned', alignment=3)":
        "HandlerError: aligned: alignment=3: only a power of two from 16 to 2097152 is accepted",
    "arena(size=None)":
        "HandlerError: arena: size=None: only a number of bytes from 4K to 1G is accepted",
    "load('guard', keep='x', side='y')":
        "HandlerError: guard: side='y': only after and before are accepted",
    "load('trace', output='/nowhere/file')":
        "HandlerError: trace: output='/nowhere/file': No such file or directory",
    "load('aligned', alignment='6\\0')": "ValueError: embedded null byte",
    "[nep49.load('arena', size=4096 + 16 * i) for i in range(2000)]":
        "HandlerError: %s/arena.so: cannot allocate memory in static TLS block; ..." % HANDLERS,
    "use('aligned').__exit__()":
        "RuntimeError: nep49.use('aligned') was not entered in this thread or task",
    "use('aligned')(task)": "TypeError: task is a generator or a coroutine, whose body runs ...",
    "shm.name_of([1])": "TypeError: name_of takes a numpy.ndarray, not list",
    "shm.name_of(np.zeros(9, 'O'))": "TypeError: dtype object has pointers in it, ...",
    "shm.name_of(small)": "ValueError: the array is not a shared one: ...",
    "shm.name_of(array[8192:])": "ValueError: the array is not a shared one: ...",
    "shm.name_of(array[::2])": "ValueError: the array is not a shared one: ...",
    "shm.attach(None)": "TypeError: name is a str that name_of returned, not NoneType",
    "shm.attach('nobody')": "ValueError: 'nobody' is not the name of a shared array",
    "shm.attach(name, 'O', 3)": "TypeError: dtype object has pointers in it, ...",
    "shm.attach(name, [('a', 'O')], 3)": "TypeError: dtype [('a', 'O')] has pointers in it, ...",
    "shm.attach(name, 'V')": "ValueError: dtype |V0 has no bytes",
    "shm.attach(name, 'u1', (-1,))": "ValueError: shape=(-1,) has a negative length",
    "shm.attach(name, 'u1', 3.5)": "TypeError: shape=3.5 is not an int or a sequence of ints",
    "shm.attach(name, 'f8', 100001)":
        "ValueError: 800000 bytes are shared by that name, and 800008 are asked for",
}
BEGIN_WRONG = """
class Series:
    to_numpy = None
async def task():
    pass
with nep49.use("shm"):
    array, small = np.zeros(100000), np.zeros(10)
name = nep49.shm.name_of(array)
for each in sys.argv[1:]:
    try:
        print(eval(each if each[0] == "[" else "nep49." + each))
    except Exception as error:
        print("%s: %s" % (type(error).__name__, error))
"""
# What is loaded, and a part of what it says.
REFUSED = {
    "nowhere": "there is no handler called 'nowhere' (default, aligned, arena, ",
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


def wrong(tap):
    """One process, so that none of them crashes it or leaves anything behind."""
    result = python("-c", BEGIN + BEGIN_WRONG, *WRONG)
    said = result.stdout.splitlines()
    for (what, expected), line in zip(WRONG.items(), said + [""] * len(WRONG)):
        tap.point(line.startswith(expected[:-3]) if expected.endswith("...") else line == expected,
                  what, line)
    tap.point(result.code == 0 and len(said) == len(WRONG), "and nothing else", result)


def python(*arguments, **more):
    return suite.run([suite.PYTHON, *arguments],
                     env={"PYTHONPATH": PACKAGE, "NEP49_HANDLERS": HANDLERS,
                          "PYTHONDONTWRITEBYTECODE": "yes", "XDG_CACHE_HOME": "cache", **more})


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
    remembered = glob.glob("cache/nep49/*")
    result = python("-c", "import subprocess\nsubprocess.run = None\n" + program, "./mine.so",
                    **installed)
    tap.point(len(remembered) == 1 and result.stdout == "mine\n",
              "once, if it found nothing wrong", (remembered, result))


# What follows --handler, the exit status, stdout and the beginning of stderr, "..." for anything.
COMMANDS = [
    ("aligned --option alignment=256 script.py --one -m", 0,
     "aligned alignment=256 ['script.py', '--one', '-m'] __main__ script.py ['aligned']\n", ""),
    ("aligned -m script -c two", 0, "aligned alignment=64 ['%s', '-c', 'two'] __main__ %s "
     "['aligned']\n" % (("SCRIPT",) * 2), ""),
    ("default -c import·sys,helper;print(sys.argv,__name__,helper.__name__) -x", 0,
     "['-c', '-x'] __main__ helper\n", ""),
    ("default sub/script.py", 1, "", "..., in <module>\n    import helper\nModuleNotFound..."),
    ("trace -c import·numpy;a=numpy.empty(9)", 0, "", "trace: 72 bytes at the peak, 0 live, 1"),
    ("trace --option output=report -c import·numpy;a=numpy.ones(9)", 0, "", ""),
    ("guard over.py", -11, "", 'Fatal Python error: Seg...over.py", line 4 in f\n'),
    ("nowhere script.py", 2, "", "nep49: there is no handler called 'nowhere' (default, "),
    ("aligned -m nowhere.a", 2, "", "nep49: there is no module called nowhere.a\n"),
    ("aligned nowhere.py", 2, "", "nep49: nowhere.py: there is no such file\n"),
    ("aligned --option alignment script.py", 2, "",
     "...error: --option takes KEY=VALUE, not alignment\n"),
    ("aligned --option alignment=3 script.py", 2, "",
     "nep49: aligned: alignment='3': only a power of two from 16 to 2097152 is accepted\n"),
]


def commands(tap):
    """python -m nep49"""
    suite.write("helper.py", "")
    suite.write("script.py", """
import sys, threading
import helper, nep49, numpy
handler, seen = nep49.handler_of(numpy.empty(9)), []
thread = threading.Thread(target=lambda: seen.append(nep49.current().name))
thread.start()
thread.join()
print(handler.name, handler.claims, sys.argv, __name__, __file__, seen)
""")
    suite.write("over.py", """import ctypes, numpy
def f():
    array = numpy.ones(512)
    ctypes.memset(array.ctypes.data + array.nbytes, 1, 8)
f()
""")
    os.mkdir("sub")
    suite.write("sub/script.py", "import helper")
    here = os.path.abspath("script.py")
    for words, code, out, error in COMMANDS:
        result = python("-m", "nep49", "--handler",
                        *(word.replace("·", " ") for word in words.split()))
        form = ".*".join(re.escape(part) for part in error.split("..."))
        tap.point(result.code == code and result.stdout == out.replace("SCRIPT", here)
                  and re.match(form if error else "$", result.stderr, re.S),
                  "python -m nep49 --handler " + words, result)


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
import ctypes, threading, warnings
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

class Own(UserWarning):
    def __init__(self, one, two):
        self.cannot_be_pickled = lambda: None

def test_warns():
    warnings.warn("in a test")
    warnings.warn(Own(1, 2))

def test_thread():
    seen = []
    thread = threading.Thread(target=lambda: seen.append(nep49.current().name))
    thread.start()
    thread.join()
    assert seen == ["guard"]

def test_leaves():
    pytest.exit("enough")
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
    tap.point(result.code == 2 and "3 failed, 3 passed, 1 skipped, 2 warnings in" in result.stdout
              and re.search(r'_ test_overruns _+\nSIGSEGV under the handler guard\n'
                            r'(.*\n)+.*test_it.py", line 16 in test_overruns\n', result.stdout)
              and re.search(r'_ test_writes_a_byte_behind _+\nSIGABRT under', result.stdout)
              and "somebody wrote past its end" in result.stdout
              and ":32: Own: (1, 2)\n" in result.stdout
              and "Exit: enough !" in result.stdout
              and "_pytest/" not in result.stdout, "each test under guard", result)
    for words, said in ((["--nep49-handler=none"], "--nep49-handler: "),
                        (["--nep49-option=a=b"], "--nep49-option goes with --nep49-handler"),
                        (["--nep49-handler=aligned", "--nep49-option=a"], "takes NAME=VALUE"),
                        (["--nep49-handler=aligned", "--pdb"], "--pdb does not work with")):
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
        tap.point(result.stdout == "<nep49.Handler mine alignment=16 of %s>\n"
                  % os.path.abspath("mine.so"), "any handler, by its path", result)
        wrong(tap)
        refused(tap)
        tried(tap)
        commands(tap)
        pytest_plugin(tap)
        documented(tap)
    tap.end()


main()
