# SPDX-License-Identifier: BSD-3-Clause
"""--bundle and --verify: what is written can be read by others, is the same for the same run, and
is told to be untouched and complete where it is; anything else is one line and status 2, however it
was made.  tests/unit_bundle.c changes each byte of one.
"""

import hashlib
import io
import json
import os
import random
import tarfile
import zlib

import suite
from suite import CONFORMANT, INCOMPLETE, NOT_CONFORMANT, USAGE

EPOCH = {"SOURCE_DATE_EPOCH": "1700000000"}
FOLDER = "conform-bundle/"
WITHOUT_WAIVERS = ["MANIFEST", "report.json", "report.txt", "properties.txt"]
HANDLER = """
#include <stdlib.h>
#include <string.h>
#include "nep49.h"
static void *m(void *c, size_t n) { (void)c; return malloc(n ? n : 1); }
static void *z(void *c, size_t n, size_t e)
{
    (void)c;
    void *p = calloc(n ? n : 1, e ? e : 1);
    if (p != NULL && n == 1 && getenv("BREAKS") != NULL)
        memset(p, 1, e);
    return p;
}
static void *r(void *c, void *p, size_t n) { (void)c; return realloc(p, n ? n : 1); }
static void f(void *c, void *p, size_t n) { (void)c, (void)n; free(p); }
NEP49_EXPORT PyDataMem_Handler mine = {"mine", 1, {NULL, m, z, r, f}};
"""
WAIVERS = """[[expect]]
id = "calloc.*"
verdict = "FAIL"
reason = "kn\u00f6wn \\"and\\" told"
until = 2999-01-01
"""


# ---- as the program writes them, from parts ------------------------------------------------------

BEGIN = (b"\x1f\x8b\x08\x10\0\0\0\0\x02\x03"
         b"conform bundle; SHA-256 of all behind this: ")


def seal(tar):
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    packed = packer.compress(tar) + packer.flush()
    packed += zlib.crc32(tar).to_bytes(4, "little") + (len(tar) % 2 ** 32).to_bytes(4, "little")
    return BEGIN + hashlib.sha256(packed).hexdigest().encode() + b"\0" + packed


def header(short, size=0, **more):
    info = tarfile.TarInfo(FOLDER + short)
    info.size, info.mtime, info.uname, info.gname = size, 1700000000, "root", "root"
    for key, value in more.items():
        setattr(info, key, value)
    return info


def tar_of(members):
    """Members are names and contents, or headers."""
    parts = []
    for name, content in members:
        info = name if isinstance(name, tarfile.TarInfo) else header(name, len(content))
        parts += [info.tobuf(tarfile.USTAR_FORMAT), content, bytes(-len(content) % 512)]
    return b"".join(parts) + bytes(1024)


def members_of(file):
    with tarfile.open(file) as archive:
        return [(m.name[len(FOLDER):], archive.extractfile(m).read()) for m in archive]


def with_manifest(members):
    rest = [member for member in members if member[0] != "MANIFEST"]
    lines = ["%s  %s\n" % (hashlib.sha256(content).hexdigest(), name) for name, content in rest]
    return [("MANIFEST", "".join(lines).encode())] + rest


def write(content, name="x.tar.gz"):
    with open(name, "wb") as file:
        file.write(content)
    return name


def verify(*words, **more):
    return suite.conform("--verify", *words, **more)


def is_told(result, words=""):
    return (result.code == USAGE and not result.stdout and result.stderr.count("\n") == 1
            and result.stderr.startswith("conform: ") and words in result.stderr)


# ---- what is written -----------------------------------------------------------------------------

def a_whole_run(tap):
    result = suite.conform("-H", "aligned", "--bundle=whole.tar.gz", "--with-subject", "--quiet",
                           "--json=whole.json")
    members = dict(members_of("whole.tar.gz"))
    report, written = json.loads(members["report.json"]), json.load(open("whole.json"))
    tap.point(result.code == CONFORMANT and list(members) == WITHOUT_WAIVERS + ["handler.so"]
              and members["MANIFEST"] == dict(with_manifest(list(members.items())))["MANIFEST"],
              "others can read it", list(members))
    verdicts = [[(p["id"], p["verdict"]) for p in r["properties"]] for r in (report, written)]
    listed = [line.split()[0] for line in suite.conform("--list").stdout.splitlines()]
    tap.point(verdicts[0] == verdicts[1] and members["properties.txt"].decode().split() == listed
              and hashlib.sha256(members["handler.so"]).hexdigest() == written["subject"]["sha256"]
              and '"seconds"' not in json.dumps(report)
              and "\naligned: CONFORMANT" in members["report.txt"].decode(),
              "it has what the run had, and no times", report["conclusion"])
    result = verify("whole.tar.gz")
    tap.point(result.code == CONFORMANT and "untouched and complete: each of %d properties once, "
              "none waived\n" % len(listed) in result.stdout and "not signed" in result.stdout
              and written["subject"]["sha256"] in result.stdout, "it is complete", result)


def the_same_again(tap):
    words = ["-H", "./mine.so:mine", "--quick", "--quiet"]
    for name in ("one.tar.gz", "other.tar.gz"):
        suite.conform(*words, "--bundle=" + name, env={**EPOCH, "BREAKS": "1"})
    if suite.SANITIZED:
        tap.skip("the same run gives the same bytes", "what a sanitizer says is another each time")
        return
    one, other = open("one.tar.gz", "rb").read(), open("other.tar.gz", "rb").read()
    tap.point(one == other, "the same run gives the same bytes, addresses or not")
    suite.conform(*words, "--bundle=timed.tar.gz", env={"BREAKS": "1"})
    tap.point(members_of("timed.tar.gz") == members_of("one.tar.gz"), "but for times")
    result = verify("one.tar.gz")
    tap.point(result.code == NOT_CONFORMANT and "untouched, but a part: it is of --quick" in
              result.stdout and "\n        FAILED: 1 of " in result.stdout, "a part that fails",
              result)
    for words, said in ((["--run=abi.v*"], "--run or --skip has left properties out"),
                        (["--quick"], "it is of --quick")):
        suite.conform("-H", "aligned", *words, "--bundle=part.tar.gz")
        result = verify("--quiet", "part.tar.gz")
        tap.point(result.code == INCOMPLETE and result.stdout.count("\n") == 1
                  and "untouched, but a part: " + said in result.stdout, "a part: " + said, result)
    result = verify("--quiet", "one.tar.gz", "none.tar.gz", "part.tar.gz")
    tap.point(result.code == USAGE and result.stdout.count("\n") == 2
              and result.stderr.count("\n") == 1, "several", result)


def run_again(tap):
    with open("w.toml", "w", encoding="utf-8") as file:
        file.write(WAIVERS)
    words = ["-H", "./mine.so:mine", "--run=calloc.z*", "--claim=alignment=16", "--seed=7"]
    suite.conform(*words, "--bundle=with.tar.gz", "--with-subject")
    suite.conform(*words, "--bundle=without.tar.gz")
    os.rename("mine.so", "moved.so")
    before = set(os.listdir("/tmp"))
    result = verify("--rerun", "with.tar.gz")
    tap.point(result.code == INCOMPLETE and "run again: the same verdicts\n" in result.stdout,
              "run again", result)
    result = verify("--rerun", "with.tar.gz", env={"BREAKS": "1"})
    tap.point(result.code == NOT_CONFORMANT and "\nNEW     calloc.zeroed: FAIL" in result.stdout
              and "run again: not the same verdicts\n" in result.stdout, "not the same", result)
    suite.conform("-H", "./moved.so:mine", "--run=free.null", "--run=runtime.dot*",
                  "--bundle=numpy.tar.gz", "--with-subject")
    os.mkdir("other")
    with open("other/sitecustomize.py", "w", encoding="utf-8") as file:
        file.write("import os, numpy\nnumpy.dot = lambda *_: os.abort()\n")
    result = verify("--rerun", "numpy.tar.gz", env={"PYTHONPATH": os.path.abspath("other")})
    tap.point(result.code == INCOMPLETE and "run again: the same verdicts\n" in result.stdout,
              "NumPy does other than it did", result)
    left = [name for name in set(os.listdir("/tmp")) - before if name.startswith("conform-rerun")]
    tap.point(not left, "nothing is left behind", left)
    result = verify("--rerun", "without.tar.gz")
    tap.point(result.code == USAGE
              and "without.tar.gz: --rerun: there is no handler in it" in result.stderr,
              "none in it", result)
    result = verify("--rerun", "without.tar.gz", "--handler=./moved.so:mine")
    tap.point(result.code == INCOMPLETE and "run again: the same" in result.stdout, "--handler",
              result)
    result = verify("--rerun", "without.tar.gz", "--handler=aligned")
    tap.point(result.code == USAGE and result.stderr.startswith(
        "conform: without.tar.gz: --rerun: aligned is not the handler of the bundle: "),
        "another handler", result)
    made = suite.conform("-H", "./moved.so:mine", "--run=calloc.[oz]*", "--expect=w.toml",
                         "--bundle=waived.tar.gz", "--with-subject", env={"BREAKS": "1"})
    if "was built without toml++" in made.stderr:
        tap.skip("waivers", "install libtomlplusplus-dev and g++, and configure again")
        return
    members = dict(members_of("waived.tar.gz"))
    result = verify("--rerun", "waived.tar.gz", env={"BREAKS": "1"})
    tap.point(result.code == INCOMPLETE and "conformant with " in result.stdout
              and "run again: the same" in result.stdout
              and 'id = "calloc.*"\n' in members["waivers.toml"].decode(), "waivers", result)


# ---- what is refused -----------------------------------------------------------------------------

def forged(change):
    """A whole bundle after that change of its report, with the hashes that belong to it."""
    members = members_of("whole.tar.gz")
    report = json.loads(dict(members)["report.json"])
    change(report)
    data = json.dumps(report).encode()
    members = [(name, data if name == "report.json" else content) for name, content in members]
    return seal(tar_of(with_manifest(members)))


def failing(report):
    first = next(p for p in report["properties"] if p["id"] == "calloc.zeroed")
    first["verdict"] = "FAIL"
    return first


def failing_in_the_sums(report):
    failing(report)
    report["verdicts"]["handler"]["FAIL"] += 1
    report["verdicts"]["handler"]["PASS"] -= 1


def waived(report):
    failing_in_the_sums(report)
    failing(report)["waived"] = {"reason": "hidden"}


def swapped(report):
    properties = report["properties"]
    passing = [p for p in properties if p["verdict"] == "PASS" and p["target"] == "handler"]
    properties[properties.index(passing[0])] = passing[1]


def setting(name, value):
    def change(report):
        report[name] = value
    return change


FORGED = [
    ("a verdict", failing, USAGE, "its summary is not that of its verdicts"),
    ("a verdict, and the sums", failing_in_the_sums, USAGE, "its summary is not"),
    ("a waiver that nobody says", waived, USAGE, "its summary is not"),
    ("one property twice", swapped, INCOMPLETE, "it has not each property of its list once"),
    ("a conclusion", setting("conclusion", "CONFORMANT with 1 waiver"), USAGE, "its conclusion is"),
    ("a status", setting("exit_code", 1), USAGE, "its exit_code is not"),
    ("a status that nothing came of", setting("exit_code", 77), USAGE, "its exit_code is not"),
    ("rounds", setting("rounds", 20), USAGE, "its rounds are not"),
    ("a seed", setting("seed", "1e9"), USAGE, "its seed is none"),
    ("a seed of the day", setting("daily_seed", "-1"), USAGE, "its daily_seed is none"),
    ("a level", lambda report: report["properties"][0].update(level="SHOULD"), USAGE,
     "is not what it is in conform"),
    ("another handler", setting("subject", {"sha256": "0"}), USAGE, "the handler in it is not"),
    ("no properties", setting("properties", []), USAGE, "its summary is not"),
    ("no report", setting("format", "none"), USAGE, "its report is none"),
    ("another version", setting("conform", "9.9.9"), CONFORMANT, "complete by its own list"),
    ("nothing", lambda report: None, CONFORMANT, "untouched and complete"),
]


def hostile():
    good = members_of("whole.tar.gz")
    sparse = header("handler.so", 0, type=tarfile.GNUTYPE_SPARSE)
    yield "a path that leaves", [(header("../../evil", 4), b"evil")] + good
    yield "an absolute path", [(header("x", 4, name="/tmp/evil"), b"evil")] + good
    yield "a link", good[:-1] + [(header("handler.so", type=tarfile.SYMTYPE, linkname="/"), b"")]
    hard = header("handler.so", type=tarfile.LNKTYPE, linkname=FOLDER + "MANIFEST")
    yield "a hard link", good[:-1] + [(hard, b"")]
    yield "a folder", [(header("", type=tarfile.DIRTYPE, mode=0o755), b"")] + good
    yield "a device", good + [(header("null", type=tarfile.CHRTYPE), b"")]
    yield "a sparse member", good[:-1] + [(sparse, b"")]
    yield "a name twice", good + good[-1:]
    yield "a member beside the others", good + [("other", b"more")]
    yield "another order", good[::-1]
    yield "thousands of members", good + [("handler.so", b"")] * 5000
    yield "a huge member", good[:-1] + [(header("handler.so", 8 ** 11 - 1), b"")]
    yield "a program", [(header(*(name, len(content)), mode=0o4755), content)
                        for name, content in good]
    yield "nothing", []
    yield "no text", with_manifest([m for m in good if m[0] != "report.txt"])
    yield "a manifest that is not so", [("MANIFEST", b"")] + good[1:]
    yield "deep JSON", with_manifest([(n, b"[" * 100000 if n == "report.json" else c)
                                      for n, c in good])
    yield "NULs", with_manifest([(n, bytes(3000) if n != "handler.so" else c) for n, c in good])


def refused(tap):
    for name, change, code, words in FORGED:
        result = verify(write(forged(change)))
        tap.point(result.code == code and words in result.stdout + result.stderr
                  and ("untouched and complete" in result.stdout) == (name == "nothing")
                  and (code != USAGE or is_told(result)), "forged: " + name, result)
    for name, members in hostile():
        result = verify(write(seal(tar_of(members))))
        tap.point(is_told(result) and not os.path.exists("/tmp/evil"), "hostile: " + name, result)
    whole = open("whole.tar.gz", "rb").read()
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w:gz") as archive:
        for name, content in members_of("whole.tar.gz"):
            archive.addfile(header(name, len(content)), io.BytesIO(content))
    bomb = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = b"".join(bomb.compress(bytes(1 << 20)) for _ in range(300)) + bomb.flush() + bytes(8)
    numbers = random.Random(49)
    for name, content in (("empty", b""), ("garbage", numbers.randbytes(5000)),
                          ("packed by tar", plain.getvalue()), ("cut", whole[:-1]),
                          ("longer", whole + b"\0"), ("two in one", whole + whole),
                          ("a bomb", BEGIN + hashlib.sha256(packed).hexdigest().encode() + b"\0"
                           + packed), ("no end", seal(tar_of(members_of("whole.tar.gz"))[:-512]))):
        result = verify(write(content))
        tap.point(is_told(result), name, result)
    os.mkfifo("fifo")
    for name in ("none", ".", "/dev/null", "fifo"):
        result = verify(name)
        tap.point(is_told(result, name), name, result)
    names = [write(whole[:at] + bytes([whole[at] ^ 1 << numbers.randrange(8)]) + whole[at + 1:],
                   "flipped-%d" % at) for at in range(len(whole))]
    result = verify(*names)
    tap.point(result.code == USAGE and not result.stdout
              and result.stderr.count("\n") == len(names), "each byte in turn with a bit changed",
              result)


def usage(tap):
    for words, said in ((["--with-subject"], "--with-subject goes with --bundle"),
                        (["--bundle=none/x.tar.gz"], "cannot be written"),
                        (["--bundle=x.tar.gz", "-H", "kept"],
                         "several --handler make no --bundle")):
        result = suite.conform("-H", "aligned", "--run=abi.v*", *words)
        tap.point(is_told(result, said), said, result)
    result = suite.conform("-H", "aligned", "--bundle=x", env={"SOURCE_DATE_EPOCH": "today"})
    tap.point(is_told(result, "SOURCE_DATE_EPOCH=today"), "no time", result)
    result = suite.conform("-H", "python:json:loads", "--bundle=x", "--with-subject")
    tap.point(is_told(result, "a handler from Python is no file"), "a handler from Python", result)
    for words, said in (([], "--verify takes bundles"), (["--handler=aligned", "x"], "--rerun"),
                        (["--rerun", "x", "y"], "takes one bundle")):
        tap.point(is_told(verify(*words), said), said, verify(*words))


def main():
    tap = suite.Tap()
    with suite.scratch() as folder:
        os.chdir(folder)
        with open("mine.c", "w") as file:
            file.write(HANDLER)
        suite.build("mine.c", "mine.so")
        a_whole_run(tap)
        the_same_again(tap)
        run_again(tap)
        refused(tap)
        usage(tap)
        os.chdir("..")
    tap.end()


if __name__ == "__main__":
    main()
