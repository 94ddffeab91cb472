# SPDX-License-Identifier: BSD-3-Clause
"""The command line: every option, and every wrong use of it.

Wrong use gets one line on stderr, which names the file or the option, the exit status of the design,
and nothing else: no traceback, no report, no temporary file.
"""

import itertools
import os
import re
import shlex
import shutil
import struct
import subprocess

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

# Which options each command takes, besides those that select a variant of it.
COMMANDS = re.findall(r"(?m)^  ([a-z]+) .*  [A-Z]", suite.conform("--help").stdout)
FORMATS = re.findall(r"(?m)^ +--(\w+)=FILE +write a report", suite.conform("--help-all").stdout)
FORMATS = sorted(set(FORMATS))
ALONE = set("claim color github handler numpy python quiet run seed skip strict verbose with-subject".split()) | set(FORMATS)
PROGRAM = set("claim handler python quiet timeout".split())
TAKEN = {
    (): ALONE | set("baseline expect fail-on jobs max-time memcheck quick repeat repro timeout tsan until-fail".split()),
    ("--no-fork",): ALONE,
    ("exec", "x"): PROGRAM | {"stacks"},
    ("exec", "--record=x", "x"): PROGRAM | {"stacks", "untimed"},
    ("exec", "--fail-each", "x"): PROGRAM | {"keep-failing", "most-runs", "refuse", "verbose"},
    ("replay", "x"): set("claim handler quiet timeout unchecked".split()),
    ("replay", "--print", "x"): set(),
    ("bench",): set("handler html json max-time python quick quiet timeout".split()),
    ("search",): set("claim handler jobs memory quiet repro seed timeout trace unchecked".split()),
    ("compare", "x", "y"): set("fail-on quiet strict".split()),
    ("report", "x"): set("badge github html markdown".split()),
    ("verify", "x"): set("quiet".split()),
    ("list",): set("numpy run skip verbose".split()),
    ("init", "x"): set(),
    ("debug", "abi.loads"): set("claim handler python seed".split()),
    ("handlers",): set(),
    ("explain", "abi.loads"): set(),
    ("clauses",): set("numpy run skip".split()),
}
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
        suite.write(name + ".c", source)
        flags = ["-w"] + (["-fcommon"] if name == "pointer" else [])
        suite.build(name + ".c", name + ".so", *flags)
    suite.write("main.c", "int main(void) { return 0; }")
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


# Wrong use: the arguments, and behind ## what stderr has besides the first of them.  H is a handler
# that would do; what is in braces is tried each.
WRONG = r"""
## no handler to test
{lsit,serach,hepl} ## no command and no handler has that name
lsit ## did you mean list?
alinged ## did you mean aligned?
help lsit ## did you mean list?
{H list,aligned list} ## list is a command, which is the first word; say conform list
H exec -- x ## exec is a command
--{exec,replay=x,search,search=2,bench=quick,compare,verify,init=x,list,explain=x,clauses} ## is a command; say conform
--exec ## --exec is a command; say conform exec -H HANDLER -- SCRIPT ...
--from ## --from is a command; say conform report
H --list-handlers ## --list-handlers is a command; say conform handlers
H --list ## --list is a command; say conform list
{--bogus,--bogus=1} ## --bogus: no such option
{-x,-vx,verify -xq} ## -x: no such option
exec -H aligned -c x ## put -- before options of the program
--listing ## --listing: no such option
--hanlder=x ## did you mean --handler?
--seach ## did you mean conform search?
--j=1 ## --json
--ver ## --verbose, --version
--{fail-each,help,help-all,memcheck,no-fork,keep-failing,quiet,quie}=1
--{stacks,strict,until-fail,untimed,verbose,version}=1 ## takes no value
--{color,handler,jobs,json,junit,most-runs,python} ## needs a value
--{repeat,run,seed,skip,tap,timeout} ## needs a value
{-j,-vj} ## -j needs a value
-vH ## -H needs a value
H --jobs={0,65,-1,1.5,1e1,two,"",' 2','2 ',0x2,99999999999999999999}
H --repeat={0,-1,1.5,"",1000001}
H --timeout={0,-1,nan,inf,1s,"",' 1',1e9,0x1p3,1;5}
H --seed={-1,+1,"",' 1','1 ',0x,1.0,18446744073709551616,x,0x1g}
exec H --most-runs={0,-1,x,"",1000000001}
H --color={"",yes,Always,alway} ## auto, always or never
H H --no-fork --run=abi.loads ## --handler is given twice
{exec H H x,replay H H x,search H H} ## --handler is given twice
compare {x,x y z} ## say conform compare OLD
compare - - ## compare
report x ## report writes --html
{report --html=x,verify,init,explain} ## an operand is missing
replay H ## an operand is missing
{init x y,handlers x,replay H x y} ## one operand too many
search H {0,x,1e9} ## give a number of seconds
H --baseline=-
H {--fail-on=new,--fail-on=any} ## --fail-on
H H --baseline=x ## --baseline
H --claim=alignmnet=64 ## did you mean alignment?
H --claim={"",wait-free,alignment=3,alignment=9223372036854775808,numa=bind:3-1@4096} ## --claim
H --claim=guard=after --claim=guard=before ## contradicts guard=after
{-Hguard --claim=guard=before,exec -Hguard --claim=guard=before -- -c 'import numpy'} ## guard: --claim: guard=before: contradicts
H H --python=x --python=x ## --python
H H --{tap,junit,bundle}=t ## --handler
explain abi.loads {malloc.wibble,wibble.*} ## no such property
explain malloc.algnment ## did you mean malloc.alignment?
{explain,list,H --skip} realoc.* ## did you mean realloc.*?
H --run=realloc.kepps-contents ## did you mean realloc.keeps-contents?
exec H {"",--,--fail-each,--record=x --} ## exec: no program
exec H --record=x --fail-each x ## --record and --fail-each exclude
H {--fail-each,--record=x} ## goes with exec;
H {--untimed,--most-runs=1} ## goes with exec
--print ## --print goes with replay
replay H x {--fail-each,--json=f --memcheck,--run=nothing} ## not with replay
H -qv ## --quiet and --verbose exclude
H {--no-fork,--tsan} --memcheck ## --memcheck exclude
H --no-fork {--repeat=2,--until-fail} ## not with --no-fork
H --no-fork ## --run=ID
{H,list} {--skip=*,--run=malloc.* --skip=m*} ## no property is left
{H,list} {--run=wibble.*,--run=,--run=malloc} ## no property matches
{list,clauses} {wibble.*,malloc} ## no property matches
{H,list,clauses} --run=free.* --run=malloc ## --run=malloc: no property
{H,list,clauses} --skip=malloc.alignmnt ## did you mean malloc.alignment
H --run=wibble --no-fork ## no property matches
H --tap={- --json=-,sound.c --json=link.c} ## --tap and --json cannot both
H --junit=r --json=r ## --junit and --json cannot both
H --json=link.so ## would overwrite the handler
exec H --record={link.so,./sound.c} -- sound.c ## would overwrite
exec H --record=no/where -- -c 'import numpy' ## --record=no/where
H --FORMAT={"",folder,no/where,plain_file/x,/proc/x} ## --FORMAT
H --tap=t --json=no/where ## --json=no/where
H --python={./nowhere,"",nopython,folder,plain_file,ls,not_python,silent_python,dying_python}
H --python=./old_python ## 3.9 or newer
H --python=./pypy_python ## CPython
H --python=bare/bin/python ## has no NumPy
"""

# What cannot be loaded, and words of the reason.
SUBJECTS = r"""
"" ## the name is empty
{./nowhere.so,nowhere.so,./nowhere.so:mine,./dangling.so} ## there is no such file
wibble ## reference handlers are: aligned
shift_haeder ## did you mean shift_header?
./text.so ## cc -shared -fPIC
./empty.so ## is empty
{./folder.so,.} ## is a directory
{./fifo.so,/dev/null} ## is not a regular file
./loop.so ## Too many levels
./archive.so ## is not a shared object
./i386.so ## 32-bit x86
./riscv.so ## RISC-V
./big_endian.so ## other byte order
{./half_a_header.so,./header_only.so,./truncated.so} ## cut short
./sound.o ## not linked
./program ## is a program
./pie ## cannot be loaded
{./no_symbol.so,./hidden.so} ## exports neither
./function_for_data.so ## is a function
./data_for_function.so ## is not a function
./thread_local.so ## is not data
./both.so ## exports both
./pointer.so ## has 8 bytes
{./sound.so:wibble,./sound.so:getpid} ## does not export
./other_name.so:too_small ## has 16 bytes
./sound.so: ## no symbol
{./claims_function.so,./claims_open.so} ## nep49_claims
./undefined.so ## nowhere_to_be_found
python:mine: ## python:MODULE:ATTR
"""

# Right use of a sound handler, but where NOT is said, and a pattern of what stdout has.
RIGHT = r"""
{--help,-h,--help --bogus,help} ## \AUsage: conform HANDLER
{exec --help,exec -h,help exec} ## \AUsage: conform exec .*-- SCRIPT \.\.\.\n
{--version,-V} ## \Aconform \d+\.\d+\.\d+\S*\nFor any CPython .*\nLicense BSD-3-Clause: .*\n\Z
list ## \Aabi \(\d+\)\n  abi\.loads +MUST +\S
list {abi.lo*s,--run=abi.lo*s,--run=abi.loads} ## \Aabi \(1\)\n  abi\.loads .*\n\Z
list {-v,--verbose} abi.version ## \n  abi\.version .*\n {6}\S.*\n\Z
list --skip=abi.* ## \A(?!(.*\n)*  abi\.)
handlers ## \Aaligned\n(.+\n)*shift_header\n(.+\n)*\Z
explain {abi.loads,abi.* free.null} ## \Aabi\.loads  MUST  \S.*\n\nREQUIREMENT\n  \S
{clauses,clauses abi.loads} ## \A# Clauses\n(.*\n)*### abi\.loads\n
list {*,--run=*,--run=*.*-size --run=r*,--skip=free.*,--numpy --skip=runtime.*} ## \A(?!(.*\n)*  runtime\.)
list {--numpy,runtime.*,--run=runtime.* --run=*,--numpy --run=*-size} ## (?m)^  runtime\.free-size
{S,./sound.so LOADS,LOADS ./sound.so,sound.so LOADS} ## sound\.so: conformant in the properties that were run
-H {sound.so,link.so} LOADS ## conformant
-H./getter.so LOADS ## "got" version 1
-H./other_name.so:mine LOADS ## "mine" version 1
-H./both.so:{nep49_handler,nep49_get_handler} LOADS ## plain
-H./linked.so LOADS ## "plain" version 1
{-Haligned,aligned} LOADS ## claims alignment=64
H --claim=alignment=1 --claim=alignment=2 --run=malloc.claimed-alignment ## held to alignment=1 alignment=2\n
NOT H --claim alignment=8192 --run=malloc.claimed-alignment ## FAIL +malloc\.cl(.*\n)*.* --claim=alignment=8192
NOT -H./no_memory.so LOADS {"",--until-fail,--no-fork} ## FAIL +abi\.loads
NOT -qH./no_memory.so LOADS ## \AFAIL +abi\.loads(.*\n)*no_memory\.so: NOT CONFORMANT
--hand=./sound.so --run=abi.loads --tim=5 --verb ## PASS +abi\.loads +\d+\.\d ms
--handler sound.so --run abi.loads --seed 7 ## seed 7\n
S {--,--jobs=1,-j64,--timeout=2.5,--strict,--python=PYTHON} ## conformant
S --seed=18446744073709551615 ## seed 18446744073709551615\n
S --seed=0xff ## seed 255\n
S --seed=010 ## seed 10\n
S --repeat=2 ## in 2 rounds
S --quiet ## \A\Z
S --color=always ## \033\[32m
{S,S --color=never} ## \A[^\033]*\Z
S --no-fork ## \Aabi\.loads on \./sound\.so, in this process\nconform \d[^\0]*1 property: 1 passed
S --tap={-,/dev/stdout} ## \ATAP version 13\n
S --junit={-,/dev/stdout} ## \A<\?xml
S --json={-,/dev/stdout} ## (?m)^{$
S --tap=all.tap --junit=all.xml --json=- ## \A{\n
S --{tap,junit,json}=/dev/null ## conform
S --json=plain_file ## conformant
"""


def alternatives(line):
    """Yields a line for each combination of what is in braces."""
    parts = re.split(r"\{(.*?)\}", line)
    choices = [part.replace(";", "\0").split(",") if at % 2 else [part]
               for at, part in enumerate(parts)]
    for words in itertools.product(*choices):
        yield "".join(words).replace("\0", ",")


def cases(table, **words):
    """Yields the words of each case of a table, and what it says about them."""
    for line in table.strip().splitlines():
        arguments, _, said = line.partition("## ")
        for each in alternatives(arguments):
            split = [words.get(word, [word]) for word in shlex.split(each)]
            yield list(filter(None, sum(split, []))) if len(split) > 1 else sum(split, []), said


def wrong_use(tap, what, arguments, code, *said):
    """One line, which names it, on stderr alone."""
    result = suite.conform(*arguments, timeout=60)
    tap.point(result.code == code and not result.stdout
              and re.fullmatch("conform: [^\\n\\x00-\\x1f\\x7f]+\n", result.stderr)
              and all(words in result.stderr for words in said), what, result)


def option_cases(tap):
    handler = ["--handler=./sound.so"]
    for arguments, said in cases(WRONG, H=handler):
        formats = FORMATS if any("--FORMAT" in word for word in arguments) else [""]
        for name in formats:
            words = [word.replace("FORMAT", name) for word in arguments]
            named = said.replace("FORMAT", name)
            option = [word for word in words if word not in handler][-1:]
            wrong_use(tap, " ".join(words) or "nothing", words, USAGE,
                      named or option[0].partition("=")[0])
    for what, word, said in (("no ASCII", "-\u00e9", r"-\xc3: "),
                             ("a control character", "-\033", r"-\x1b: "),
                             ("a line feed", "--color=a\nconform: b", r"--color=a\x0aconform: b: ")):
        wrong_use(tap, what, handler + [word], USAGE, said)
    if os.geteuid() != 0:
        os.chmod("folder", 0o555)
        wrong_use(tap, "a folder without permission", handler + ["--tap=folder/x"], USAGE, "denied")


def subject_cases(tap):
    for arguments, said in cases(SUBJECTS):
        if arguments != ["./riscv.so"] or os.uname().machine != "riscv64":
            wrong_use(tap, "the subject " + arguments[0],
                      ["--handler=" + arguments[0], "--run=abi.loads"], CANNOT_LOAD, said)
    for name, said in (("unfit", r"no huge pages\x0aconform: forged \x1b[31m"),
                       ("unfit_silently", "returned NULL and no reason")):
        wrong_use(tap, name, ["-H./%s.so" % name], CANNOT_WORK_HERE, said)


def right_cases(tap):
    loads = ["--run=abi.loads"]
    for arguments, said in cases(RIGHT, H=["-H", "./sound.so"], S=["-H", "./sound.so"] + loads,
                                 LOADS=loads):
        code = NOT_CONFORMANT if arguments[0] == "NOT" else CONFORMANT
        arguments = [word.replace("PYTHON", suite.PYTHON) for word in arguments if word != "NOT"]
        result = suite.conform(*arguments, timeout=60)
        tap.point(result.code == code and not result.stderr and re.search(said, result.stdout),
                  " ".join(arguments), result)


def options_of_each_command(tap):
    """Each takes those of the table, and refuses every other in one line that names both."""
    listed = suite.conform("--help-all").stdout
    options = dict(re.findall(r"(?m)^  (?:-\w,|   ) --([a-z-]+)(=?)", listed))
    selecting = {word.split("=")[0][2:] for command in TAKEN for word in command}
    rest = sorted(set(options) - selecting - {"help", "help-all", "version"})
    for command, taken in TAKEN.items():
        name = " ".join(word.split("=")[0] for word in command
                        if word in COMMANDS or word.startswith("--"))
        wrong = []
        for option in rest:
            word = "--" + option + ("=" + VALUES.get(option, "1") if options[option] else "")
            if option in taken and (option == "handler" or "handler" not in taken):
                continue  # it would begin, as it does elsewhere
            said = r"--%s goes with .*%s; see conform --help" % (
                option, ", not with " + name if name else "")
            if option in taken:
                said = r"no handler to test; say conform .*"
            elif option == "memcheck" and name == "--no-fork":
                said = r"--no-fork and --memcheck exclude each other; .*"
            result = suite.conform(*command[:1], word, *command[1:])
            if result.code != USAGE or result.stdout or not re.fullmatch(
                    "conform: " + said + "\n", result.stderr):
                wrong.append("%s %s" % (word, result))
        tap.point(not wrong, "which options %s takes" % (name or "the test suite"),
                  "\n".join(wrong))


def help_pages(tap):
    """Each fits a screen, and lists the options that its command takes."""
    tap.point(len(COMMANDS) == 13 and {each[0] for each in TAKEN if each and each[0] in COMMANDS}
              == set(COMMANDS), "the commands are known", COMMANDS)
    for command in [None, *COMMANDS]:
        words = [command] if command else []
        result, same = suite.conform(*words, "--help"), suite.conform("help", *words)
        lines = result.stdout.splitlines()
        tap.point(result.code == CONFORMANT and result.stdout == same.stdout and not result.stderr
                  and len(lines) <= (30 if command else 35) and max(map(len, lines)) <= 80,
                  "--help of %s fits a screen" % (command or "all"), result)
        if command:
            listed = set(re.findall(r"(?m)^  (?:-\w,|   ) --([a-z-]+)", result.stdout))
            wanted = {"help"}.union(*(taken | {word[2:].split("=")[0] for word in each[1:]
                                               if word.startswith("--")}
                                      for each, taken in TAKEN.items() if each[:1] == (command,)))
            tap.point(listed == wanted, "--help of %s lists its options" % command,
                      listed ^ wanted)
    long = [line for line in suite.conform("--help-all").stdout.splitlines() if len(line) > 80]
    tap.point(not long, "--help-all fits 80 columns", long)


def handler_as_operand(tap):
    """`conform HANDLER` and `conform --handler HANDLER` are the same, of any number of handlers."""
    for handlers in (["aligned"], ["./sound.so", "guard"]):
        pages = [re.sub(r"\d+\.\d+ s", "", suite.conform(*words, "--run=malloc.zero").stdout)
                 for words in (handlers, ["--handler=" + each for each in handlers])]
        tap.point(pages[0] == pages[1] and "conformant" in pages[0],
                  "conform %s is conform --handler" % " ".join(handlers), pages)
    shutil.copy("sound.so", "list")
    result = suite.conform("./list", "--run=abi.loads")
    tap.point(result.code == CONFORMANT, "a file with the name of a command", result)
    os.unlink("list")


def program_without_dashes(tap):
    """Options that follow the script are its own."""
    suite.write("script.py", "import sys; print(sys.argv[1:])")
    for dashes in ([], ["--"]):
        result = suite.conform("exec", "-Haligned", "-q", *dashes, "script.py", "-H", "x", "--help")
        tap.point(result.code == CONFORMANT and result.stdout == "['-H', 'x', '--help']\n",
                  "exec %sSCRIPT" % "".join(each + " " for each in dashes), result)
    os.unlink("script.py")


def awkward_names(tap):
    for name in AWKWARD:
        raw = os.fsencode(name)
        result = suite.run(
            [suite.CONFORM.encode(), b"--handler=./" + raw, b"--run=abi.loads", b"--json=names.json"]
        )
        held = result.code == 0 and not result.stderr and result.stdout.count("\n") == 6
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
    for arguments in (["list"], ["--help"], ["--version"], sound[1:3], sound[1:3] + ["--tap=-"]):
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


def no_python(tap):
    result = suite.conform("-Haligned", "--run=abi.loads", "--json=x", env={"PYTHONHOME": "/nowhere"})
    held = result.code == USAGE and re.match(
        r"\Aconform: no python3 on PATH has NumPy; try without PYTHONHOME=/nowhere, or .* by --python "
        r"\(\S+python3 .*: \S+Error: .*\)\n\Z",
        result.stderr)
    tap.point(held and not os.path.exists("x"), "an interpreter that does not start", result)
    os.makedirs("no_numpy/numpy")
    suite.write("no_numpy/numpy/__init__.py", "raise ImportError('half of it is missing')\n")
    result = suite.conform("-Haligned", "--jobs=2", timeout=30, env={"PYTHONPATH": "no_numpy"})
    held = (result.code == USAGE and "half of it is missing" in result.stderr and
            "; try without PYTHONPATH=no_numpy, or name" in result.stderr)
    tap.point(held, "a NumPy that does not work, and a worker that waits for another", result)
    shutil.rmtree("no_numpy")


def man_page(tap):
    """It names the same options as --help-all, and formatters have nothing to say about it."""
    with open(MAN_PAGE) as file:
        page = file.read()
    tags = "".join(line for line in page.splitlines() if line.startswith(".It "))
    named = set(re.findall(r"Fl -([a-z][a-z-]*)", tags))
    wanted = set(re.findall(r"(?m)^  .{4}--([a-z][a-z-]*)", suite.conform("--help-all").stdout))
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
    help_pages(tap)
    with suite.scratch(enter=True):
        make_files()
        before = sorted(os.listdir(b"."))
        option_cases(tap)
        subject_cases(tap)
        after = sorted(os.listdir(b"."))
        tap.point(before == after, "wrong use leaves no file behind", set(after) - set(before))
        right_cases(tap)
        handler_as_operand(tap)
        program_without_dashes(tap)
        awkward_names(tap)
        closed_descriptors(tap)
        no_python(tap)
        left = set(os.listdir(b".")) - set(before) - {b"all.tap", b"all.xml"}
        tap.point(not left, "right use leaves what was asked for alone", left)
    tap.end()


main()
