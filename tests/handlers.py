# SPDX-License-Identifier: BSD-3-Clause
"""The reference handlers in Python programs, beyond what the battery asks of every handler.

What each makes of its variables; which advise huge pages as NumPy's default handler does; which
keep large blocks; that each can be there before NumPy; trace against tracemalloc on the same
program.
"""

import glob
import itertools
import json
import os
import re
import xml.etree.ElementTree

import suite
from suite import CANNOT_WORK_HERE, CONFORMANT

LIBS = os.path.join(suite.BUILD, "handlers")

# handler, variable, values that it takes, values that it refuses with the variable's name
SETTINGS = [
    ("aligned", "NEP49_ALIGNMENT", ["16", "4096"], ["", "8", "65", "x", "-64", "64k"]),
    ("arena", "NEP49_ARENA_SIZE", ["4K", "65536", "1G"], ["", "4095", "2G", "x", "-1", "1KK"]),
    ("cache", "NEP49_CACHE_BLOCKS", ["0", "1", "256"], ["", "257", "x", "-1", " 1", "1K"]),
    ("guard", "NEP49_GUARD", ["after", "before"], ["", "both", "After"]),
    ("guard", "NEP49_GUARD_KEEP", ["0", "16M", "1G"], ["", "x", "-1", "1T"]),
    ("hugepage", "NEP49_HUGEPAGE_FROM", ["1", "2M", "1G"], ["", "0", "x", "-1", "4MM", "4\n"]),
    ("hugepage", "NEP49_HUGEPAGE_POOL", ["0"], ["", "2", "yes"]),
    ("pinned", "NEP49_CUDART", [], ["", "/no/such.so", "libc.so.6"]),
    ("pinned", "NEP49_PINNED_FROM", [], ["", "0", "x", "1T"]),
    ("shift_header", "NEP49_SHIFT_HEADER_LOG", ["/dev/null"], ["", "/no/such/log", "/", "/no/\n"]),
    ("numa", "NEP49_NUMA", ["local", "interleave"],
     ["", "x", "bind", "bind:", "bind:0,", "bind:1023", "bind:9999999", "interleave:x"]),
    ("numa", "NEP49_NUMA_FROM", ["1", "64K"], ["", "0", "x"]),
    ("shm", "NEP49_SHM_FROM", ["1", "64K", "1M"], ["", "0", "x", "99999999999G"]),
    ("trace", "NEP49_TRACE", ["/dev/null"], ["", "/no/such/report", "/", "/no/\n"]),
    ("trace", "NEP49_TRACE_DEPTH", ["1", "256"], ["", "0", "257", "x"]),
]

# Those that do as NumPy's default handler does with large blocks; others have ways of their own.
ADVISING = ["aligned", "arena", "cache", "jemalloc", "mimalloc", "numa", "shift_header", "trace"]

# Those that keep large blocks for others of the same length.
KEEPING = ["hugepage", "jemalloc", "numa"]

# For jemalloc, which conform sees to by itself.
STATIC_TLS = "glibc.rtld.optional_static_tls=8192"

INSTALL = """\
import ctypes, os, sys
import numpy as np
import nep49
path = sys.argv[1]
nep49.load(path, tried=False).install()
"""

ADVICE = INSTALL + """
def advised(array):
    middle, here = array.ctypes.data + array.nbytes // 2, False
    with open("/proc/self/smaps") as smaps:
        for line in smaps:
            words = line.split()
            if "-" in words[0]:
                begin, end = (int(word, 16) for word in words[0].split("-"))
                here = begin <= middle < end
            elif here and words[0] == "VmFlags:":
                return "hg" in words
large, small = np.empty(4 << 20, "u1"), np.empty(3 << 20, "u1")
print(advised(large), advised(np.zeros(4 << 20, "u1")), advised(small))
"""

SUMS = INSTALL + """
import resource
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
a = np.ones(2 << 20)
a + a
before = faults()
for _ in range(10):
    a + a
taken = faults() - before
zeros = [np.zeros(2 << 20) for _ in range(2)]
print(taken < 45, sum(each.any() for each in zeros))
"""

FIRST = """
import ctypes, sys
library = ctypes.PyDLL(sys.argv[1])
if hasattr(library, "nep49_get_handler"):
    why = ctypes.c_char_p()
    library.nep49_get_handler.restype = ctypes.c_void_p
    if not library.nep49_get_handler(ctypes.byref(why)):
        sys.exit("HandlerError: " + why.value.decode())
import numpy as np
print(np.arange(10).sum())
"""

TRACE = INSTALL + """
import signal, tracemalloc
tracemalloc.start()
keep = []
def grow(n):
    a = np.ones(n)
    return a * 2
def parse():
    return np.fromstring(" ".join(["1"] * 5000), sep=" ")
for i in range(10):
    keep.append(grow(1000 * i + 1))
keep.append(parse())
keep.append(np.fromiter((x for x in range(777)), "i8"))
a = np.zeros(10); a.resize(500, refcheck=False); keep.append(a)
big = grow(1 << 20); del big
domain = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
snapshot = tracemalloc.take_snapshot().filter_traces([domain])
signal.raise_signal(signal.SIGUSR2)  # to this thread: it is seen in the next call
np.empty(3)
for statistic in snapshot.statistics("lineno"):
    print(statistic.size, statistic.traceback[0].lineno)
"""


def program(text, handler, *arguments, **env):
    env["PYTHONPATH"] = os.path.join(suite.SOURCE, "python")
    path = os.path.join(LIBS, handler + ".so")
    return suite.run([suite.PYTHON, "-B", "-c", text, path] + list(arguments), env=env)


def built(handler):
    return os.path.exists(os.path.join(LIBS, handler + ".so"))


def variables_are_known(tap):
    """What a handler reads is tried here, told in the docs, and a keyword of the Python package."""
    with open(os.path.join(suite.SOURCE, "docs", "handlers.md"), encoding="utf-8") as page:
        told = set(re.findall(r"NEP49_\w+", page.read()))
    package = os.path.join(suite.SOURCE, "python", "nep49")
    with open(os.path.join(package, "__init__.py"), encoding="utf-8") as file:
        keywords = set(re.findall(r"NEP49_\w+", file.read()))
    for path in sorted(glob.glob(os.path.join(suite.SOURCE, "handlers", "*.c"))):
        with open(path, encoding="utf-8") as file:
            read = set(re.findall(r'"(NEP49_\w+)"', file.read()))
        handler = os.path.basename(path)[:-2]
        tried = {variable for name, variable, _, _ in SETTINGS if name == handler}
        tap.point(read == tried and read <= told and read <= keywords,
                  "what %s reads is tried, told, and a keyword" % handler,
                  "not in SETTINGS %s, in docs/handlers.md %s, in OPTIONS of nep49 %s"
                  % (sorted(read ^ tried), sorted(read - told), sorted(read - keywords)))


def settings_at_once():
    """Lists of settings, a handler once in each, for one start of conform."""
    of_handler = {}
    for handler, variable, taken, refused in SETTINGS:
        of_handler.setdefault(handler, []).extend(
            (handler, variable, value, value in taken) for value in taken + refused
            if built(handler))
    return [list(filter(None, each)) for each in itertools.zip_longest(*of_handler.values())]


def settings(tap):
    for handler, variable, _, _ in SETTINGS:
        if not built(handler):
            tap.skip(variable, handler + " is not built: install its library, and configure")
    for chosen in settings_at_once():
        words = ["--handler=" + handler for handler, _, _, _ in chosen]
        result = suite.conform("--run=abi.loads", "--json=-", *words,
                               env={variable: value for _, variable, value, _ in chosen})
        reports = json.loads(result.stdout)
        reports = reports if len(chosen) > 1 else [reports]
        for (handler, variable, value, is_taken), report in zip(chosen, reports):
            message = report["properties"][0]["message"]
            no_numa = "this kernel has no NUMA" in message
            if is_taken:
                held = report["exit_code"] == CONFORMANT or (handler == "numa" and no_numa)
            else:
                held = report["exit_code"] == CANNOT_WORK_HERE and (variable in message or no_numa)
            name = "%s='%s'" % (variable, value)
            tap.point(held and "\n" not in message, name.replace("\n", "\\n").replace("#", ""),
                      report)


def trace(tap):
    with suite.scratch() as folder:
        report = os.path.join(folder, "report")
        result = program(TRACE, "trace", NEP49_TRACE=report)
        if not tap.point(result.code == 0, "a traced program ends well", result):
            return
        expected = {int(line): int(size) for size, line in
                    (row.split() for row in result.stdout.splitlines())}
        at_exit = open(report, encoding="utf-8").read()
        rows = re.findall(r"^ *(\d+) +(\d+) +(\d+) +(\d+)  <string>:(\d+) ", at_exit, re.M)
        most = {}
        for at_peak, _, ever, _, line in rows:
            most[int(line)] = (int(at_peak), int(ever))
        tap.point(len(expected) >= 4 and all(
            ever >= expected.get(line, 0) for line, (_, ever) in most.items()),
            "at exit each line's most is no less than what tracemalloc saw live", at_exit)
        tap.point(any(at_peak >= 1 << 23 for at_peak, _ in most.values()),
                  "the large temporary is seen at the peak, although it is gone", at_exit)
        picture = xml.etree.ElementTree.parse(report + ".svg").getroot()
        titles = [title.text for title in picture.iter("{http://www.w3.org/2000/svg}title")]
        tap.point(any(title.startswith("grow (") for title in titles),
                  "the flame graph is XML and has the function that made most", titles)
        live_at_signal = {}
        stop = TRACE + "\nprint(open(os.environ['NEP49_TRACE']).read())\n"
        result = program(stop, "trace", NEP49_TRACE=report)
        for row in re.findall(r"^ *\d+ +(\d+) +\d+ +\d+  <string>:(\d+) ", result.stdout, re.M):
            live_at_signal[int(row[1])] = live_at_signal.get(int(row[1]), 0) + int(row[0])
        live_at_signal = {line: size for line, size in live_at_signal.items() if size}
        tap.point(live_at_signal == expected,
                  "at SIGUSR2 live bytes by line are those of tracemalloc",
                  "%r, and not %r\n%s" % (live_at_signal, expected, result))


def programs():
    """Programs to run with a handler: what is shown, the program, its output, its environment.

    mimalloc 3 advises all that it has, of itself, if it is not told not to.  A sum of 16 MiB takes
    nine page faults even where all its pages are huge.
    """
    for handler in filter(built, ADVISING):
        for told, expected in (("1", "True True False\n"), ("0", "False False False\n")):
            yield (handler, "advises blocks of 4 MiB, with NUMPY_MADVISE_HUGEPAGE=" + told, ADVICE,
                   expected, {"NUMPY_MADVISE_HUGEPAGE": told, "MIMALLOC_ALLOW_THP": "0"})
    for handler in filter(built, KEEPING):
        yield (handler, "keeps 16 MiB, which take no page faults again; zeros is zero", SUMS,
               "True 0\n", {"NEP49_NUMA": "interleave"})
    for path in sorted(glob.glob(os.path.join(LIBS, "*.so"))):
        yield os.path.basename(path)[:-3], "is loaded before NumPy", FIRST, "45\n", {}


def main():
    tap = suite.Tap()
    variables_are_known(tap)
    settings(tap)
    probe = program(INSTALL, "aligned")
    if probe.code != 0:
        tap.skip("programs", "a handler cannot be loaded into " + suite.PYTHON)
        tap.end()
    for handler, what, text, expected, env in programs():
        result = program(text, handler, GLIBC_TUNABLES=STATIC_TLS, **env)
        if "HandlerError" in result.stderr:
            tap.skip("%s %s" % (handler, what), result.stderr.splitlines()[-1])
        else:
            tap.point(result.code == 0 and result.stdout == expected, "%s %s" % (handler, what),
                      result)
    trace(tap)
    tap.end()


main()
