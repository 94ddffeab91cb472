# SPDX-License-Identifier: BSD-3-Clause
"""tools/search sees each kind of thing that it is to find, in statements that do it by
themselves, whatever this NumPy does; and says nothing of one that does it right.
"""

import ctypes
import os
import sys

import defects_suite
import suite

HELPERS = """
import os, signal
def careless(a):
    try:
        return a.copy()
    except MemoryError:
        return None
def lossy(a):
    try:
        a.copy()
    except MemoryError:
        a[...] = 9
        raise
def crashing(a):
    try:
        a.copy()
    except MemoryError:
        os.kill(os.getpid(), signal.SIGSEGV)
def confused(a):
    try:
        a.copy()
    except MemoryError:
        raise SystemError
def keeping(a):
    try:
        a.copy()
    except MemoryError:
        os.kept = values('i4', (7,))
        raise
"""
# What is to be said of a program: the kind, and whether a request was refused.
EXPECTED = {
    "r = a.copy()": set(),
    "r = careless(a)": {("differs", True)},
    "lossy(a)": {("loses", True)},
    "crashing(a)": {("crash", True)},
    "confused(a)": {("SystemError", True)},
    "keeping(a)": {("leak", True)},
    "r = np.empty(9, 'u1')": {("fresh", False)},
    "os.abort()": {("crash", False)},
}


def main():
    if suite.SANITIZED:
        suite.skip_all("a handler with a sanitizer wants a Python with one")
    result = suite.run([suite.PYTHON, "-c", "import hypothesis"])
    if result.code != 0:
        suite.skip_all("there is no hypothesis: pip install hypothesis")
    if os.path.realpath(sys.executable) != os.path.realpath(suite.PYTHON):
        os.execv(suite.PYTHON, [suite.PYTHON, "-B"] + sys.argv)
    tap = suite.Tap()
    sys.path.insert(0, os.path.join(suite.SOURCE, "python"))
    import nep49
    with suite.scratch() as folder:
        os.chdir(folder)
        suite.build(os.path.join(defects_suite.TOOLS, "refusing.c"), "refusing.so", "-w", "-I",
                    os.path.join(suite.SOURCE, "handlers"))
        routes = defects_suite.load("search")
        child = routes.Child(ctypes.CDLL("./refusing.so"), nep49.load("./refusing.so"))
        for statement, expected in EXPECTED.items():
            program = ("a = values('i4', (5,))", "exec(%r, globals())" % HELPERS, statement)
            said = {(kind, refused is not None)
                    for (kind, _), refused in routes.judge(child, program, False)}
            tap.point(said == expected, statement, said)
        tap.point(routes.number_of("crash", "sort", "objects", 0) == 2
                  and routes.number_of("crash", "copy", "objects", None) is None
                  and routes.class_of(["", "a.resize(7)"], "crash", 1, None)[0] == 1
                  and routes.class_of(["", "r = np.resize(a, 7)"], "crash", 1, None)[0] != 1,
                  "what is known has its number", "")
        scalar = ("a = values('rational', (0,))", "b = a.byteswap()", "r = np.bytes_(b'x')",
                  "r = r.imag")
        tap.point([routes.kind_of(scalar, at) for at in (1, 2, 3)]
                  == ["rational"] + 2 * ["np.bytes_"], "a statement is about its array or scalar",
                  "")
        tap.point(routes.readable("a", routes.np.array([1], ">i4"))
                  == routes.readable("a", routes.np.array([1], "<i4"))
                  and routes.readable("a", routes.np.array(["1"], "<U1").byteswap())
                  .endswith("Error"), "what differs is values, where they can be read", "")
        os.chdir("..")
    tap.end()


if __name__ == "__main__":
    main()
