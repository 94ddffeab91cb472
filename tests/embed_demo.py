# SPDX-License-Identifier: BSD-3-Clause
"""The embedding demo and minimal.c: what they claim, how each claim is refused where it does not
hold, that Python in them is as python is, and what valgrind says."""

import os
import re
import resource
import signal
import struct
import subprocess
import sys
import sysconfig
import time
import xml.etree.ElementTree as ElementTree
import zlib

import numpy

import suite

BUILD = os.path.realpath(suite.BUILD)
DEMO = os.path.join(BUILD, "embed_demo", "embed_demo")
MINIMAL = os.path.join(BUILD, "embed_demo", "minimal")
SOURCES = os.path.join(suite.SOURCE, "embed_demo")
TESTS = os.path.join(suite.SOURCE, "tests")
INSIDE = os.path.join(TESTS, "embed_inside.py")
DEMO_PY = os.path.join(SOURCES, "demo.py")

# Without a GIL the demo leaves it at that.
HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
CAN_USE_MALLOC = not sysconfig.get_config_var("Py_GIL_DISABLED")

# This one never ends a class, once there was a second thread.
KEEPS_CLASSES = not CAN_USE_MALLOC and sys.version_info[:2] == (3, 13)

# What all of the demo claims, in this order.
CLAIMS = [
    r"threads  4 threads given .* MB, at most .* MB at once, each byte in the own arena",
    r"threads  36 arrays of 1.6 MB outlive their threads, 36 where they belong",
    r"capsule  C to Python: 1000 numbers, not copied, doubled in place, kept alive, given back",
    r"capsule  Python to C: 5000 numbers, the handler's own block, alive while used, freed after",
    r"dlpack   C to Python: 1000 numbers, not copied, kept alive, given back once",
    r"dlpack   Python to C: 5000 numbers, the handler's own block, alive while used, freed after",
    r"traced   tracemalloc sees 3 blocks of 1228000 bytes, the host 3 of 1228000",
    r"traced   1 thread given 1.2 MB, at most 1.2 MB at once, each byte in the own arena",
    r"traced   3 arrays of 1.2 MB outlive their threads, 3 where they belong",
    r"wave     4 threads given .*, each byte in the own arena",
    r"wave     8 arrays of .* MB outlive their threads, 8 where they belong",
    r"wave     (\d+) x \1 points, 4 threads, .* s: error \S+ \(allowed \S+\), at worst \S+ \(",
    r"picture  \S+\.png$",
    r"balance  \d\d blocks of .* MB outlived the script, 0 outlived Python, 0 freed by another",
]

# Expressions for embed_inside.py: wrong in one thing, impossible, right; and what is said of it.
REFUSED = [
    ("Higher().run()", r"FAIL    wave .*error .* \(allowed"),
    ("Row().run()", r"FAIL    wave .*error nan \(allowed"),
    ("Point().run()", r"FAIL    wave .*at worst 1.0e\+00 \(5.3e-01\)"),
    ("Deaf().run()", r"FAIL    wave .*error .* \(allowed"),
    ('host.threads("t", swaps, 2)', r"FAIL    t .*2 arrays of 0.0 MB outlive .*, 0 where they"),
    ('host.threads("t", strays, 2)', r"FAIL    t .*NOT each byte in the own arena"),
    ('host.lend("l", copies)', r"FAIL    l .*COPIED, doubled in place, NOT kept"),
    ('host.lend("l", lambda a: a)', r"FAIL    l .*not copied, NOT doubled in place, kept alive, "),
    ('host.lend("l", keeps)', r"FAIL    l .*doubled in place, kept alive, NOT given back once"),
    ('host.lend("l", lambda a: numpy.ones(3), True)', r"FAIL    l .*COPIED, NOT kept alive"),
    ('host.borrow("b", holds)', r"FAIL    b .*the handler.s own block, alive while used, NOT f"),
    ('host.borrow("b", lambda: numpy.frombuffer(bytes(80)))', r"FAIL    b .*NOT the handler.s bl"),
    ("demo.claim_traced(2, 161)", r"FAIL    traced .*sees 2 blocks of 161 bytes, the host \d of"),
    ("demo.draw(numpy.ones((9, 9)), 'nosuch/w.png')", "FAIL    picture .*: No such file or direct"),
    ("demo.draw(numpy.ones((9, 9)), 'folder')", "FAIL    picture  folder: Is a directory"),
    ('host.threads("t", leaks, 1)', r"PASS    t "),  # said at the end
    ('host.threads("t")', r"TypeError: "),
    ('host.threads("t", leaks, 0)', r"ValueError: count is 1 to 64, and room is not 0"),
    ('host.threads("t", lambda rank: 3)', r"TypeError: a thread returns a list of arrays"),
    ('host.threads("t", lambda rank: [3])', r"TypeError: a thread returns a list of arrays"),
    ('host.threads("t", lambda rank: [numpy.zeros(1 << 21)])',
     r"MemoryError: Unable to allocate 16.0 MiB"),
    ('host.threads("t", leaks, room=1 << 60)', r"MemoryError: no 1152921504606846976 b"),
    ("Fails().run()", r"ZeroDivisionError: "),
    ('host.lend("l", list)', r"TypeError: not an array"),
    ('host.borrow("b", lambda: [1.0])', r"TypeError: not an array of floats without gaps"),
    ('host.borrow("b", lambda: numpy.ones(9)[::2], True)', r"TypeError: not one row of floats"),
    ("script_thread()", "this thread has not a handler of the host's"),
    ("Pool().run()", r"PASS    wave .*error"),
    ("growth(%d)" % (50 if suite.LONG else 30), "^0$"),
]
AT_THE_END = r"FAIL    balance .* 1 outlived Python, 1 freed by another\n(.*\n)*" + (
    r"t 0 +arena of t 0 .* 5600 +5600\n(.*\n)*embed_demo: not everything passed \(16 of \d+ claims")

# How scripts end: expression, status, the last line of stderr
ENDS = [
    ("None", 0, ""), ("sys.exit()", 0, ""), ("sys.exit(3)", 3, ""), ("sys.exit(True)", 1, ""),
    ("sys.exit(-1)", 255, ""), ("sys.exit('words')", 1, "words"),
    ("1 / 0", 1, "ZeroDivisionError: division by zero"),
    ("exec('x = )')", 1, "SyntaxError: unmatched ')'"),
    ('host.threads("t", lambda rank: sys.exit(3))', 3, ""),
]
ARRAYS = """
import ctypes, sys, numpy
core = getattr(numpy, "_core", None) or numpy.core
def leak(): ctypes.pythonapi.Py_IncRef(ctypes.py_object(numpy.ones(700)))
sys.kept, loop = numpy.ones(300), [numpy.ones(9)]
loop.append(loop)
sys.kept.resize(500, refcheck=False)
print(sys.argv, core.multiarray.get_handler_name(sys.kept), eval(sys.argv[1]))
"""
SCRIPTS = {
    "arrays.py": ARRAYS,
    "beside.py": "word = 'found'\n",
    "classes.py": "import threading, numpy\n"
    "thread = threading.Thread(target=print)\nthread.start(), thread.join()\n"
    "class Keeps: array = numpy.ones(3)\n",
    "empty.py": "",
    "end.py": "import sys, host\neval(sys.argv[1])\n",
    "environment.py": "import os, sys, numpy, only_here\nos.chdir('/')\n"
    "print(only_here.word, sys.prefix != sys.base_prefix, os.path.exists(sys.executable))\n",
    "gil.py": "import host, numpy, sys\n"
    "print(getattr(sys, '_is_gil_enabled', lambda: True)())\n",
    "quantile.py": "import threading, numpy\n"
    "thread = threading.Thread(target=print)\nthread.start(), thread.join()\n"
    "numpy.quantile(numpy.ones(3), 0.5)\n",
    "tell.py": "import sys, beside\nprint(sys.argv, __name__, __file__, beside.word)\n",
    "text.so": "text\n",
}

DEFAULTS = "-DHANDLER=nep49_handler -DREALLOC=own_realloc -DVERSION=1 -DLOSES=0 -DGETTER=0"
OWNS = {
    "good": "", "newer": "-DVERSION=2", "holey": "-DREALLOC=NULL", "nothing": "-DHANDLER=other",
    "nowhere": "-DHANDLER=other -DGETTER=1", "loses": "-DLOSES=1",
}

NOTHING = r"\A\Z"
# command, status, stdout, stderr; 74496 of the bytes are those of demo.py, which INSIDE imports
RUNS = [
    ("DEMO empty.py", 0, r"\nmain +aligned( +0){8}\n", NOTHING),
    ("DEMO -H BUILD/handlers/shift_header.so empty.py", 0, r"\nmain +shift_header ", NOTHING),
    ("DEMO --handler=./good.so INSIDE name()", 0, r"\n'gut \\xf6'\n(.*\n)*main +gut ", NOTHING),
    ("DEMO tell.py", 0, r"\A\['tell.py'\] __main__ (/.*)?/tell.py found\n", NOTHING),
    ("DEMO -H aligned -- tell.py --handler x -H a.py", 0,
     r"\A\['tell.py', '--handler', 'x', '-H', 'a.py'\] __main__ ", NOTHING),
    ("DEMO links/tell.py", 0, r"\A\['links/tell.py'\] __main__ \S+ found\n", NOTHING),
    ("DEMO --python venv/bin/python environment.py", 0, r"\Afrom the environment True True\n", ""),
    ("DEMO gil.py", 0, r"\A%s\n" % HAS_GIL, NOTHING),
    ("DEMO quantile.py", 0, r"^PASS    balance  0 blocks of 0.0 MB outlived the script, 0 outlived",
     NOTHING),
    ("DEMO INSIDE figures()", 0, r"main .* 2074499 +74526 +0\n\n.*a size not asked for: 1\n", ""),
    ("DEMO INSIDE stay_alive()", 0, r"^main .* 87312 +0\n", NOTHING),
    ("DEMO INSIDE shared()", 0, r"^main +aligned +\d+ +\d+ +\d{3,} ", NOTHING),
    ("DEMO --help", 0, r"\Ausage: embed_demo", NOTHING),
    ("DEMO nosuch.py", 2, NOTHING, r"\Aembed_demo: nosuch.py: No such file or directory\n\Z"),
    ("DEMO empty.py/x", 2, NOTHING, "embed_demo: empty.py/x: Not a directory\n"),
    ("DEMO --nope", 2, NOTHING, r"unrecognized option '--nope'\nusage: embed_demo \[--handler"),
    ("DEMO -H", 2, NOTHING, r"option requires an argument -- 'H'\nusage: "),
    ("DEMO --python=nosuch empty.py", 2, NOTHING, "embed_demo: nosuch: No such file or directory"),
    ("DEMO --python=bare/bin/python empty.py", 4, NOTHING, "No module named 'numpy'"),
    ("DEMO -H nosuch empty.py", 3, NOTHING, "embed_demo: .*nosuch.so: cannot open shared object"),
    ("DEMO -H ./text.so empty.py", 3, NOTHING, "./text.so: (file too short|invalid ELF header)"),
    ("DEMO -H ./nothing.so empty.py", 3, NOTHING, "embed_demo: ./nothing.so: exports no handler\n"),
    ("DEMO -H ./newer.so empty.py", 3, NOTHING, "./newer.so: is not of version 1, or lacks a func"),
    ("DEMO -H ./holey.so empty.py", 3, NOTHING, "./holey.so: is not of version 1, or lacks a func"),
    ("DEMO -H ./nowhere.so empty.py", 77, NOTHING, "nowhere.so: cannot work here: no such device"),
    ("MINIMAL arrays.py 1", 0,
     r"\A\['arrays.py', '1'\] counting 1\n\d+ blocks were made, 0 are left\n\Z", NOTHING),
    ("MINIMAL arrays.py 1/0", 1, r"\A\d+ blocks were made, 0 are left\n", "\nZeroDivisionError"),
    ("MINIMAL arrays.py sys.exit(3)", 3, NOTHING, NOTHING),
    ("MINIMAL arrays.py leak()", 1, "\n[1-9]\\d* blocks were made, 1 are left", NOTHING),
    ("MINIMAL nosuch.py", 2, NOTHING, r"\Ausage: minimal SCRIPT"),
    ("MINIMAL", 2, NOTHING, r"\Ausage: minimal SCRIPT"),
]


def matches(result, status, stdout, stderr):
    return (result.code == status and re.search(stdout, result.stdout, re.M)
            and re.search(stderr, result.stderr, re.M))


def demo(*arguments, **more):
    return suite.run([DEMO] + list(arguments), **more)


def all_balanced(result):
    """Claims were made, none was refused, and nothing is left."""
    return (re.search(r"^embed_demo: everything passed \(\d+ claims?\)\n\Z", result.stdout, re.M)
            and "FAIL" not in result.stdout)


def picture_side(path):
    """How wide and high a PNG file is, if it is whole, and shows something."""
    with open(path, "rb") as file:
        data = file.read()
    side, length = struct.unpack_from(">16xI13xI", data)
    crc, end = struct.unpack_from(">I4x4s", data, 41 + length)
    rows = zlib.decompress(data[41:41 + length])
    good = (data.startswith(b"\x89PNG\r\n\x1a\n") and zlib.crc32(data[37:41 + length]) == crc
            and end == b"IEND" and len(rows) == side * (3 * side + 1) and len(set(rows)) > 99)
    return side if good else 0


def everything(tap):
    """The script that ships."""
    used = sum(os.times()[2:4])
    result = demo()
    seconds = sum(os.times()[2:4]) - used
    passed = [line[8:] for line in result.stdout.splitlines() if line.startswith("PASS")]
    for claim, line in zip(CLAIMS, passed + [""] * len(CLAIMS)):
        tap.point(re.match(claim, line), "claims: " + claim, line)
    tap.point(result.code == 0 and len(passed) == len(CLAIMS) and not result.stderr
              and all_balanced(result), "and nothing else", result)
    rows = re.findall(r"^(?:main|threads [0-3]|traced 0|wave [0-3]) .*\d +(\d+) +0$",
                      result.stdout, re.M)
    tap.point(len(rows) == 10 and rows.count("0") == 5, "five of ten had arrays at the end", result)
    tap.point(re.search(r"^frees of NULL: [1-9]\d*; with a size not asked for: [1-9]",
                        result.stdout, re.M), "what NumPy gets wrong is seen", result)
    tap.point(seconds < 10 * suite.SLOWDOWN, "in less than ten seconds of work", seconds)
    tap.point(picture_side("wave.png") == 768, "the picture is one", picture_side("wave.png"))
    for handler in "aligned arena cache guard hugepage shift_header shm trace".split():
        result = demo("--handler", handler, DEMO_PY, "48", "small.png")
        tap.point(matches(result, 0, r"^main +%s " % handler, NOTHING) and all_balanced(result)
                  and result.stdout.count("\nPASS") == len(CLAIMS) - 1,
                  "all of it on " + handler, result)


def refusals(tap):
    result = demo(INSIDE, *[expression for expression, _ in REFUSED])
    said = result.stdout.split("== ")[1:] + [""] * len(REFUSED)
    for (expression, expected), words in zip(REFUSED, said):
        tap.point(words.startswith(expression + "\n") and re.search(expected, words, re.M),
                  "refused: " + expression, words if words else result)
    tap.point(result.code == 1 and re.search(AT_THE_END, result.stdout), "at the end", result)


def runs(tap):
    for command, status, stdout, stderr in RUNS:
        words = command.replace("BUILD", BUILD).split()
        result = suite.run([globals().get(word, word) for word in words])
        balanced = "\nPASS    balance" in "\n" + result.stdout or stdout == NOTHING
        tap.point(matches(result, status, stdout, stderr) and (
                  balanced or words[0] == "MINIMAL" or "--help" in words), command, result)
    result = demo("classes.py")
    expected = r"^%s  balance  1 blocks of 0.0 MB outlived the script, %d outlived Python"
    expected %= ("FAIL  ", 1) if KEEPS_CLASSES else ("PASS  ", 0)
    tap.point(matches(result, KEEPS_CLASSES, expected, NOTHING),
              "an array that a class keeps outlives a free-threaded 3.13 alone", result)
    result = suite.run(["sh", "-c", "echo 'print(__file__)' | exec \"$0\" /dev/stdin", DEMO])
    tap.point(matches(result, 0, r"\A/dev/stdin\n", NOTHING), "a script from a pipe", result)
    for expression, status, line in ENDS:
        result = demo("end.py", expression)
        tap.point(result.code == status and (result.stderr.splitlines() or [""])[-1] == line
                  and "PASS    balance " in result.stdout, expression, result)
    result = demo(env={"NEP49_ALIGNMENT": "3"})
    tap.point(matches(result, 77, "", "aligned: cannot work here: NEP49_ALIGN"), "77", result)
    result = demo("empty.py", env={"PYTHONHOME": "/nonexistent"})
    tap.point(matches(result, 4, NOTHING, "Python cannot be started: [Ff]ail"), "no Python", result)
    with open("/dev/full", "w") as full:
        result = demo("empty.py", stdout=full)
        tap.point(result.code == 1 and "stdout cannot be written" in result.stderr, "full", result)


def interrupted(tap):
    """Ctrl-C, once the script has said that it begins."""
    for what, times in (("forever()", 1), ("spins()", 1), ("demo.Pool(4000, 4).run()", 1),
                        ("sleeps()", 2)):
        child = subprocess.Popen([DEMO, "-H", "shm" if times == 1 else "aligned", INSIDE, what],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        begun = child.stdout.readline()
        for _ in range(times):
            time.sleep(0.5 * suite.SLOWDOWN)
            child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
        result = suite.Result(child.returncode, begun + out, err)
        balanced = re.search("^PASS    balance .* 0 outlived Python, 0 freed by another", out, re.M)
        good = "KeyboardInterrupt" in err and balanced
        tap.point(result.code == 130 and (good if times == 1 else "interrupted again" in err),
                  "Ctrl-C ends " + what, result)


def limits(tap):
    """Pictures that do not fit on a disk, and threads that cannot all be started."""
    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    def few_threads():  # each has a stack of a GiB
        resource.setrlimit(resource.RLIMIT_STACK, (1 << 30, 1 << 30))
        resource.setrlimit(resource.RLIMIT_AS, (6 * 10**9, 6 * 10**9))

    result = demo(DEMO_PY, "64", "wave.png", preexec_fn=small_files)
    tap.point(result.code == 1 and "FAIL    picture  wave.png: File too large" in result.stdout
              and picture_side("wave.png") == 768 and not os.path.exists("wave.png.part"),
              "a picture that does not fit leaves the old one", result)
    if not suite.SANITIZED:  # which needs all addresses there are
        result = demo(INSIDE, 'host.threads("t", lambda rank: [], 20)', preexec_fn=few_threads)
        tap.point(matches(result, 0, "RuntimeError: a thread cannot be started: ", NOTHING)
                  and all_balanced(result), "threads that cannot all be started", result)


def battery(tap):
    """Each of the three handlers by itself.  What the demo does with NumPy is `everything`."""
    symbols = ("get_arena", "get_minimal", "get_tracker")
    some = ["--skip=performance.*"]
    if not suite.LONG:
        some = ["--run=%s.*" % group for group in ("abi", "malloc", "calloc", "realloc", "free")]
    result = suite.conform("--strict", "--jobs=1", *some,
                           *("--handler=./ours.so:" + symbol for symbol in symbols))
    tap.point(result.code == 0 and "\nconformant: 3 of 3 handlers\n" in result.stdout,
              ", ".join(symbols) + ": conformant, without a warning but of speed", result)


def memcheck(tap, name, command, expected):
    """All that memcheck says but the losses of CPython and NumPy: one is ours where the first
    function beneath malloc, and libc, is one of this build."""
    if not os.environ["VALGRIND"]:
        tap.skip(name, "no valgrind")
        return
    options = ["--quiet", "--xml=yes", "--xml-file=memcheck.xml", "--leak-check=full",
               "--show-leak-kinds=definite", "--num-callers=20", "--suppressions=" + suite.SOURCE
               + "/src/runner/memcheck.supp"]
    result = suite.run([os.environ["VALGRIND"]] + options + command, timeout=600,
                       env={"PYTHONMALLOC": "malloc"} if CAN_USE_MALLOC else {})
    if "Valgrind: debuginfo reader" in result.stderr:
        tap.skip(name, "this valgrind cannot read what this compiler wrote for debuggers")
        return
    said = []
    for error in ElementTree.parse("memcheck.xml").iter("error"):
        objects = [frame.findtext("obj", "") for frame in error.find("stack").iter("frame")]
        beneath = [path for path in objects if not re.search("/vgpreload|/libc[.-]", path)] + [""]
        if error.findtext("kind") != "Leak_DefinitelyLost" or beneath[0].startswith(BUILD):
            said.append(error.findtext("xwhat/text") or ElementTree.tostring(error, "unicode"))
    good = re.fullmatch(expected, "\n".join(said)) and "FAIL" not in result.stdout
    tap.point(good and result.code == 0, name, "\n".join(said) + str(result))


def prepare():
    for name, text in SCRIPTS.items():
        with open(name, "w") as file:
            file.write(text)
    os.mkdir("links")
    os.mkdir("folder")
    os.symlink("../tell.py", "links/tell.py")
    for name, flags in OWNS.items():
        suite.build(TESTS + "/embed_own.c", name + ".so", "-w", *DEFAULTS.split(), *flags.split())
    suite.build(TESTS + "/embed_ours.c", "ours.so", SOURCES + "/arena.c", SOURCES + "/tracker.c",
                "-I", numpy.get_include(), "-I", sysconfig.get_paths()["include"])
    for venv in ("bare", "venv"):
        subprocess.run([suite.PYTHON, "-m", "venv", "--without-pip", venv], check=True)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = os.path.relpath(suite.run(["venv/bin/python", "-c", ask]).stdout.strip()) + "/"
    with open(site + "numpy.pth", "w") as file:
        file.write(os.path.dirname(os.path.dirname(numpy.__file__)))
    with open(site + "only_here.py", "w") as file:
        file.write("word = 'from the environment'")


def main():
    for variable in list(os.environ):
        if re.match("PYTHON.|NEP49_", variable):
            del os.environ[variable]
    os.environ.update(OPENBLAS_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    tap = suite.Tap()
    if not os.path.exists(DEMO):
        suite.skip_all("embed_demo was not built, for want of a libpython with headers")
    with suite.scratch() as folder:
        os.chdir(folder)
        prepare()
        for part in (everything, refusals, runs, interrupted, limits, battery):
            part(tap)
        with open(SOURCES + "/minimal.c") as code, open(TESTS + "/../docs/embedding.md") as page:
            tap.point(code.read() in page.read(), "docs/embedding.md shows minimal.c as it is")
        if suite.LONG:
            memcheck(tap, "memcheck sees the block that the handler loses, and no other there",
                     [DEMO, "-H", "./loses.so", DEMO_PY, "24", "w.png"], "1,234 bytes in 1 block.*")
            memcheck(tap, "memcheck sees no error in minimal", [MINIMAL, "arrays.py", "1"], "")
        os.chdir("..")
    tap.end()


if __name__ == "__main__":
    main()
