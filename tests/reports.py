# SPDX-License-Identifier: BSD-3-Clause
"""The report formats: they agree with each other and with the text, whatever the subject says."""

import hashlib
import json
import os
import re

import suite
from readers import Report, clean, counts, other_readers, same_verdicts

HANDLER = r"""
#include <stdio.h>
#include <stdlib.h>
#include "nep49.h"
static void say(void) { fwrite(words, 1, sizeof words, stdout); }
static void *m(void *c, size_t n) { (void)c; say(); return n % 8 == 5 ? NULL : malloc(n); }
static void *z(void *c, size_t n, size_t e)
{
    (void)c;
    say();
    return n == 5 ? abort(), NULL : calloc(n, e);
}
static void *r(void *c, void *p, size_t n) { (void)c; return realloc(p, n); }
static void f(void *c, void *p, size_t n) { (void)c, (void)n; free(p); }
NEP49_EXPORT PyDataMem_Handler nep49_handler = {NAME, 1, {NULL, m, z, r, f}};
NEP49_EXPORT const char nep49_claims[] = CLAIMS;
"""

# What a handler is named, what it claims and what it prints.
WORDS = [
    ("forged test points", b"\nok 1 - forged\nnot ok 2 - forged\n1..2\nBail out!\n"),
    ("markup", b"<failure message=\"x\"/>&amp; & ]]> <![CDATA[ <!-- --> </testcase>"),
    ("quotes and backslashes", b"\" \\ \\\" ' \\u0041 \\x41 {\"a\": 1},"),
    ("control characters", bytes(range(1, 32)) + b"\x7f\x1b[2J\x1b]0;owned\x07"),
    ("broken UTF-8", b"\xff\xfe\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80 \xe2\x82"),
    ("marks that reverse a line", "\u202egnol\u2066\u2028\u2029\ufeff\u200b\x85".encode()),
    ("no end", b"x" * 127),
    ("letters", "h\u00e4ndl\u00e9r \u20ac \U0001f40d".encode()),
]


# Sound, but with each call it makes more requests of libc than before: no end to refusing them.
# Where it is slow, half of the time is over before all sizes were tried.
ENDLESS = r"""
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "nep49.h"
static size_t calls;
static void ask(void)
{
    int error = errno;
    usleep(SLEEP);
    calls++;
    for (size_t i = 0; i < calls && SLEEP == 0; i++)
        free(malloc(1));
    errno = error;
}
static void *m(void *c, size_t n) { (void)c; ask(); return malloc(n); }
static void *z(void *c, size_t n, size_t e) { (void)c; ask(); return calloc(n, e); }
static void *r(void *c, void *p, size_t n) { (void)c; return realloc(p, n); }
static void f(void *c, void *p, size_t n) { (void)c, (void)n; free(p); }
NEP49_EXPORT PyDataMem_Handler nep49_handler = {"endless", 1, {NULL, m, z, r, f}};
"""


# One at least has each verdict, and the words in its message.
SOME = ["--run=" + glob for glob in ("abi.*", "calloc.*", "claim.*", "env.*", "malloc.e*",
                                     "malloc.z*", "numpy.name", "performance.*")]
SEED = "--seed=12345678901234567890"


def array(data):
    return "{%s}" % ", ".join("(char)%d" % byte for byte in data) if data else "{0}"


def build(name, words):
    """A handler that breaks several clauses and says `words` wherever it can."""
    with open(name + ".c", "w") as file:
        file.write("static const char words[] = %s;\n" % array(words))
        file.write("#define NAME %s\n#define CLAIMS %s\n" % (array(words), array(words + b"\0")))
        file.write(HANDLER)
    return "./" + suite.build(name + ".c", name + ".so", "-w")


def members(tap, what, report, name):
    """What the JSON says about the run."""
    subject, environment = report.json["subject"], report.json["environment"]
    with open(subject["file"], "rb") as file:
        hashed = hashlib.sha256(file.read()).hexdigest()
    held = (
        report.json["format"] == "conform-report-2"
        and subject["sha256"] == hashed
        and subject["name"] == name
        and subject["version"] == 1
        and re.match(r"3\.\d+\.\d+", environment["python"])
        and environment["numpy"] == os.environ["NUMPY_VERSION"]
        and environment["executable"] == suite.PYTHON
        and environment["page_size"] == os.sysconf("SC_PAGESIZE")
        and environment["free_threaded"] in (True, False)
        and (environment["gil"] or environment["free_threaded"])
        and environment["kernel"].split()[1] == os.uname().release
        and re.match(r"\w+", environment["libc"])
        and report.json["seed"] == "12345678901234567890"
        and report.json["rounds"] == 1
        and report.json["whole"]
        and report.json["seconds"] >= 0
    )
    tap.point(held, what + ": JSON has all that is known of the run", report.raw["r.json"][:900])
    keys = {"id", "title", "level", "basis", "target", "verdict", "message", "seconds"}
    more = {"clause", "source", "hint", "reproduce"}
    held = all(
        keys <= set(p) and (p["verdict"] in ("PASS", "SKIP") or more <= set(p))
        for p in report.json["properties"]
    )
    tap.point(held, what + ": each property has all of its members")


def check_formats(tap, what, report):
    same_verdicts(tap, what, report)
    counts(tap, what, report)
    other_readers(tap, what, report)


GOLDEN = os.path.join(suite.SOURCE, "tests", "golden")


def golden(tap, ending, text, result):
    """The output is that of tests/golden, which a change of the format changes too."""
    made = suite.write("report." + ending, text)
    same = suite.run(["diff", "-u", os.path.join(GOLDEN, made), made])
    tap.point(same.code == 0, "tests/golden/" + made, "%s\n%s" % (result, same.stdout))


def formats(tap):
    """A report with each verdict, waivers and markup gives the stored files."""
    saved = os.path.join(GOLDEN, "report.json")
    for name, ending in (("tap", "tap"), ("junit", "xml"), ("badge", "svg"), ("markdown", "md"),
                         ("html", "html"), ("github", "github")):
        result = suite.run([suite.PYTHON, "-B",
                            os.path.join(suite.SOURCE, "python", "conform_report"),
                            "--%s=-" % name, saved], env={"CONFORM_DOCS": '../html"'})
        text = result.stdout
        if name == "html":  # the body, with a line for each part
            text = re.sub("(?s)^.*(?=<body>)|<script>.*</script>\n", "", text)
            text = re.sub("\n(?!<(?:section|article|details|tr)\\b|$)", " ", text)
        golden(tap, ending, text, result)


def comparison(tap):
    """compare with an earlier report, and with --quiet, which leaves out the first line."""
    report = suite.load(os.path.join(GOLDEN, "report.json"))
    report["environment"]["numpy"] = "2.4.5\033[31m"
    for p, verdict in zip(report["properties"], ["FAIL", "PASS", "PASS", "FAIL", "SKIP", "PASS"]):
        p["verdict"] = verdict
    report["properties"].pop()
    words = suite.write("old.json", report), os.path.join(GOLDEN, "report.json")
    result, quiet = suite.conform("compare", *words), suite.conform("compare", "-q", *words)
    golden(tap, "compare", result.stdout, result)
    tap.point(result.stdout.partition("\n")[2] == quiet.stdout, "compare --quiet", quiet)


def stopped_short(tap):
    """What stops at a limit of its own is INCOMPLETE, and has an exit code."""
    if suite.SANITIZED:
        tap.skip("a handler that makes more and more requests", "with sanitizers none is seen")
        return
    for name, sleep in ("endless", 0), ("slow", 2000):
        suite.write(name + ".c", "#define SLEEP %d\n%s" % (sleep, ENDLESS))
        suite.build(name + ".c", name + ".so", "-w")
    report = Report("./slow.so", "--timeout=3", "--run=malloc.neighbours", "--run=free.null")
    slow = {p["id"]: p for p in report.json["properties"]}["malloc.neighbours"]
    tap.point(slow["verdict"] == "INCOMPLETE" and report.result.code == suite.INCOMPLETE
              and re.match(r"\d+ rows of scenarios were run, \d % of", slow["message"]),
              "malloc.neighbours is INCOMPLETE on one that is slow", report.result)
    check_formats(tap, "malloc.neighbours", report)
    for words, code in ([], suite.CONFORMANT), (["--strict"], suite.INCOMPLETE):
        report = Report("./endless.so", "--timeout=1", "--run=exhaustion.no-leak", *words)
        held = report.json["properties"][0]["verdict"] == "INCOMPLETE"
        tap.point(held and report.result.code == code, " ".join(["a SHOULD", *words]),
                  report.result)


# A mutant, and the properties that alone may fail.
OWNERS = {
    "free_of_null_crashes": {"free.null", "free.null-with-size"},
    "free_is_missing": {"abi.functions-present"},
    "malloc_zero_is_static": {"malloc.zero"},
    "free_aborts_on_wrong_size": {"free.best-guess-size", "free.any-size"},
    "prints_each_call": {"env.quiet", "process.ends-quietly"},
}
CALLS = ["--skip=%s.*" % group for group in
         ("context", "interop", "numpy", "owndata", "profile", "runtime", "scenarios", "threads")]


def blames_the_owner(tap):
    """A call that goes wrong is told by the property about it; those it also ends point there."""
    owners_of = dict(list(OWNERS.items())[:None if suite.LONG else 3])
    handlers = [os.path.join(suite.FAULTY, "faulty.so:" + mutant) for mutant in owners_of]
    result = suite.conform(*("--handler=" + each for each in handlers), "--strict", "--jobs=1",
                           "--timeout=5", "--json=-", *([] if suite.LONG else CALLS), timeout=600)
    reports = json.loads(result.stdout)
    for (mutant, owners), handler, report in zip(owners_of.items(), handlers, reports):
        against = [p["id"] for p in report["properties"] if p["target"] == "handler"
                   and p["verdict"] not in ("PASS", "SKIP")]
        pointing = [p for p in report["properties"] if p.get("caused_by") in owners]
        tap.point(set(against) == owners, "%s is told by %s alone" % (mutant, " and ".join(owners)),
                  against)
        if mutant.startswith("prints"):
            continue  # it does nothing that could end others
        tap.point(len(pointing) > 3 and all(p["verdict"] == "SKIP" for p in pointing),
                  "others that it ends point there", pointing)
        alone = suite.conform("--handler=" + handler, "--run=" + pointing[0]["id"], "--strict")
        tap.point(alone.code == suite.NOT_CONFORMANT, "run alone, they do not", alone)


def found_by_a_scenario(tap):
    """The property that states the requirement reports what a scenario finds."""
    if suite.SANITIZED:
        tap.skip("a scenario's violation", "with sanitizers no request can be refused")
        return
    handler = os.path.join(suite.FAULTY, "claimed.so:claimed_alignment_not_when_refused")
    report = Report(handler, "--run=scenarios.pressure", "--run=malloc.claimed-alignment")
    told = {p["id"]: (p["verdict"], p.get("found_by") or p.get("caused_by"))
            for p in report.json["properties"]}
    tap.point(told == {"malloc.claimed-alignment": ("FAIL", "scenarios.pressure"),
                       "scenarios.pressure": ("SKIP", "malloc.claimed-alignment")},
              "a scenario's violation is reported by the property it breaks", report.result)


def advises_memcheck(tap):
    """Memory that was overwritten shows anywhere: then valgrind is the one to ask."""
    if suite.SANITIZED:
        tap.skip("--memcheck is advised", "valgrind and sanitizers exclude each other")
        return
    handler = os.path.join(suite.FAULTY, "faulty.so:realloc_copies_old_size")
    python = "--python=" + suite.PYTHON
    advice = "%s --handler=%s %s --memcheck" % (suite.CONFORM, handler, python)
    result = suite.conform("--handler=" + handler, python, "--jobs=1", "--run=realloc.*")
    tap.point(re.search(r"crashes at \d places", result.stdout) and advice in result.stdout,
              "after many crashes --memcheck is advised, with the interpreter asked for", result)


def coverage(tap):
    """A property that runs rows reports how much it covered, and explain lists the levels."""
    report = Report("aligned", "--run=calloc.alignment", "--run=abi.version", "-v", "--seed=1")
    each = {p["id"]: p.get("coverage") for p in report.json["properties"]}
    rows = each["calloc.alignment"]
    words = "  {calls:,} calls checked, {combinations} of {possible} combinations\n".format(**rows)
    tap.point(0 < rows["rows"] < rows["calls"] and 0 < rows["combinations"] <= rows["possible"]
              and rows["full"] == (rows["combinations"] == rows["possible"])
              and words in report.result.stdout and each["abi.version"] is None,
              "coverage in JSON and -v", report.result)
    shown, other = (" ".join(suite.conform("explain", identity).stdout.split())
                    for identity in ("calloc.alignment", "abi.version"))
    tap.point("FACTORS size: 0; 1; 2 to 7;" in shown and "memory before: fresh;" in shown
              and "FACTORS" not in other, "explain has the factors", shown)


def main():
    tap = suite.Tap()
    with suite.scratch(enter=True):
        formats(tap)
        comparison(tap)
        whole = Report("aligned", SEED, "-v", "--strict", "--jobs=4", "--timeout=60")
        tap.point(whole.json["conformant"], "aligned is conformant", whole.result)
        members(tap, "aligned", whole, "aligned")
        check_formats(tap, "aligned", whole)
        rounds = Report("shift_header", "--run=malloc.extent", "--repeat=3")
        check_formats(tap, "rounds", rounds)
        for number, (what, words) in enumerate(WORDS):
            report = Report(build("hostile%d" % number, words), "--strict" if number % 2 else "-v",
                            "--jobs=1", *([] if suite.LONG else SOME))
            check_formats(tap, what, report)
            clean(tap, what, report)
        coverage(tap)
        stopped_short(tap)
        blames_the_owner(tap)
        found_by_a_scenario(tap)
        advises_memcheck(tap)
    tap.end()


main()
