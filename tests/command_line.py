# SPDX-License-Identifier: BSD-3-Clause
"""The command line: every option, and every wrong use of it.

Wrong use gets one line on stderr, which names the file or the option and says what to do, the
design's exit code, and nothing else: no traceback, no report, no temporary file.
"""

import os
import re
import shutil
import signal
import struct
import subprocess
import sys

import suite
from suite import CANNOT_LOAD, CANNOT_WORK_HERE, CONFORMANT, HARNESS_BROKE, NOT_CONFORMANT, USAGE

HANDLER = r"""
#include <stdlib.h>
#include "nep49.h"
static void *m(void *c, size_t n) { (void)c; return malloc(n); }
static void *z(void *c, size_t n, size_t e) { (void)c; return calloc(n, e); }
static void *r(void *c, void *p, size_t n) { (void)c; return realloc(p, n); }
static void f(void *c, void *p, size_t n) { (void)c, (void)n; free(p); }
#define FUNCTIONS {NULL, m, z, r, f}
"""
SOUND = HANDLER + 'NEP49_EXPORT PyDataMem_Handler nep49_handler = {"plain", 1, FUNCTIONS};\n'

# name of the object, its source
OBJECTS = {
    "sound": SOUND,
    "getter": HANDLER + 'static PyDataMem_Handler h = {"got", 1, FUNCTIONS};\n'
    "PyDataMem_Handler *nep49_get_handler(const char **why) { (void)why; return &h; }",
    "other_name": HANDLER + 'NEP49_EXPORT PyDataMem_Handler mine = {"mine", 1, FUNCTIONS};\n'
    "NEP49_EXPORT const char too_small[16];",
    "no_symbol": "int nothing;",
    "hidden": SOUND.replace("NEP49_EXPORT", '__attribute__((visibility("hidden")))'),
    "function_for_data": "void nep49_handler(void) { }",
    "data_for_function": "long nep49_get_handler[100] = {1};",
    "thread_local": "__thread char nep49_handler[1000] = {1};",
    "both": SOUND + "PyDataMem_Handler *nep49_get_handler(const char **why)"
    " { (void)why; return &nep49_handler; }",
    "pointer": "void *nep49_handler;",
    "claims_function": SOUND + "void nep49_claims(void) { }",
    "claims_open": SOUND + "char nep49_claims[4] = {'a', 'b', 'c', 'd'};",
    "undefined": SOUND + "extern int nowhere_to_be_found(void);\n"
    "int call(void) { return nowhere_to_be_found(); }",
    "unfit": "#include \"nep49.h\"\nPyDataMem_Handler *nep49_get_handler(const char **why)\n"
    '{ *why = "no huge pages\\nconform: forged \\033[31m"; return NULL; }',
    "unfit_silently": "#include \"nep49.h\"\nPyDataMem_Handler *nep49_get_handler(const char **why)\n"
    "{ (void)why; return NULL; }",
    "no_memory": SOUND.replace("return malloc(n);", "(void)n; return NULL;"),
}

MAN_PAGE = os.path.join(suite.SOURCE, "docs", "conform.1")

# Which options each command takes, besides those that choose it.
FORMATS = re.findall(r"(?m)^ +--(\w+)=FILE +also a report in ", suite.conform("--help").stdout)
ALONE = set("claim color daily-seed handler numpy python quiet run seed skip strict verbose with-subject".split()) | set(FORMATS)
TAKEN = {
    (): ALONE | set("baseline expect fail-on jobs max-time memcheck quick repeat repro shuffle timeout tsan until-fail".split()),
    ("--no-fork",): ALONE,
    ("--exec",): set("claim handler python quiet stacks timeout".split()),
    ("--exec", "--record=x"): set("claim handler python quiet stacks timeout untimed".split()),
    ("--exec", "--fail-each"): set("claim handler keep-failing most-runs python quiet timeout verbose".split()),
    ("--replay=x",): set("claim handler quiet timeout unchecked".split()),
    ("--replay=x", "--print"): set(),
    ("--bench",): set("handler html json max-time python quiet timeout".split()),
    ("--search",): set("claim handler jobs memory quiet repro seed timeout trace unchecked".split()),
    ("--compare",): set("fail-on quiet strict".split()),
    ("--from",): set("badge html markdown".split()),
    ("--verify",): set("quiet".split()),
    ("--list",): set("numpy run skip".split()),
    ("--init=x",): set(),
    ("--list-handlers",): set(),
    ("--explain=x",): set(),
    ("--clauses",): set("numpy run skip".split()),
}
# Whether --list shows what is about NumPy itself.
NUMPYS = [([], False), (["--run=*"], False), (["--run=*.*-size", "--run=r*"], False),
          (["--skip=free.*"], False), (["--numpy"], True), (["--run=runtime.*", "--run=*"], True),
          (["--numpy", "--run=*-size"], True), (["--numpy", "--skip=runtime.*"], False)]
VALUES = {"color": "never", "claim": "alignment=64", "fail-on": "new"}  # others are "1"

# Names that a shell, a terminal or a report could trip over.
AWKWARD = ["two words.so", "it's $HOME `id`.so", "caf\u00e9 \u20ac.so", "a\nb\tc.so", "-dash.so",
           "colon:in.so", b"broken\xff\xfe.so"]


def other_python(change):
    """This interpreter, after that line: a stand-in for one that need not be on the machine."""
    return b'#!/bin/sh\nexec %s -c "import sys; %s; exec(sys.argv[-1])" "$@"\n' % (
        os.fsencode(suite.PYTHON), change.encode())


def elf_header(machine, elf_class=2, order=1, kind=3):
    """The first bytes of an ELF file, as of a shared object for another machine."""
    ends = "<" if order == 1 else ">"
    ident = b"\x7fELF" + bytes([elf_class, order, 1, 0]) + bytes(8)
    return ident + struct.pack(ends + "HHI", kind, machine, 1) + bytes(100)


def make_files():
    for name, source in OBJECTS.items():
        with open(name + ".c", "w") as file:
            file.write(source)
        flags = ["-w"] + (["-fcommon"] if name == "pointer" else [])
        suite.build(name + ".c", name + ".so", *flags)
    with open("main.c", "w") as file:
        file.write("int main(void) { return 0; }")
    suite.build("sound.c", "linked.so", "-Wl,--no-as-needed", "./getter.so")
    suite.build("sound.c", "sound.o", "-c", "-fPIC", shared=False)
    suite.build("main.c", "program", "-no-pie", shared=False)
    suite.build("main.c", "pie", "-fPIE", "-pie", shared=False)
    for name in AWKWARD:
        shutil.copy("sound.so", os.fsencode(name))
    with open("sound.so", "rb") as file:
        whole = file.read()
    for name, data in {
        "text.so": b"#!/bin/sh\necho hello\n",
        "empty.so": b"",
        "header_only.so": whole[:64],
        "half_a_header.so": whole[:20],
        "truncated.so": whole[: len(whole) // 2],
        "i386.so": elf_header(3, elf_class=1),
        "riscv.so": elf_header(243),
        "big_endian.so": elf_header(21, order=2),
        "archive.so": b"!<arch>\n" + bytes(60),
        "plain_file": b"a file\n",
        "not_python": b"#!/bin/sh\necho Pythonesque\n",
        "old_python": other_python("sys.version_info = (2, 7, 18)"),
        "pypy_python": other_python("sys.version += ' [PyPy 7.3.17]'"),
        "silent_python": b"#!/bin/sh\nexit 1\n",
        "dying_python": b"#!/bin/sh\nkill -KILL $$\n",
    }.items():
        with open(name, "wb") as file:
            file.write(data)
        if name.endswith("_python"):
            os.chmod(name, 0o755)
    subprocess.run([suite.PYTHON, "-m", "venv", "--without-pip", "bare"], check=True)
    os.mkdir("folder")
    os.mkdir("folder.so")
    os.mkfifo("fifo.so")
    os.symlink("sound.so", "link.so")
    os.symlink("sound.c", "link.c")
    os.symlink("nowhere.so", "dangling.so")
    os.symlink("loop.so", "loop.so")


def option_cases():
    """Wrong uses of options: what, arguments, what stderr says."""
    H = ["--handler=./sound.so"]
    yield "no argument at all", [], r"no handler to test; say --handler=PATH"
    yield "an argument that is no option", ["./sound.so"], r"\./sound\.so: .*--handler=\./sound\.so"
    yield "a second argument", H + ["x"], r"x: an argument that is not an option"
    yield "an unknown long option", ["--bogus"], r"--bogus: no such option; see conform --help"
    yield "an unknown long option with a value", ["--bogus=1"], r"--bogus: no such option"
    yield "an unknown letter", ["-x"], r"-x: no such option"
    yield "an unknown letter behind a known one", ["-vx"], r"-x: no such option"
    yield "an unknown letter before a known one", ["--list", "-xv"], r"-x: no such option"
    yield "a letter that is no ASCII", ["-\u00e9"], r"-\\xc3: no such option"
    yield "a control character for a letter", ["-\033"], r"-\\x1b: no such option"
    yield "a long option in full and more", ["--listing"], r"--listing: no such option"
    yield ("a slip in a long option", ["--hanlder=x"],
           r"--hanlder: no such option \(did you mean --handler\?\); see conform --help")
    yield "an ambiguous abbreviation", ["--l"], r"--l is short for .*--list, --list-handlers"
    yield "an ambiguous one with a value", ["--j=1"], r"--j is short for .*--jobs, .*--junit, .*--json"
    yield "another ambiguous one", ["--s=1"], r"--s is short for .*--skip, .*--stacks"
    yield "ambiguous between opposites", ["--ver"], r"--verbose, --version"
    for name in ("clauses", "exec", "fail-each", "help", "list", "list-handlers", "memcheck",
                 "no-fork", "keep-failing", "quiet", "shuffle", "stacks", "strict", "until-fail",
                 "untimed", "verbose", "version"):
        yield "a value for --" + name, ["--%s=1" % name], r"--%s takes no value" % name
    yield "a value for an abbreviation", ["--quie=1"], r"--quiet takes no value"
    for name in ("color", "explain", "handler", "jobs", "json", "junit", "most-runs", "python", "repeat", "run",
                 "seed", "skip", "tap", "timeout"):
        yield "--%s without its value" % name, ["--" + name], r"--%s needs a value" % name
    yield "-j without its value", ["-j"], r"-j needs a value"
    yield "-H without its value", ["-vH"], r"-H needs a value"
    for value in ("0", "65", "-1", "1.5", "1e1", "two", "", " 2", "2 ", "0x2", "99999999999999999999"):
        yield "--jobs=" + value, H + ["--jobs=" + value], r"--jobs=.*: give a whole number from 1"
    for value in ("0", "-1", "1.5", "", "1000001"):
        yield "--repeat=" + value, H + ["--repeat=" + value], r"--repeat=.*: give a whole number"
    for value in ("0", "-1", "nan", "inf", "1s", "", " 1", "1e9", "0x1p3", "1,5"):
        yield "--timeout=" + value, H + ["--timeout=" + value], r"--timeout=.*: give a number of s"
    for value in ("-1", "+1", "", " 1", "1 ", "0x", "1.0", "18446744073709551616", "x", "0x1g"):
        yield "--seed=" + value, H + ["--seed=" + value], r"--seed=.*: give a whole number from 0"
    for value in ("", "yes", "Always", "alway"):
        yield "--color=" + value, H + ["--color=" + value], r"--color=.*: give auto, always or nev"
    yield "a value with a line feed", H + ["--color=a\nconform: b"], r"--color=a\\x0aconform: b: giv"
    for more in (["--no-fork", "--run=abi.loads"], ["--exec", "--", "x"], ["--replay=x"]):
        yield "--handler twice, " + more[0], H + H + more, r"--handler is given twice"
    yield "--compare of one", ["--compare", "x"], r"--compare takes two reports; say --compare OLD"
    yield "--compare of three", ["--compare", "x", "y", "z"], r"--compare takes two reports; say"
    yield "--compare of stdin twice", ["--compare", "-", "-"], r"--compare: only one of the two can "
    yield "--baseline of stdin", H + ["--baseline=-"], r"--baseline=-: is read more than once; name a "
    yield "--fail-on alone", H + ["--fail-on=new"], r"--fail-on goes with --compare or --baseline;"
    yield "--fail-on anything", H + ["--fail-on=any"], r"--fail-on=any: give new"
    yield "--baseline of several", H + H + ["--baseline=x"], r"--baseline goes with one handler in "
    yield "--claim of nothing", H + ["--claim="], r"--claim: no claim; give one of those"
    yield "--claim of no claim", H + ["--claim=wait-free"], r"--claim: wait-free: not a claim that"
    yield "--claim of half a power", H + ["--claim=alignment=3"], r"--claim: alignment=3: not a power"
    yield "--claim of no alignment", H + ["--claim=alignment=9223372036854775808"], r"too large; 10995"
    yield "--claim of no nodes", H + ["--claim=numa=bind:3-1@4096"], r"there is no node from 3 to 1"
    yield "--claim against --claim", H + ["--claim=guard=after", "--claim=guard=before"], (
        r"--claim: guard=before: contradicts guard=after$")
    for more in ([], ["--exec", "--", "-c", "import numpy"]):
        yield ("--claim against its own " + "".join(more[:1]), ["-Hguard", "--claim=guard=before"] + more,
               r"guard: --claim: guard=before: contradicts guard=after, which the handler claims itself$")
    for name in sorted(set(FORMATS) - {"json", "html", "badge", "markdown"}):
        yield "--handler twice, --" + name, H + H + ["--%s=t.tar.gz" % name], \
            r"several --handler make no --%s; " % name
    yield "--handler and --python twice", H + H + 2 * ["--python=x"], r"--handler and .*--python excl"
    yield "--explain of no property", ["--explain=malloc.wibble"], r"--explain=malloc\.wibble: .*--list"
    yield ("a slip in an id", ["--explain=malloc.algnment"],
           r"no such property \(did you mean malloc\.alignment\?\); see conform --list")
    yield ("a slip in --run", H + ["--run=realloc.kepps-contents"],
           r"no property is left to run by it \(did you mean realloc\.keeps-contents\?\), for")
    yield "--explain of nothing", ["--explain="], r"--explain=: there is no such property"
    yield "--list and --explain", ["--list", "--explain=abi.loads"], r"exclude each other"
    yield "--list and --clauses", ["--list", "--clauses"], r"exclude each other"
    for more in ([], ["--"], ["--fail-each"], ["--record=x", "--"]):
        yield ("--exec without a program " + " ".join(more), H + ["--exec"] + more,
               r"--exec: no program to run; say --exec -- SCRIPT, ")
    yield "--exec and --replay", H + ["--exec", "--replay=x"], r"--exec and --replay exclude each other"
    yield "--record and --fail-each", H + ["--exec", "--record=x", "--fail-each"], (
        r"--record and --fail-each exclude each other; give one of them")
    yield "--fail-each without --exec", H + ["--fail-each"], r"--fail-each goes with --exec;"
    yield "--print without --replay", ["--print"], r"--print goes with --replay;"
    yield "--fail-each with --replay", H + ["--replay=x", "--fail-each"], (
        r"--fail-each goes with --exec, not with --replay;")
    yield "options of the battery with --replay", H + [
        "--replay=x", "--json=f", "--memcheck", "--repeat=3", "--run=nothing"], (
        r"--run goes with the battery, --list and --clauses, not with --replay;")
    yield "--quiet and --verbose", H + ["-qv"], r"--quiet and --verbose exclude each other"
    for value in ("0", "-1", "x", "", "1000000001"):
        yield "--most-runs=" + value, H + ["--most-runs=" + value], r"--most-runs=.*: give a whole"
    yield "--most-runs without --fail-each", H + ["--most-runs=1"], r"--most-runs goes with --exec --fail-each;"
    yield "--record without --exec", H + ["--record=x"], r"--record goes with --exec;"
    yield "--untimed without --record", H + ["--untimed"], r"--untimed goes with --exec --record;"
    for one, other in (("no-fork", "memcheck"), ("tsan", "memcheck")):
        yield "--%s and --%s" % (one, other), H + ["--" + one, "--" + other], (
            r"--%s and --%s exclude each other" % (one, other))
    yield "--no-fork and --repeat", H + ["--no-fork", "--repeat=2"], r"--repeat goes with the battery, not with --no-fork"
    yield "--no-fork and --until-fail", H + ["--no-fork", "--until-fail"], (
        r"--until-fail goes with the battery, not with --no-fork")
    yield "--no-fork without --run", H + ["--no-fork"], r"--no-fork runs one property.*--run=ID"
    for more in (["--run=wibble.*"], ["--run="], ["--run=malloc"], ["--skip=*"],
                 ["--run=malloc.*", "--skip=m*"]):
        yield "nothing left by " + " ".join(more), H + more, r"no property is left.*conform --list"
        yield "nothing to list by " + " ".join(more), ["-l"] + more, r"no property is left"
    for command in (H, ["-l"], ["--clauses"]):
        yield ("a pattern in vain beside another, " + command[0],
               command + ["--run=free.*", "--run=malloc"],
               r"--run=malloc: no property is left to run by it, .*'malloc\.\*' is; see conform ")
        yield ("a pattern that leaves out nothing, " + command[0], command + ["--skip=malloc.onebyte"],
               r"--skip=malloc\.onebyte: no property is left out by it \(did you mean malloc\.one-byte")
    yield "nothing left with --no-fork", H + ["--run=wibble", "--no-fork"], r"no property is left"
    yield "two reports on stdout", H + ["--tap=-", "--json=-"], r"--tap and --json cannot both"
    yield "two reports in one file", H + ["--junit=r", "--json=r"], r"--junit and --json .*to r;"
    yield "one file by two names", H + ["--tap=./r", "--json=folder/../r"], r"--tap and --json .*to "
    yield "one file by two names, a link", H + ["--tap=sound.c", "--json=link.c"], r"cannot both go to"
    yield "a report over the handler", H + ["--json=link.so"], r"--json=link\.so would overwrite the h"
    for file, what in (("link.so", "the handler"), ("./sound.c", "what the program is given")):
        yield "a trace over " + what, H + ["--exec", "--record=" + file, "--", "sound.c"], (
            r"--record=%s would overwrite %s; name another file" % (re.escape(file), what))
    yield "a trace nowhere", H + ["--exec", "--record=no/where", "--", "-c", "import numpy"], (
        r"--record=no/where: cannot be opened: No such file")
    for option in ["--" + name for name in FORMATS]:
        name = re.escape(option)
        yield option + " with an empty name", H + [option + "="], name + r": the name is empty"
        yield option + " into a directory", H + [option + "=folder"], name + r"=folder: cannot be wr"
        yield option + " nowhere", H + [option + "=no/where"], name + r"=no/where: cannot be written"
        yield option + " below a file", H + [option + "=plain_file/x"], name + r"=plain_file/x: cann"
        yield option + " in /proc", H + [option + "=/proc/x"], name + r"=/proc/x: cannot be written"
    yield "the second report unwritable", H + ["--tap=t", "--json=no/where"], r"--json=no/where: can"
    if os.geteuid() != 0:
        os.chmod("folder", 0o555)
        yield "a folder without permission", H + ["--tap=folder/x"], r"folder/x: .*Permission denied"
    yield "--python of nothing", H + ["--python=./nowhere"], r"--python=\./nowhere: No such file"
    yield "--python with an empty name", H + ["--python="], r"--python=: the name is empty"
    yield "--python of a name", H + ["--python=nopython"], r"--python=nopython: No such file"
    yield "--python of a directory", H + ["--python=folder"], r"--python=folder: is a directory; give"
    yield "--python of a plain file", H + ["--python=plain_file"], r"--python=plain_file: (Permission|is)"
    yield "--python of ls", H + ["--python=ls"], r"--python=ls: is not a [^:]*, it ends with status 2"
    for name in ("not_python", "silent_python", "dying_python"):
        yield "--python of " + name, H + ["--python=" + name], r"--python=%s: is not a Python int" % name
    yield "--python that is too old", H + ["--python=./old_python"], (
        r"--python=\./old_python: is Python 2\.7, and 3\.9 or newer is wanted; give the path of")
    yield "--python of a PyPy", H + ["--python=./pypy_python"], (
        r"--python=\./pypy_python: is PyPy, and what is embedded here is CPython; give the path")
    yield "--python of one without NumPy", H + ["--python=bare/bin/python"], (
        r"bare/bin/python has no NumPy: \S+bare/bin/python -m pip install numpy")


def subject_cases():
    """Subjects that cannot be loaded: what, the value of --handler, what stderr says."""
    shared = r"cc -shared -fPIC"
    yield "an empty name", "", r"--handler: the name is empty"
    yield "no such file", "./nowhere.so", r"^conform: \./nowhere\.so: there is no such file"
    yield "no such file, without a folder", "nowhere.so", r"nowhere\.so: there is no such file"
    yield "no such name", "wibble", r"wibble: .*reference handlers are: aligned, .*shift_header"
    yield "a slip in a name", "shift_haeder", r"of that name \(did you mean shift_header\?\); the"
    yield "no such file with a symbol", "./nowhere.so:mine", r"\./nowhere\.so: there is no such file"
    yield "a text file", "./text.so", r"text\.so: is not a shared object .*" + shared
    yield "an empty file", "./empty.so", r"empty\.so: is empty; .*" + shared
    yield "a directory", "./folder.so", r"folder\.so: is a directory"
    yield "the current directory", ".", r"\.: is a directory"
    yield "a FIFO", "./fifo.so", r"fifo\.so: is not a regular file"
    yield "a device", "/dev/null", r"/dev/null: is not a regular file"
    yield "a dangling link", "./dangling.so", r"dangling\.so: there is no such file"
    yield "a link to itself", "./loop.so", r"loop\.so: Too many levels"
    yield "an archive", "./archive.so", r"archive\.so: is not a shared object"
    yield "an object for 32-bit x86", "./i386.so", r"i386\.so: is built for 32-bit x86, and this conf"
    if os.uname().machine != "riscv64":
        yield "an object for RISC-V", "./riscv.so", r"riscv\.so: is built for RISC-V, and this conform"
    yield "the other byte order", "./big_endian.so", r"big_endian\.so: has the other byte order"
    yield "half an ELF header", "./half_a_header.so", r"cut short within its ELF header"
    yield "an ELF header alone", "./header_only.so", r"header_only\.so: is cut short: "
    yield "half a shared object", "./truncated.so", r"truncated\.so: is cut short: .*copy it again"
    yield "an object file", "./sound.o", r"sound\.o: is an object file that is not linked.*" + shared
    yield "a program", "./program", r"program: is a program or a core file.*" + shared
    yield "a position-independent program", "./pie", r"pie: cannot be loaded: "
    yield "no symbol", "./no_symbol.so", r"exports neither nep49_handler nor nep49_get_handler; see"
    yield "a hidden symbol", "./hidden.so", r"exports neither .* nep49\.h"
    yield "a function for the struct", "./function_for_data.so", r"nep49_handler is a function"
    yield "data for the function", "./data_for_function.so", r"nep49_get_handler is not a function"
    yield "a thread-local struct", "./thread_local.so", r"nep49_handler is not data"
    yield "both symbols", "./both.so", r"exports both .*PATH:SYMBOL"
    yield "a pointer for the struct", "./pointer.so", r"nep49_handler has 8 bytes, and .* has 168"
    yield "no symbol of that name", "./sound.so:wibble", r"sound\.so:wibble: does not export wibble"
    yield "a function of libc", "./sound.so:getpid", r"sound\.so:getpid: does not export getpid;"
    yield "a small symbol of that name", "./other_name.so:too_small", r"too_small has 16 bytes"
    yield "a colon and no symbol", "./sound.so:", r"\./sound\.so:: no symbol stands behind the colon"
    yield "claims that are a function", "./claims_function.so", r"nep49_claims is not an array of char"
    yield "claims without an end", "./claims_open.so", r"nep49_claims is not an array of char"
    yield "an undefined symbol", "./undefined.so", r"cannot be loaded: .*nowhere_to_be_found"
    yield "a Python attribute without a name", "python:mine:", r"python:mine:: say python:MODULE:ATTR"


def right_cases():
    """What works: what, arguments, code, what stdout says."""
    first = ["--run=abi.loads"]
    sound = ["-H", "./sound.so"] + first
    yield "--help", ["--help"], CONFORMANT, r"\AUsage: conform --handler HANDLER"
    yield "--help beside wrong options", ["--help", "--bogus"], CONFORMANT, r"\AUsage: "
    yield "--version", ["--version"], CONFORMANT, (
        r"\Aconform \d+\.\d+\.\d+(?:\+(?:g[0-9a-f]{7,}(?:\.dirty)?|unknown))?\n"
        r"For any CPython from 3\.9 on with NumPy 1\.22 or newer, .*\n"
        r"License BSD-3-Clause: .*\n\Z")
    yield "-h", ["-h"], CONFORMANT, r"\AUsage: conform --handler HANDLER"
    yield "-V", ["-V"], CONFORMANT, r"\Aconform \d"
    yield "--list", ["--list"], CONFORMANT, r"(?m)^abi\.loads +MUST +NEP +\S"
    yield "-l of a glob", ["-l", "--run=abi.lo*s"], CONFORMANT, r"\Aabi\.loads .*\n\Z"
    yield "--list of all but a glob", ["--list", "--skip=abi.*"], CONFORMANT, r"\A(?!.*abi\.)"
    for more, shown in NUMPYS:
        yield ("NumPy's own properties by --list " + " ".join(more), ["--list", *more], CONFORMANT,
               r"(?m)^runtime\.free-size " if shown else r"\A(?!(.*\n)*runtime\.)")
    yield "--list-handlers", ["--list-handlers"], CONFORMANT, r"\Aaligned\n(.+\n)*shift_header\n(.+\n)*\Z"
    yield "--explain", ["--explain", "abi.loads"], CONFORMANT, r"\Aabi\.loads\n +clause +\S"
    yield "--clauses", ["--clauses"], CONFORMANT, r"\A# Clauses\n(.*\n)*### abi\.loads\n"
    yield "--clauses of a glob", ["--clauses", "--run=abi.loads"], CONFORMANT, r"\A# Clauses"
    yield "an abbreviation", ["--list-"], CONFORMANT, r"aligned"
    yield "an exact name that begins another", ["--list"], CONFORMANT, r"abi\.loads"
    yield "a file", sound, CONFORMANT, r"sound\.so: conformant in the properties that were run"
    yield "a file without a folder", ["-H", "sound.so"] + first, CONFORMANT, r"conformant"
    yield "a link", ["-Hlink.so"] + first, CONFORMANT, r"link\.so: conformant"
    yield "a getter", ["-H./getter.so"] + first, CONFORMANT, r'"got" version 1'
    yield "a symbol", ["-H./other_name.so:mine"] + first, CONFORMANT, r'"mine" version 1'
    yield "a symbol of a file with two", ["-H./both.so:nep49_handler"] + first, CONFORMANT, r"plain"
    yield "a getter by its name", ["-H./both.so:nep49_get_handler"] + first, CONFORMANT, r"plain"
    yield "one linked with another", ["-H./linked.so"] + first, CONFORMANT, r'"plain" version 1'
    yield "a reference handler by its name", ["-Haligned"] + first, CONFORMANT, r"claims alignment=64"
    yield "--claim", ["-H./sound.so", "--claim=alignment=1", "--claim=alignment=2",
                      "--run=malloc.claimed-alignment"], CONFORMANT, r"held to alignment=1 alignment=2\n"
    yield "--claim that is not kept", ["-H./sound.so", "--claim", "alignment=8192",
                                       "--run=malloc.claimed-alignment"], NOT_CONFORMANT, (
        r"FAIL +malloc\.claimed-alignment(.*\n)*.* --claim=alignment=8192 --run=malloc\.cl")
    yield "a faulty handler", ["-H./no_memory.so"] + first, NOT_CONFORMANT, r"FAIL +abi\.loads"
    yield "long names cut short", ["--hand=./sound.so", "--run=abi.loads", "--tim=5", "--verb"], (
        CONFORMANT), r"PASS +abi\.loads"
    yield "values in words of their own", ["--handler", "sound.so", "--run", "abi.loads", "--seed",
                                           "7"], CONFORMANT, r"seed 7\n"
    yield "options behind --", sound + ["--"], CONFORMANT, r"conformant"
    yield "the largest seed", sound + ["--seed=18446744073709551615"], CONFORMANT, (
        r"seed 18446744073709551615\n")
    yield "a hexadecimal seed", sound + ["--seed=0xff"], CONFORMANT, r"seed 255\n"
    yield "a seed with a leading 0", sound + ["--seed=010"], CONFORMANT, r"seed 10\n"
    yield "--jobs=1", sound + ["--jobs=1"], CONFORMANT, r"conformant"
    yield "-j64", sound + ["-j64"], CONFORMANT, r"conformant"
    yield "--timeout of a fraction", sound + ["--timeout=2.5"], CONFORMANT, r"conformant"
    yield "--shuffle", sound + ["--shuffle"], CONFORMANT, r"conformant"
    yield "--repeat", sound + ["--repeat=2"], CONFORMANT, r" in 2 rounds"
    yield "--until-fail of a faulty one", ["-H./no_memory.so", "--until-fail"] + first, (
        NOT_CONFORMANT), r"FAIL +abi\.loads"
    yield "--strict", sound + ["--strict"], CONFORMANT, r"conformant"
    yield "--quiet", sound + ["--quiet"], CONFORMANT, r"\A\Z"
    yield "--quiet of a faulty one", ["-qH./no_memory.so"] + first, NOT_CONFORMANT, (
        r"\AFAIL +abi\.loads(.*\n)*no_memory\.so: NOT CONFORMANT")
    yield "--verbose", sound + ["--verbose"], CONFORMANT, r"PASS +abi\.loads +\d+\.\d ms"
    yield "--color=always", sound + ["--color=always"], CONFORMANT, "\033\\[32m"
    yield "--color=never", sound + ["--color=never"], CONFORMANT, r"\A[^\033]*\Z"
    yield "no color on a pipe", sound, CONFORMANT, r"\A[^\033]*\Z"
    yield "--python", sound + ["--python=" + suite.PYTHON], CONFORMANT, r"conformant"
    yield "--no-fork", sound + ["--no-fork"], CONFORMANT, (
        r"\Aabi\.loads on \./sound\.so, in this process\nconform \d[^\0]*1 property: 1 passed")
    yield "--no-fork of a faulty one", ["-H./no_memory.so", "--no-fork"] + first, NOT_CONFORMANT, (
        r"FAIL +abi\.loads")
    for option, begin in (("tap", "TAP version 13\n"), ("junit", r"<\?xml "), ("json", "{\n")):
        yield "--%s on stdout" % option, sound + ["--%s=-" % option], CONFORMANT, r"\A" + begin
        yield "--%s to a device" % option, sound + ["--%s=/dev/stdout" % option], CONFORMANT, begin
        yield "--%s to nowhere" % option, sound + ["--%s=/dev/null" % option], CONFORMANT, "conform"
    yield "three reports, one on stdout", sound + ["--tap=all.tap", "--junit=all.xml", "--json=-"], (
        CONFORMANT), r"\A{\n"
    yield "a report over an old one", sound + ["--json=plain_file"], CONFORMANT, r"conformant"


def run_case(tap, what, arguments, code, stderr, stdout):
    """Run it, and compare with what the table says."""
    result = suite.conform(*arguments, timeout=60)
    wrong = []
    if result.code != code:
        wrong.append("the exit code should be %d" % code)
    if stderr is None:
        if result.stderr:
            wrong.append("stderr should be empty")
    else:
        if not re.match(r"\Aconform: [^\n]+\n\Z", result.stderr):
            wrong.append("stderr should be one line that begins with the program's name")
        if not re.search(stderr, result.stderr):
            wrong.append("stderr should say " + stderr)
    if re.search(r"[\x00-\x09\x0b-\x1f\x7f]", result.stderr):
        wrong.append("stderr should have no control characters")
    if not re.search(stdout, result.stdout):
        wrong.append("stdout should match " + repr(stdout))
    tap.point(not wrong, what, "%s\n%s\n%s" % (arguments, "\n".join(wrong), result))


def options_of_each_command(tap):
    """Each takes those of the table, and refuses every other in one line that names both."""
    listed = suite.conform("--help").stdout
    options = dict(re.findall(r"(?m)^  (?:-\w,|   ) --([a-z-]+)(=?)", listed))
    chosen = {word.split("=")[0][2:] for command in TAKEN for word in command}
    rest = sorted(set(options) - chosen - {"help", "version"})
    for command, taken in TAKEN.items():
        name = " ".join(word.split("=")[0] for word in command)
        wrong = []
        for option in rest:
            word = "--" + option + ("=" + VALUES.get(option, "1") if options[option] else "")
            if option in taken and (option == "handler" or "handler" not in taken):
                continue  # it would begin, as it does elsewhere
            said = r"--%s goes with .*%s; see conform --help" % (
                option, ", not with " + name if name else "")
            if option in taken:
                said = r"--verify .*" if name == "--verify" else r"no handler to test; .*"
            elif option == "memcheck" and name == "--no-fork":
                said = r"--no-fork and --memcheck exclude each other; .*"
            result = suite.conform(*command, word)
            if result.code != USAGE or result.stdout or not re.fullmatch(
                    "conform: " + said + "\n", result.stderr):
                wrong.append("%s %s" % (word, result))
        tap.point(not wrong, "which options %s takes" % (name or "the battery"), "\n".join(wrong))


def awkward_names(tap):
    for name in AWKWARD:
        raw = os.fsencode(name)
        result = suite.run(
            [suite.CONFORM.encode(), b"--handler=./" + raw, b"--run=abi.loads", b"--json=names.json"]
        )
        held = result.code == 0 and not result.stderr and result.stdout.count("\n") == 5
        tap.point(held, "a file named %s" % ascii(name).replace("\\", "/"), result)
    os.unlink("names.json")


def closed_descriptors(tap):
    """stdin, stdout or stderr closed by the shell: nothing is written where it does not belong."""
    sound = [suite.CONFORM, "--handler=./sound.so", "--run=abi.loads", "--json=closed.json"]
    for fd, code in ((0, CONFORMANT), (1, HARNESS_BROKE), (2, CONFORMANT)):
        command = ["/bin/sh", "-c", 'exec "$@" %d>&-' % fd if fd else 'exec "$@" <&-', "-"] + sound
        result = suite.run(command)
        with open("closed.json") as file:
            whole = file.read().endswith("}\n")
        tap.point(result.code == code and whole, "descriptor %d closed" % fd, result)
        os.unlink("closed.json")
    for arguments in (["--list"], ["--help"], ["--version"], sound[1:3], sound[1:3] + ["--tap=-"]):
        with open("/dev/full", "w") as full:
            result = suite.conform(*arguments, stdout=full)
        tap.point(result.code == HARNESS_BROKE, "a full disk for " + " ".join(arguments), result)
    for option in ["--" + name for name in FORMATS]:
        result = suite.conform(*sound[1:3], option + "=/dev/full")
        held = result.code == HARNESS_BROKE and option + "=/dev/full: cannot be wr" in result.stderr
        tap.point(held, "a full disk for " + option, result)
    result = suite.run(["/bin/sh", "-c", 'ulimit -f 0; exec "$@"', "-"] + sound)
    held = result.code == HARNESS_BROKE and "closed.json: cannot be written: " in result.stderr
    tap.point(held and not os.path.exists("closed.json"), "a file that may not be written", result)


KILLS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int rename(const char *from, const char *to)
{
    static int count;
    int (*next)(const char *, const char *) = (int (*)(const char *, const char *))
        dlsym(RTLD_NEXT, "rename");
    if (++count == atoi(getenv("KILLED_AT")))
        kill(getpid(), SIGKILL);
    return next(from, to);
}
"""


def is_whole(name, content, undisturbed):
    """Whether it ends as the one of a run that nobody killed."""
    if name == "bundle":
        return suite.conform("--verify", "killed.bundle").code != USAGE
    return content.splitlines()[-1] == undisturbed.splitlines()[-1]


def killed(tap):
    """kill -9 when a report is written, before it is in its place: the earlier ones are there and
    whole, and of it and the later ones what was there before."""
    with open("kills.c", "w") as file:
        file.write(KILLS)
    preload = suite.build("kills.c", os.path.abspath("kills.so"), "-ldl")
    undisturbed = []
    for at in range(len(FORMATS) + 1):
        for name in FORMATS:
            with open("killed." + name, "wb") as file:
                file.write(b"old")
        result = suite.conform("-H./sound.so", "--run=abi.n*", "-q",
                               *("--%s=killed.%s" % (name, name) for name in FORMATS),
                               env={"LD_PRELOAD": preload, "KILLED_AT": str(at)})
        contents = [open("killed." + name, "rb").read() for name in FORMATS]
        if at == 0:
            undisturbed = contents
            continue
        written = [name for name, content in zip(FORMATS, contents) if content != b"old"]
        wrong = [name for name, content, whole in zip(FORMATS, contents, undisturbed)
                 if name in written and not is_whole(name, content, whole)]
        tap.point(result.code == -signal.SIGKILL and len(written) == at - 1 and not wrong,
                  "killed when %d of the reports are in their place" % (at - 1),
                  "%s\n%s\n%s" % (written, wrong, result))
    for name in os.listdir("."):
        if name.startswith(("killed.", "kills.", ".conform")):
            os.unlink(name)


def other_nodes(tap):
    """A machine that has not the memory nodes of a claim says nothing against the handler."""
    result = suite.conform("-H./sound.so", "--claim=numa=bind:1023@4096", "--run=claim.numa", "-v")
    held = (result.code == USAGE and "there is no memory node 1023 here" in result.stderr
            or "SKIP    claim.numa" in result.stdout)  # the kernel may not be asked
    tap.point(held, "--claim of nodes that are not here", result)


def no_python(tap):
    result = suite.conform("-Haligned", "--run=abi.loads", "--json=x", env={"PYTHONHOME": "/nowhere"})
    held = result.code == USAGE and re.match(
        r"\Aconform: no python3 on PATH has NumPy; try without PYTHONHOME=/nowhere, or .* by --python "
        r"\(\S+python3 .*: \S+Error: .*\)\n\Z",
        result.stderr)
    tap.point(held and not os.path.exists("x"), "an interpreter that does not start", result)
    os.makedirs("no_numpy/numpy")
    with open("no_numpy/numpy/__init__.py", "w") as file:
        file.write("raise ImportError('half of it is missing')\n")
    result = suite.conform("-Haligned", "--jobs=2", timeout=30, env={"PYTHONPATH": "no_numpy"})
    held = (result.code == USAGE and "half of it is missing" in result.stderr and
            "; try without PYTHONPATH=no_numpy, or name" in result.stderr)
    tap.point(held, "a NumPy that does not work, and a worker that waits for another", result)
    shutil.rmtree("no_numpy")


def man_page(tap):
    """It names the same options as --help, and formatters have nothing to say about it."""
    with open(MAN_PAGE) as file:
        page = file.read()
    tags = "".join(line for line in page.splitlines() if line.startswith(".It "))
    named = set(re.findall(r"Fl -([a-z][a-z-]*)", tags))
    wanted = set(re.findall(r"--([a-z][a-z-]*)", suite.conform("--help").stdout))
    tap.point(named == wanted, "the man page has all options and no other", named ^ wanted)
    tap.point({"json", "junit", "tap"} <= set(FORMATS), "the report formats are known", FORMATS)
    for command in (["groff", "-mdoc", "-Tascii", "-ww", "-z"],
                    ["mandoc", "-Tlint", "-Wwarning"]):
        if shutil.which(command[0]):
            said = suite.run(command + [MAN_PAGE])
            tap.point(said.code == 0 and not said.stdout + said.stderr,
                      "%s reads the man page" % command[0], said)
        else:
            tap.skip("%s reads the man page" % command[0],
                     "install %s, or run ./bootstrap --ci-tools" % command[0])


def main():
    tap = suite.Tap()
    man_page(tap)
    options_of_each_command(tap)
    with suite.scratch() as folder:
        os.chdir(folder)
        make_files()
        before = sorted(os.listdir(b"."))
        for what, arguments, stderr in option_cases():
            run_case(tap, what, arguments, USAGE, stderr, r"\A\Z")
        for what, handler, stderr in subject_cases():
            arguments = ["--handler=" + handler, "--run=abi.loads"]
            run_case(tap, what, arguments, CANNOT_LOAD, stderr, r"\A\Z")
        run_case(tap, "a handler that says it cannot work here", ["-H./unfit.so"], CANNOT_WORK_HERE,
                 r"unfit\.so: it says .*: no huge pages\\x0aconform: forged \\x1b\[31m$", r"\A\Z")
        run_case(tap, "one that does not say why", ["-H./unfit_silently.so"], CANNOT_WORK_HERE,
                 r"unfit_silently\.so: .*returned NULL and no reason", r"\A\Z")
        after = sorted(os.listdir(b"."))
        tap.point(before == after, "wrong use leaves no file behind", set(after) - set(before))
        for what, arguments, code, stdout in right_cases():
            run_case(tap, what, arguments, code, None, stdout)
        awkward_names(tap)
        closed_descriptors(tap)
        killed(tap)
        other_nodes(tap)
        no_python(tap)
        left = set(os.listdir(b".")) - set(before) - {b"all.tap", b"all.xml"}
        tap.point(not left, "right use leaves what was asked for alone", left)
        os.chdir("..")
    tap.end()


if __name__ == "__main__":
    sys.exit(main())
