# SPDX-License-Identifier: BSD-3-Clause
"""exec: a Python program between NumPy and the handler, and --fail-each."""

import os
import re
import signal

import suite

SOUND = os.path.join(suite.BUILD, "handlers", "sound", "sound.so")
FAULTY = os.path.join(suite.FAULTY, "faulty.so")

THREADS = """
import asyncio, concurrent.futures, threading
import numpy as np
names = []
try:
    name_of = np._core.multiarray.get_handler_name
except AttributeError:
    name_of = np.core.multiarray.get_handler_name
def note():
    names.append(name_of(np.ones(3)))
async def note_later():
    note()
note()
thread = threading.Thread(target=note); thread.start(); thread.join()
with concurrent.futures.ThreadPoolExecutor() as pool:
    pool.submit(note).result()
asyncio.run(note_later())
print(names)
"""


def is_up_to(*version):
    """Whether this NumPy is of that release or older."""
    return tuple(map(int, os.environ["NUMPY_VERSION"].split(".")[:2])) <= version


# A thread that Python did not start: ctypes calls back on one of the C library's own.
C_THREAD = """
import ctypes, numpy as np
try:
    name_of = np._core.multiarray.get_handler_name
except AttributeError:
    name_of = np.core.multiarray.get_handler_name
libc = ctypes.CDLL(None)
def body(unused):
    print(name_of(np.ones(3)))
    return 0
callback = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(body)
thread = ctypes.c_ulong()
assert libc.pthread_create(ctypes.byref(thread), None, callback, None) == 0
libc.pthread_join(thread, None)
"""

KNOWN = "import numpy as np; a = np.fromstring('', sep=' '); del a"
REFUSED = """
import numpy as np, _conform_exec
_conform_exec.refuse(4)
try:
    np.fromstring(" ".join(["1"] * 9000), sep=" ")
except MemoryError:
    pass
"""
# What each of these leaves is known where this NumPy does so, and nothing else is.
NEW_DTYPE = """
import numpy as np, warnings
warnings.simplefilter("ignore")
a = np.zeros(4, "i4")
try:
    a.dtype = np.dtype(("i4", (0,)))
except (AttributeError, ValueError):
    pass
del a
"""
FAILED_STATE = """
import numpy as np
a = np.arange(4)
try:
    a.__setstate__((1, (4,), np.dtype("i2"), False, b""))
except ValueError:
    pass
del a
"""
EMPTIED = "import numpy as np; a = np.ones(5); a.resize(0, refcheck=False); del a"
NOTHING_COMES = """
import numpy as np
class Hinted:
    def __iter__(self):
        return self
    def __next__(self):
        raise StopIteration
    def __length_hint__(self):
        return 7
np.fromiter(Hinted(), "f8")
np.fromiter(iter([]), "f8")
"""
WITHOUT_ELEMENTS = "import numpy as np; a = np.zeros((5, 0)); del a"
# An array that somebody says is empty, of whom nobody knows.
SAID_EMPTY = """
import numpy as np, ctypes
a = np.arange(9)
fields = id(a) + object.__basicsize__
dimensions = ctypes.c_void_p.from_address(fields + 2 * ctypes.sizeof(ctypes.c_void_p))
ctypes.c_ssize_t.from_address(dimensions.value).value = 0
del a
"""
FROMITER = """
import numpy as np
try:
    np.fromiter((1 // (x - 50) for x in range(99)), "i8")
except ZeroDivisionError:
    pass
"""
REALLOC = "import numpy as np; a = np.arange(10); a.resize(1000, refcheck=False)"
FORKS = """
import os, numpy as np
kept = [np.ones(100) for i in range(50)]
pid = os.fork()
if pid == 0:
    del kept
    os._exit(0)
os.waitpid(pid, 0)
print(len(kept))
"""

# An extension that clears OWNDATA and gives the data to libc itself.
STOLEN = """
import ctypes, os, numpy as np
libc = ctypes.CDLL(None)
libc.realloc.restype = ctypes.c_void_p
flags = object.__basicsize__ + 6 * ctypes.sizeof(ctypes.c_void_p)
def steal(array, give):
    ctypes.c_int.from_address(id(array) + flags).value &= ~4
    return give(array)
def free(array):
    libc.free(ctypes.c_void_p(array.ctypes.data))
def resize(array):
    moved = libc.realloc(ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(200000))
    print(ctypes.string_at(moved, 3))
"""
THIRD_PARTY = (r"VIOLATION by a third party, not the handler or NumPy: a block of the handler "
               r"passed to libc's free or realloc, 1 time\n +first: ")
FREED_BY_OTHERS = STOLEN + """
steal(np.ones(100000, 'u1'), free)
print(np.zeros(100000, 'u1').any())
"""
RESIZED_BY_OTHERS = STOLEN + "steal(np.ones(100000, 'u1'), resize)"
FREED_TWICE = STOLEN + """
a = np.ones(1000, 'u1')
free(a)
b = np.ones(1000, 'u1')
del a
print(len([np.ones(1000, 'u1') for _ in range(3)]))
"""
OWNED_BY_HAND = STOLEN + """
libc.malloc.restype = ctypes.c_void_p
def own():
    data = (ctypes.c_char * 100).from_address(libc.malloc(100))
    array = np.frombuffer(data, 'u1')
    ctypes.c_int.from_address(id(array) + flags).value |= 4
own()
class Mine(np.ndarray):
    pass
a = np.ones(9).view(Mine)
b = Mine((3,))
for _ in range(2):
    own()
"""
FREED_IN_CHILD = STOLEN + """
a = np.ones(1000, 'u1')
if os.fork() == 0:
    free(a)
    os._exit(0)
os.wait()
"""

# The functions of the handler that is active.  306 is PyDataMem_DefaultHandler, and 128 where the
# struct's ctx is.
HANDLER = """
import ctypes
import numpy as np
core = getattr(np, "_core", None) or np.core
api = ctypes.pythonapi
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
table = api.PyCapsule_GetPointer(core._multiarray_umath._ARRAY_API, None)
entry = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[306]
capsule = ctypes.cast(entry, ctypes.POINTER(ctypes.py_object))[0]
handler = api.PyCapsule_GetPointer(capsule, b"mem_handler")
words = ctypes.cast(handler + 128, ctypes.POINTER(ctypes.c_void_p))
ctx = words[0]
def function(number, kind, result, *block):
    return kind(result, ctypes.c_void_p, *block, ctypes.c_size_t)(words[number])
"""
OVERRUN = """
import ctypes, numpy as np
a = np.zeros(10, np.uint8)
p = a.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
for i in range(10, 20): p[i] = 255
"""
USE_AFTER_FREE = """
import numpy as np
i = np.eye(300)
r = i[1]
i.resize(1000000, refcheck=False)
print(r[1])
"""
# 304 is PyDataMem_SetHandler, first with a copy of the handler, then with what it returned.
INSTALLS = HANDLER + """
copy = ctypes.create_string_buffer(ctypes.string_at(handler, 168))
copy[:18] = b"default_allocator\\0"
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
place = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[304]
install = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(place)
install(install(api.PyCapsule_New(ctypes.addressof(copy), b"mem_handler", None)))
"""
# Through multiprocessing, subprocess, posix_spawn, and in a forked child.
SPAWNS = """
import multiprocessing, os, subprocess, sys
import numpy
if __name__ == "__main__":
    pool = multiprocessing.get_context("spawn").Pool(1)
    pool.map(abs, [1])
    pool.close()
    pool.join()
    subprocess.run([sys.executable, "-c", ""])
    os.waitpid(os.posix_spawn(sys.executable, ["python", "-c", ""], os.environ), 0)
    if os.fork() == 0:
        os.execv(sys.executable, ["python", "-c", ""])
    os.wait()
"""
LIVE = "import numpy as np, os, sys; a = np.ones(123456)\n"
# Some versions of NumPy keep a few blocks of their own.
LIVE_BYTES = r"live when the process ended 98[78]\d\d\d bytes in \d\d? blocks?\n"
WITHOUT_GIL = HANDLER + """
malloc = function(1, ctypes.CFUNCTYPE, ctypes.c_void_p)
free = function(4, ctypes.PYFUNCTYPE, None, ctypes.c_void_p)
free(ctx, malloc(ctx, 5), 5)
"""

# name, arguments before --, arguments behind it, exit code, stdout, stderr
CASES = [
    ("-c", ["-H", "aligned"], ["-c", "print('x' * 3)"], 0, r"\Axxx\n\Z", "did not import NumPy"),
    ("the program's own status", ["-H", "aligned"], ["-c", "import numpy, sys; sys.exit(7)"], 7,
     r"\A\Z", "no violation"),
    ("an uncaught exception", ["-H", "aligned"], ["-c", "import numpy; numpy.ones(-1)"], 1, r"\A\Z",
     "ValueError"),
    ("-m", ["-H", "aligned"], ["-m", "json.tool", "--help"], 0, "usage:", "did not import"),
    ("python's own options", ["-H", "aligned"], ["-B", "-c", "import sys; print(sys.flags[5])"], 0,
     r"\A\d\n", ""),
    ("every thread and task", ["-H", "shift_header", "-q"], ["-c", THREADS], 0,
     r"\A\['shift_header', 'shift_header', 'shift_header', 'shift_header'\]\n\Z", r"\A\Z"),
    ("a thread made in C", ["-H", "aligned", "-q"], ["-c", C_THREAD], 0, r"\Aaligned\n\Z", r"\A\Z"),
    ("a known slip of NumPy's", ["-H", "aligned"], ["-c", KNOWN], 0, "",
     "known +by NumPy: size 1 for a text without a number"),
    ("... of a new dtype", ["-H", "aligned"], ["-c", NEW_DTYPE], 0, "",
     "size 1 for an array that a dtype emptied" if is_up_to(2, 4) else "no violation"),
    ("... of a __setstate__ that fails", ["-H", "aligned"], ["-c", FAILED_STATE], 0, "",
     "a size by the dtype that a failed __setstate__" if is_up_to(2, 4) else "no violation"),
    ("... of a resize to nothing", ["-H", "aligned"], ["-c", EMPTIED], 0, "",
     "size 1 for an array that became empty" if is_up_to(2, 3) else "no violation"),
    ("... of a fromiter of nothing", ["-H", "aligned"], ["-c", NOTHING_COMES], 0, "",
     "size 1 for an array" if is_up_to(2, 3) else "no violation"),
    ("... of an array without elements", ["-H", "aligned"], ["-c", WITHOUT_ELEMENTS], 0, "",
     "size 1 for an array without elements" if is_up_to(1, 22) else "no violation"),
    ("size 1 from elsewhere is none", ["-H", "aligned"], ["-c", SAID_EMPTY], 0, "",
     "size 1 for an array without elements" if is_up_to(1, 22) else
     "by NumPy: a wrong size given to free.*\n +first: free of 72 bytes with size 1"),
    ("a known one after a refusal", ["-H", "aligned", "--record=/dev/null"], ["-c", REFUSED], 0, "",
     r"known +by NumPy: the first size of a text.*\n +first: free of 98304 bytes with size 32768"),
    ("a fromiter that fails", ["-H", "aligned"], ["-c", FROMITER], 0, "",
     "the size so far" if is_up_to(1, 22) else "no violation"),
    ("a forked child frees its copies", ["-H", "aligned"], ["-c", FORKS], 0, r"\A50\n",
     r"no violation"),
    ("where live blocks come from: not a line of NumPy's", ["-H", "aligned", "--stacks"],
     ["-c", "import numpy as np\nkept = np.ones(123456)"], 0, "",
     r"987648 bytes in 1 block  <string>:2\n"),
    ("... what an import keeps is told with the line that imports", ["-H", "aligned", "--stacks"],
     ["-c", "\n\nimport numpy, numpy.ma\nkept = numpy.ones(123456)"], 0, "",
     r"987648 bytes in 1 block  <string>:4\n( +\d+ bytes in \d+ blocks?  <string>:3\n)?conform: "),
    ("... and a line that NumPy calls is the program's", ["-H", "aligned", "--stacks"],
     ["-c", "import numpy as np\nkept = []\nnp.apply_along_axis(\n"
      " lambda row: kept.append(np.ones(123456)),\n 0, np.zeros(1))"], 0, "",
     r"987648 bytes in 1 block  <string>:4\n"),
    ("libc frees a handler's block", ["-H", "default"], ["-c", FREED_BY_OTHERS], 0, r"\AFalse\n",
     THIRD_PARTY + r"free\(.*\) by libffi.*, of a block of 100000 bytes, at <string>:10\n"
     r"conform: 0 kinds of violation by the handler, 0 by NumPy, 1 by a third party"),
    ("... which libc did not make", ["-H", "guard"], ["-c", FREED_BY_OTHERS], 0, r"\AFalse\n",
     THIRD_PARTY),
    ("libc resizes it", ["-H", "shift_header"], ["-c", RESIZED_BY_OTHERS], 0,
     re.escape(r"b'\x01\x01\x01'"), THIRD_PARTY + r"realloc\(.*, of a block of 100000 bytes, at <"),
    ("libc frees it before NumPy", ["-H", "aligned"], ["-c", FREED_TWICE], 0, r"\A3\n",
     THIRD_PARTY + r".*\nconform: 0 kinds of violation by the handler, 0 by NumPy, 1 "),
    ("libc frees it in a forked child", ["-H", "aligned"], ["-c", FREED_IN_CHILD], 0, "",
     THIRD_PARTY),
    ("OWNDATA set by hand", ["-H", "aligned"], ["-c", OWNED_BY_HAND], 0, "",
     r"NOTE +by a third party.*: an array with OWNDATA and no handler, 3 times\n.*:20\n"
     r" +also at <string>:26\nconform: no violation"),
    ("without the GIL", ["-H", "aligned"], ["-c", WITHOUT_GIL], 0, "",
     r"by a third party.*: a request or a free without the GIL, 1 time\n"
     r" +first: malloc, by a thread that has let go of the GIL, at <string>:19\n"),
    ("os._exit", ["-H", "aligned"], ["-c", "import numpy, os; os._exit(9)"], 9, "", "no violation"),
    ("... with live blocks", ["-H", "aligned"], ["-c", LIVE + "os._exit(9)"], 9, "", LIVE_BYTES),
    ("a signal with live blocks", ["-H", "aligned"], ["-c", LIVE + "os.kill(os.getpid(), 9)"],
     128 + signal.SIGKILL, "", LIVE_BYTES),
    ("exec with live blocks", ["-H", "aligned"], ["-c", LIVE + "os.execv('/bin/true', ['true'])"],
     0, "", LIVE_BYTES),
    ("Ctrl-C with live blocks", ["-H", "aligned"],
     ["-c", LIVE + "import signal\nsignal.raise_signal(signal.SIGINT)"], 128 + signal.SIGINT, "",
     r"live at exit 98[78]\d\d\d bytes in \d\d? block"),
    ("a forked child that exits and its parent that does not", ["-H", "aligned"],
     ["-c", LIVE + "if os.fork() == 0:\n    sys.exit()\nos.wait()\nos._exit(9)"], 9, "",
     LIVE_BYTES),
    ("a handler that the program installs", ["-H", "aligned"], ["-c", INSTALLS], 0, "",
     "NOT AUDITED: the handler default_allocator, which the program installed 1 time\n"),
    ("Python in other processes", ["-H", "aligned"], ["-c", SPAWNS], 0, "",
     "NOT AUDITED: 4 Python interpreters that the program started\n"),
    ("no Python in other processes", ["-H", "aligned"],
     ["-c", "import numpy, subprocess, os; subprocess.run(['true']); os.system('true')"], 0, "",
     "bytes\nconform: no violation"),
    ("a crash of the program", ["-H", "aligned"],
     ["-c", "import numpy, ctypes; ctypes.string_at(8)"], 128 + signal.SIGSEGV, "", "SIGSEGV"),
    ("... its line", ["-H", "aligned"],
     ["-c", "import numpy, ctypes\nctypes.string_at(8)"], 128 + signal.SIGSEGV, "",
     r"conform: crash report: SIGSEGV.* at address 0x8\nFatal Python error: Seg(.*\n)*.*"
     '"<string>", line 2 in <module>'),
    ("a write past the end of a block", ["-H", "guard"], ["-c", OVERRUN], 128 + signal.SIGSEGV, "",
     r"crash report: SIGSEGV.* at address .*, 6 bytes after the end of a block of 10 bytes at .*, "
     r"made at <string>:3; the guard page was hit\n(.*\n)*.*File \"<string>\", line 5 in <module>"),
    ("a read of freed memory", ["-H", "guard"], ["-c", USE_AFTER_FREE], 128 + signal.SIGSEGV, "",
     r"inside a block of 720000 bytes at 0x.* that was freed, made at <string>:3; its memory is"),
    ("an abort", ["-H", "aligned"], ["-c", "import numpy, os\nos.abort()"], 128 + signal.SIGABRT,
     "", r"crash report: SIGABRT\nFatal Python error: Aborted\n(.*\n)*.*line 2 in <module>"),
    ("a handler that loses contents",
     ["-H", FAULTY + ":realloc_does_not_copy"], ["-c", REALLOC], 1, "",
     "VIOLATION by the handler: contents lost"),
    ("a claim that is made for it", ["-H", "aligned", "--claim=alignment=8192"], ["-c", REALLOC], 1,
     "", "VIOLATION by the handler: memory that is not aligned"),
    ("realloc that always moves", ["-H", SOUND + ":always_moves"], ["-c", REALLOC], 0, "",
     "no violation"),
    ("what Python prints and ends", ["-H", "aligned"], ["-V"], 0,
     r"\APython 3\.\d+.*\n\Z", "did not"),
    ("a handler that is not there", ["-H", "wibble"], ["-c", "1"], 3, r"\A\Z", "wibble: "),
    ("without a handler", [], ["-c", "1"], 2, r"\A\Z", "no handler to test"),
]


def cases(tap):
    for name, before, behind, code, stdout, stderr in CASES:
        # there a crash ends in the sanitizer's own report and status
        if suite.SANITIZED and stderr.startswith(THIRD_PARTY):
            tap.skip(name, "a sanitizer replaces libc's free")
            continue
        if suite.SANITIZED and code > 128:
            tap.skip(name, "a sanitizer reports crashes in its own way")
            continue
        result = suite.conform("exec", *(before + ["--"] + behind))
        good = (result.code == code and re.search(stdout, result.stdout)
                and re.search(stderr, result.stderr))
        tap.point(good, name, result)


# libc's heap cannot shrink while the block at its end is live.
FRAGMENTED = """
import ctypes, numpy as np
ctypes.CDLL(None).mallopt(-3, 1 << 30)
arrays = [np.ones(12500) for _ in range(1000)]
del arrays[:-1]
"""


def resident_memory(tap):
    """The peak and the last resident memory next to live bytes, of a program and of its replay."""
    with suite.scratch() as folder:
        trace = os.path.join(folder, "fragmented.trace")
        result = suite.conform("exec", "-H", "aligned", "--record", trace, "--", "-c", FRAGMENTED)
        replayed = suite.conform("replay", "-H", "aligned", trace)
    numbers = re.search(r"peak \d+ bytes; live at exit (\d+).*\n  resident  peak (\d+) bytes, "
                        r"at exit (\d+), with Python", result.stderr)
    live, peak, last = map(int, numbers.groups()) if numbers else (0, 0, 0)
    tap.point(0 < live < 500000 and 100000000 < peak < 500000000 and live < last <= peak,
              "resident memory", result)
    numbers = re.search(r"resident memory: peak (\d+) bytes, (\d+) at the end, (\d+) before",
                        replayed.stdout)
    peak, last, first = map(int, numbers.groups()) if numbers else (0, 0, 0)
    tap.point(replayed.code == 0 and 0 < first < last <= peak and peak > 100000000,
              "resident memory of a replay", replayed)


def script_and_stdin(tap):
    with suite.scratch() as folder:
        path = os.path.join(folder, "program.py")
        suite.write(path, "import sys, numpy\nprint(__name__, sys.argv[1:], sys.path[0])\n")
        result = suite.conform("exec", "-H", "aligned", "-q", "--", path, "--color", "x")
        expected = "__main__ ['--color', 'x'] %s\n" % folder
        tap.point(result.code == 0 and result.stdout == expected, "a script", result)
    result = suite.run(["sh", "-c", "echo 'print(6 * 7)' | \"$0\" exec -H aligned -q -- -",
                        suite.CONFORM])
    tap.point(result.code == 0 and result.stdout == "42\n", "stdin", result)


def fail_each(tap):
    program = "import numpy as np; a = np.arange(9); b = a + a; a.resize(99, refcheck=False)"
    result = suite.conform("exec", "-H", "aligned", "--fail-each", "--", "-c", program)
    match = re.match(r"(\d+) runs.*: (\d+) ended in MemoryError, (\d+) in success, 0 otherwise",
                     result.stdout)
    good = match and int(match[1]) >= 3 and int(match[1]) == int(match[2]) + int(match[3])
    tap.point(result.code == 0 and good and int(match[2]) >= 3, "--fail-each", result)
    handled = ("import numpy as np\ntry:\n    np.ones(99)\nexcept MemoryError:\n    pass")
    result = suite.conform("exec", "-H", "aligned", "--fail-each", "--", "-c", handled)
    tap.point(result.code == 0 and re.search(r"[1-9]\d* in success", result.stdout),
              "--fail-each of a program that goes on", result)
    result = suite.conform("exec", "-H", "aligned", "--fail-each", "--most-runs=2", "--", "-c",
                           program)
    tap.point(result.code == suite.INCOMPLETE and result.stdout.startswith("2 runs, ")
              and "INCOMPLETE: stopped after 2 runs, and there are more requests" in result.stdout,
              "--fail-each that reaches --most-runs", result)
    for more, code in (["--most-runs=2"], suite.INCOMPLETE), ([], 0):
        result = suite.conform("exec", "-qHaligned", "--fail-each", *more, "--", "-c", program)
        tap.point(result.code == code and ("INCOMPLETE" in result.stdout) == bool(more)
                  and bool(result.stdout) == bool(more), "--fail-each with --quiet", result)
    result = suite.conform("exec", "-H", "aligned", "--fail-each", "--most-runs=%s" % match[1],
                           "--", "-c", program)
    tap.point(result.code == suite.INCOMPLETE, "--most-runs that are just enough to refuse each, "
              "without the run that shows it", result)
    result = suite.conform("exec", "-H", "aligned", "--fail-each", "--", "-c",
                           "import numpy, os; numpy.ones(99); os._exit(0)")
    tap.point(result.code == 0 and "was not compared" in result.stdout,
              "--fail-each of a program that leaves by the back door", result)
    dies = ("import numpy as np, os\ntry:\n    np.ones(99)\nexcept MemoryError:\n    os.abort()")
    result = suite.conform("exec", "-H", "aligned", "--fail-each", "--", "-c", dies)
    tap.point(result.code == suite.HARNESS_BROKE and "SIGABRT" in result.stdout,
              "--fail-each of a program that dies of it", result)
    fail_each_places(tap)


# Of one line, several requests end in ValueError; another ends the process.
FAILS = """
import os, numpy as np
def make(number):
    try:
        return np.ones(99)
    except MemoryError:
        raise ValueError("it's %d" % number) from None
for number in range(3):
    make(number)
try:
    np.ones(7)
except MemoryError:
    os.abort()
"""


def fail_each_places(tap):
    """One entry for each line and result, and a command that repeats it."""
    with suite.scratch() as folder:
        script = os.path.join(folder, "it's.py")
        suite.write(script, FAILS)
        result = suite.conform("exec", "-H", "aligned", "--fail-each", "--", script)
        entries = re.findall(r"it's.py:(\d+): request (\d+) refused.*: (.*)\n    repeat: (.*)\n",
                             result.stdout)
        again = suite.run(["sh", "-c", entries[-1][3]]) if entries else result
    good = [(entry[0], entry[2]) for entry in entries] == [
        ("5", "it's 0"), ("11", "the program died of SIGABRT")]
    tap.point(result.code == suite.HARNESS_BROKE and good, "--fail-each: an entry for each place",
              result)
    tap.point(good and again.code == suite.HARNESS_BROKE and again.stdout.startswith("1 run, ")
              and "it's.py:11: request %s refused: " % entries[1][1] in again.stdout
              and (suite.SANITIZED or re.search("crash report: SIGABRT(.*\n)*.*line 13 in",
                                                again.stderr)),
              "--refuse repeats one of them", again)
    for program, words in (("import numpy", "requests no memory for arrays, so"),
                           ("import numpy, nosuch", "arrays and ends in ModuleNotFoundError: ")):
        result = suite.conform("exec", "-H", "aligned", "--fail-each", "--", "-c", program)
        tap.point(result.code == suite.USAGE and words in result.stderr,
                  "--fail-each of " + program, result)
    result = suite.conform("exec", "-H", "aligned", "--fail-each", "--refuse=999", "--", "-c",
                           FAILS)
    tap.point(result.code == suite.USAGE and "--refuse=999: the program does not" in result.stderr,
              "--refuse of a request that is not made", result)


# Calls malloc by itself, and makes no object: where no more can be mapped, the auditor's tables are
# what cannot grow.
WITHOUT_BOOKS = HANDLER + """
import resource
malloc = function(1, ctypes.PYFUNCTYPE, ctypes.c_void_p)
free = function(4, ctypes.PYFUNCTYPE, None, ctypes.c_void_p)
before = resource.getrlimit(resource.RLIMIT_AS)
with open("/proc/self/statm") as file:
    room = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (room, before[1]))
for _ in range(300000):
    p = malloc(ctx, 8)
free(ctx, p, 8)
resource.setrlimit(resource.RLIMIT_AS, before)
"""

# Its memory is there from the start.
FIXED = """
#include "sound/base.h"
static _Alignas(16) char memory[1 << 26];
FUNCTION(malloc, fixed)
{
    static size_t used;
    if (size > sizeof memory || used + size + 16 > sizeof memory)
        return NULL;
    used += (size + 16) / 16 * 16;
    return memory + used - (size + 16) / 16 * 16;
}
FUNCTION_RETURNS(calloc, fixed, fixed_malloc(ctx, product(nelem, elsize)));
FUNCTION(realloc, fixed)
{
    char *moved = fixed_malloc(ctx, size);
    return moved != NULL && p != NULL ? memmove(moved, p, size) : moved;
}
FUNCTION(free, fixed) {}
SOUND(nep49_handler, FUNCTIONS(fixed));
"""


def without_books(tap):
    """What there is no memory to judge is not passed over in silence."""
    if suite.SANITIZED:
        tap.skip("a program that no track can be kept of", "sanitizers bear no limit on memory")
        return
    with suite.scratch() as folder:
        source = os.path.join(folder, "fixed.c")
        suite.write(source, FIXED)
        handler = suite.build(source, os.path.join(folder, "fixed.so"), "-w")
        result = suite.conform("exec", "-H", handler, "-q", "--", "-c", WITHOUT_BOOKS)
    tap.point(result.code == suite.INCOMPLETE
              and re.match(r"conform: INCOMPLETE: there was no memory to keep track of \d+ blocks",
                           result.stderr), "a program that no track can be kept of", result)


# Each in a file of its own: in a long file CPython needs long to find its line.
MANY_LINES = """
import numpy as np
kept = []
for i in range(17000):
    kept.append(compile("kept.append(np.empty(2))", "%d.py" % i, "exec"))
    exec(kept[-1])
"""


def many_lines(tap):
    """Blocks from more lines than are kept are not attributed to other lines."""
    result = suite.conform("exec", "-H", "aligned", "--stacks", "--", "-c", MANY_LINES)
    beyond = re.search(r" (\d+) bytes in (\d+) blocks  \(lines beyond", result.stderr)
    tap.point(result.code == 0 and beyond and int(beyond[2]) > 600, "more lines than are kept",
              result.stderr[-3000:])


def broken_trace(tap):
    """A trace that could not be written whole is no success."""
    result = suite.conform("exec", "-H", "aligned", "-q", "--record=/dev/full", "--", "-c",
                           "import numpy")
    tap.point(result.code == suite.HARNESS_BROKE and "No space left" in result.stderr,
              "a trace on a full disk", result)


def main():
    tap = suite.Tap()
    cases(tap)
    script_and_stdin(tap)
    fail_each(tap)
    resident_memory(tap)
    without_books(tap)
    many_lines(tap)
    broken_trace(tap)
    tap.end()


main()
