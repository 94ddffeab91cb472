# SPDX-License-Identifier: BSD-3-Clause
"""embed_demo and minimal.c: their checks, that each can fail, and how they run a script."""

import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
import xml.etree.ElementTree as ElementTree

import numpy

import suite

BUILD = os.path.realpath(suite.BUILD)
DEMO = os.path.join(BUILD, "embed_demo", "embed_demo")
MINIMAL = os.path.join(BUILD, "embed_demo", "minimal")
HANDLER = os.path.join(BUILD, "handlers", "%s.so")
SOURCES = os.path.join(suite.SOURCE, "embed_demo")
TESTS = os.path.join(suite.SOURCE, "tests")
INSIDE = os.path.join(TESTS, "embed_inside.py")
DEMO_PY = os.path.join(SOURCES, "demo.py")
HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
CAN_USE_MALLOC = not sysconfig.get_config_var("Py_GIL_DISABLED")

THREADS = r"{0} +{1} thread.s. requested .* MB, at most .* MB at once, all in their own arenas"
ARRAYS = r"{0} +{2} arrays outlive their threads, {2} in the arena of their thread"
CHECKS = [
    *(row.format("threads", 4, 36) for row in (THREADS, ARRAYS)),
    r"array    C to Python: 1000 numbers, doubled in place, kept alive by Python, released",
    r"dlpack   C to Python: 1000 numbers, read, kept alive by Python, released",
    r"array    Python to C: a block of the handler, alive while C used it, freed afterwards",
    r"dlpack   Python to C: a block of the handler, alive while C used it, freed afterwards",
    r"traced   tracemalloc reports 2 blocks of 1224000 bytes, the handler 2 of 1224000",
    *(row.format(*each) for each in (("traced", 1, 2), ("wave", 4, 8), ("alone", 1, 2))
      for row in (THREADS, ARRAYS)),
    r"wave     (\d+) x \1 points: 4 threads and one thread compute the same surface",
    r"picture  \S+\.png$",
    r"balance  \d\d blocks outlived the script, 0 outlived Python, 0 went to the wrong handler",
]

# Expressions for embed_inside.py, and what is printed
REFUSED = [
    ('demo.threads("t", swaps, 2)', r"FAIL    t .*2 arrays outlive their threads, 0 in the arena"),
    ('demo.threads("t", strays, 2)', r"FAIL    t .*NOT all in their own arenas"),
    ('demo.threads("t", leaks, 1)', r"PASS    t "),  # reported at the end
    ('demo.lend("l", lambda a: a * 2)', r"FAIL    l .*NOT doubled in place, NOT kept alive"),
    ('demo.lend("l", lambda a: a)', r"FAIL    l .*NOT doubled in place, kept alive by Python, rel"),
    ('demo.lend("l", keeps)', r"FAIL    l .* doubled in place, kept alive by Python, NOT released"),
    ("kept.clear()", "None"),
    ('demo.borrow("b", holds)', r"FAIL    b .*: a block of the handler, alive .*, NOT freed"),
    ('demo.borrow("b", lambda: numpy.frombuffer(bytes(80)))', r"FAIL    b .*NOT a block of the h"),
    ("host.borrow(numpy.ones(9)[::2].__dlpack__())", r"TypeError: not one row of contiguous fl"),
    ('demo.threads("t", lambda rank: [numpy.zeros(1 << 21)])', r"MemoryError: Unable to allocate"),
    ('host.own_arena("t", 1 << 60)', r"MemoryError: no 1152921504606846976 bytes for an arena"),
    ("fails()", r"(ZeroDivision|BrokenBarrier)Error"),
    ("plain_thread()", "^None$"),
    ("growth(1000)", "^True$"),
]
AT_THE_END = (r"t 0 +arena .* 5600 +5600\n(.*\n)*FAIL    balance .* 1 outlived Python, 1 went to "
              r"the wrong handler\nembed_demo: \d+ of \d+ checks passed; the script ended with ")

SCRIPTS = {
    "arrays.py": "import ctypes, sys, numpy\n"
    "core = getattr(numpy, '_core', None) or numpy.core\n"
    "def leak(): ctypes.pythonapi.Py_IncRef(ctypes.py_object(numpy.ones(700)))\n"
    "sys.kept, loop = numpy.ones(300), [numpy.ones(9)]\nloop.append(loop)\n"
    "sys.kept.resize(500, refcheck=False)\n"
    "print(sys.argv, core.multiarray.get_handler_name(sys.kept), eval(sys.argv[1]))\n",
    "beside.py": "word = 'found'\n",
    "empty.py": "",
    "end.py": "import sys\neval(sys.argv[1])\n",
    "environment.py": "import sys, only_here\nprint(only_here.word, sys.prefix != sys.base_prefix)",
    "gil.py": "import host, numpy, sys\nprint(getattr(sys, '_is_gil_enabled', lambda: True)())\n",
    "quantile.py": "import numpy\nnumpy.quantile(numpy.ones(3), 0.5)\n",
    "show.py": "import sys, beside\nprint(sys.argv, __name__, __file__, beside.word)\n",
    "text.so": "text\n",
}
DEFAULTS = "-DHANDLER=nep49_handler -DREALLOC=own_realloc -DVERSION=1 -DLOSES=0 -DGETTER=0"
OWNS = {"good": "", "holey": "-DREALLOC=NULL", "nothing": "-DHANDLER=other",
        "nowhere": "-DHANDLER=other -DGETTER=1", "loses": "-DLOSES=1"}
NOTHING = r"\A\Z"  # of the columns command, status, stdout, stderr
RUNS = [
    ("DEMO empty.py", 0, r"\nmain +aligned( +0){8}\n", NOTHING),
    ("DEMO --handler ./good.so INSIDE name()", 0, r"\n'gut \\xf6'\n(.*\n)*main +gut ", NOTHING),
    ("DEMO links/show.py -x", 0, r"\A\['links/show.py', '-x'\] __main__ /\S+/show.py found\n", ""),
    ("DEMO --python venv/bin/python environment.py", 0, r"\Afrom the environment True\n", ""),
    ("DEMO gil.py", 0, r"\A%s\n" % HAS_GIL, NOTHING),
    ("DEMO quantile.py", 0, r"^PASS    balance  0 blocks outlived the script, 0 outlived", NOTHING),
    ("DEMO --nope", 2, NOTHING, r"\Aembed_demo: --nope: usage: embed_demo \[--handler"),
    ("DEMO nosuch.py", 2, NOTHING, r"\Aembed_demo: nosuch.py: No such file or directory\n\Z"),
    ("DEMO --python bare/bin/python empty.py", 4, NOTHING, "No module named 'numpy'"),
    ("DEMO --handler ./text.so empty.py", 3, NOTHING, "text.so: (file too short|invalid ELF head)"),
    ("DEMO --handler ./nothing.so empty.py", 3, NOTHING, "./nothing.so: exports no handler\n"),
    ("DEMO --handler ./holey.so empty.py", 3, NOTHING, "./holey.so: is not of version 1, or lacks"),
    ("DEMO --handler ./nowhere.so empty.py", 77, NOTHING, "nowhere.so: no such device"),
    ("DEMO end.py sys.exit(3)", 3, "^PASS    balance", NOTHING),
    ("DEMO end.py sys.exit('words')", 1, "^PASS    balance", "words\n"),
    ("DEMO end.py 1/0", 1, "^PASS    balance", "\nZeroDivisionError: division by zero"),
    ("MINIMAL arrays.py 1", 0,
     r"\A\['arrays.py', '1'\] counting 1\n\d+ blocks were made, 0 are left\n\Z", NOTHING),
    ("MINIMAL arrays.py 1/0", 1, r"\A\d+ blocks were made, 0 are left\n", "\nZeroDivisionError"),
    ("MINIMAL arrays.py leak()", 1, "\n[1-9]\\d* blocks were made, 1 are left", NOTHING),
    ("MINIMAL nosuch.py", 2, "0 are left", "can't open file .*nosuch.py"),
]


def demo(*arguments):
    return suite.run([DEMO, *arguments])


def everything(tap):
    result = demo()
    passed = [line[8:] for line in result.stdout.splitlines() if line.startswith("PASS")]
    for check, line in zip(CHECKS, passed + [""] * len(CHECKS)):
        tap.point(re.match(check, line), "checks: " + check, line)
    tap.point(result.code == 0 and len(passed) == len(CHECKS) and not result.stderr,
              "and nothing else", result)
    table = (r"\nthreads 0 +arena .* 232000 +0\n(.*\n)*NumPy called free with NULL [1-9]\d* times, "
             r"and with a wrong size [1-9]")
    tap.point(re.search(table, result.stdout), "the table", result)
    with open("wave.png", "rb") as file:
        data = file.read(24)
    tap.point(data[:4] == b"\x89PNG" and data[16:] == b"\0\0\3\0" * 2, "the picture", data)
    for handler in "aligned arena cache guard hugepage shift_header shm trace".split():
        result = demo("--handler", HANDLER % handler, DEMO_PY, "48", "small.png")
        tap.point(result.code == 0 and re.search(r"^main +%s " % handler, result.stdout, re.M)
                  and result.stdout.count("PASS ") == len(CHECKS), "on " + handler, result)


def refusals(tap):
    result = demo(INSIDE, *[expression for expression, _ in REFUSED])
    printed = result.stdout.split("== ")[1:] + [""] * len(REFUSED)
    for (expression, expected), words in zip(REFUSED, printed):
        tap.point(words.startswith(expression + "\n") and re.search(expected, words, re.M),
                  "refused: " + expression, words if words else result)
    tap.point(result.code == 1 and re.search(AT_THE_END, result.stdout), "at the end", result)


def runs(tap):
    for command, status, stdout, stderr in RUNS:
        result = suite.run([globals().get(word, word) for word in command.split()])
        tap.point(result.code == status and re.search(stdout, result.stdout, re.M)
                  and re.search(stderr, result.stderr, re.M), command, result)
    child = subprocess.Popen([DEMO, INSIDE, "forever()"], stdout=subprocess.PIPE, text=True,
                             stderr=subprocess.PIPE,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    child.stdout.readline()
    time.sleep(0.5 * suite.SLOWDOWN)
    child.send_signal(signal.SIGINT)
    out, errors = child.communicate(timeout=60)
    tap.point(child.returncode == 130 and "KeyboardInterrupt" in errors
              and "PASS    balance" in out, "Ctrl-C ends it", out + errors)


def battery(tap):
    """Each of the three handlers by itself."""
    some = ["--skip=performance.*"]
    if not suite.LONG:
        some = ["--run=%s.*" % group for group in ("abi", "calloc", "free")]
    result = suite.conform("--strict", "--jobs=1", *some, "--handler=./ours.so:get_arena",
                           "--handler=./ours.so:get_minimal", "--handler=./ours.so:get_tracker")
    tap.point(result.code == 0 and "\nconformant: 3 of 3 handlers\n" in result.stdout,
              "each is conformant, without a warning except about speed", result)


def memcheck(tap):
    """memcheck reports the block that a handler loses, and nothing else.  It is not counted if the
    first caller beneath malloc and libc is not of this build: CPython and NumPy leak."""
    options = ["--quiet", "--xml=yes", "--xml-file=memcheck.xml", "--leak-check=full",
               "--show-leak-kinds=definite", "--num-callers=20", "--suppressions=" + suite.SOURCE
               + "/src/runner/memcheck.supp"]
    result = suite.run([os.environ["VALGRIND"], *options, DEMO, "--handler", "./loses.so", DEMO_PY,
                        "24", "w.png"], timeout=600,
                       env={"PYTHONMALLOC": "malloc"} if CAN_USE_MALLOC else {})
    errors = []
    for error in ElementTree.parse("memcheck.xml").iter("error"):
        objects = [frame.findtext("obj", "") for frame in error.find("stack").iter("frame")]
        beneath = [path for path in objects if not re.search("/vgpreload|/libc[.-]", path)] + [""]
        if error.findtext("kind") != "Leak_DefinitelyLost" or beneath[0].startswith(BUILD):
            errors.append(error.findtext("xwhat/text") or ElementTree.tostring(error, "unicode"))
    tap.point(result.code == 0 and "FAIL" not in result.stdout
              and re.fullmatch("1,234 bytes in 1 block.*", "\n".join(errors)), "memcheck", errors)


def prepare():
    for name, text in SCRIPTS.items():
        suite.write(name, text)
    os.mkdir("links")
    os.symlink("../show.py", "links/show.py")
    for name, flags in OWNS.items():
        suite.build(TESTS + "/embed_own.c", name + ".so", "-w", *DEFAULTS.split(), *flags.split())
    suite.build(TESTS + "/embed_ours.c", "ours.so", "-w", "-I", numpy.get_include(),
                "-I", sysconfig.get_paths()["include"])
    for venv in ("bare", "venv"):
        subprocess.run([suite.PYTHON, "-m", "venv", "--without-pip", venv], check=True)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = os.path.relpath(suite.run(["venv/bin/python", "-c", ask]).stdout.strip()) + "/"
    suite.write(site + "numpy.pth", os.path.dirname(os.path.dirname(numpy.__file__)))
    suite.write(site + "only_here.py", "word = 'from the environment'")


def main():
    for variable in list(os.environ):
        if re.match("PYTHON.|NEP49_", variable):
            del os.environ[variable]
    os.environ.update(OPENBLAS_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    tap = suite.Tap()
    if not os.path.exists(DEMO):
        suite.skip_all("embed_demo was not built, for want of a libpython with headers")
    with suite.scratch(enter=True):
        prepare()
        for part in (everything, refusals, runs, battery):
            part(tap)
        with open(SOURCES + "/minimal.c") as code, open(TESTS + "/../docs/embedding.md") as page:
            tap.point(code.read() in page.read(), "docs/embedding.md shows minimal.c as it is")
        if suite.LONG and os.environ["VALGRIND"]:
            memcheck(tap)
    tap.end()


main()
