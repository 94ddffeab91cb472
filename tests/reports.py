# SPDX-License-Identifier: BSD-3-Clause
"""The report formats, each read back by a reader of somebody else's: Python's json and xml,
xmllint, prove.  They have to agree with each other and with the text, whatever the subject says.
"""

import hashlib
import json
import os
import re
import shutil
import sys
import xml.etree.ElementTree

import suite

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
    ("forged YAML", b"\n  ...\nok 99\n  ---\n  verdict: \"PASS\"\n"),
    ("directives", b"name # SKIP not at all # TODO never"),
    ("markup", b"<failure message=\"x\"/>&amp; & ]]> <![CDATA[ <!-- --> </testcase>"),
    ("quotes and backslashes", b"\" \\ \\\" ' \\u0041 \\x41 {\"a\": 1},"),
    ("control characters", bytes(range(1, 32)) + b"\x7f\x1b[2J\x1b]0;owned\x07"),
    ("broken UTF-8", b"\xff\xfe\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80 \xe2\x82"),
    ("marks that reverse a line", "\u202egnol\u2066\u2028\u2029\ufeff\u200b\x85".encode()),
    ("no end", b"x" * 127),
    ("percent signs", b"%s%n%d%p%%"),
    ("letters", "h\u00e4ndl\u00e9r \u20ac \U0001f40d".encode()),
    ("nothing", b""),
]


def array(data):
    return "{%s}" % ", ".join("(char)%d" % byte for byte in data) if data else "{0}"


def build(name, words):
    """A handler that breaks several clauses and says `words` wherever it can."""
    with open(name + ".c", "w") as file:
        file.write("static const char words[] = %s;\n" % array(words))
        file.write("#define NAME %s\n#define CLAIMS %s\n" % (array(words), array(words + b"\0")))
        file.write(HANDLER)
    return "./" + suite.build(name + ".c", name + ".so", "-w")


class Report:
    """One run, in all formats."""

    def __init__(self, handler, *options):
        self.result = suite.conform("--handler=" + handler, "--json=r.json", "--junit=r.xml",
                                    "--tap=r.tap", "--timeout=5", *options)
        self.raw = {}
        for name in ("r.json", "r.xml", "r.tap"):
            with open(name, "rb") as file:
                self.raw[name] = file.read()
        self.raw["text"] = self.result.stdout.encode()
        self.strict = "--strict" in options
        self.json = json.loads(self.raw["r.json"])
        self.junit = xml.etree.ElementTree.fromstring(self.raw["r.xml"])
        self.tap = self.raw["r.tap"].decode().splitlines()

    def verdicts(self):
        """By JSON: verdict and message of each property, in order."""
        return [(p["id"], p["verdict"], p["message"]) for p in self.json["properties"]]

    def junit_verdicts(self):
        for case in self.junit.iter("testcase"):
            verdict, message = "PASS", ""
            for child in case:
                if child.tag in ("failure", "error"):
                    verdict, message = child.get("type"), child.get("message")
                elif child.tag == "skipped":
                    verdict, message = "SKIP", child.get("message")
                elif verdict == "PASS":
                    told = re.match(r"(WARN|FAIL|CRASH|TIMEOUT): (.*)\n", child.text)
                    verdict, message = told.groups() if told else (verdict, message)
            yield case.get("name"), verdict, message

    def tap_verdicts(self):
        """A verdict that is no plain "ok" stands in the YAML behind the point."""
        unescape = re.compile(r"\\(.)")
        for at, line in enumerate(self.tap):
            point = re.match(r"(?:not )?ok \d+ - (\S+)(?: # (SKIP|TODO) (.*))?$", line)
            if not point:
                continue
            name, directive, reason = point.groups()
            yaml = {}
            if self.tap[at + 1:at + 2] == ["  ---"]:
                block = self.tap[at + 2:self.tap.index("  ...", at)]
                pairs = (re.match(r'  (\w+): "(.*)"$', each).groups() for each in block)
                yaml = {key: unescape.sub(r"\1", value) for key, value in pairs}
            if directive == "SKIP":
                yield name, "SKIP", unescape.sub(r"\1", reason)
            elif "expected" in yaml:
                yield name, yaml["verdict"], "expected %(expected)s; seen %(seen)s" % yaml
            else:
                yield name, yaml.get("verdict", "PASS"), yaml.get("seen", "")


def difference(left, right):
    both = [(a, b) for a, b in zip(left, right) if a != b]
    return "%d and %d properties; %s" % (len(left), len(right), both[:3])


def same_verdicts(tap, what, report):
    wanted = report.verdicts()
    for name, found in (("JUnit", report.junit_verdicts()), ("TAP", report.tap_verdicts())):
        found = list(found)
        tap.point(found == wanted, "%s: JSON and %s agree" % (what, name),
                  difference(wanted, found))


def told_tally(properties):
    """The words of the text's last line but one, each with its number."""
    words = {"PASS": "passed", "FAIL": "failed", "WARN": "warned", "CRASH": "crashed",
             "TIMEOUT": "timed out", "BROK": "not judged", "SKIP": "skipped"}
    tally = {}
    for each in properties:
        told = words[each["verdict"]]
        if each["judge"] == "runtime" and each["verdict"] not in ("PASS", "SKIP", "BROK"):
            told = "that NumPy itself breaks"
        tally[told] = tally.get(told, 0) + 1
    return {told: str(count) for told, count in tally.items()}


def counts(tap, what, report):
    """How many of each: in JSON's tally, in JUnit's attributes, and in the text's last lines."""
    verdicts = [verdict for _, verdict, _ in report.verdicts()]
    tally = {each: verdicts.count(each) for each in suite.VERDICTS}
    held = report.json["verdicts"] == tally and report.json["expected"] == len(verdicts)
    for element in [report.junit] + list(report.junit.iter("testsuite")):
        cases = list(element.iter("testcase"))
        held = held and int(element.get("tests")) == len(cases)
        for attribute in ("failures", "errors", "skipped"):
            tag = attribute[:-1] if attribute.endswith("s") else attribute
            count = sum(case.find(tag) is not None for case in cases)
            held = held and int(element.get(attribute)) == count
    tap.point(held, what + ": the counts are right", report.json["verdicts"])
    line = re.search(r"(?m)^(\d+) propert(?:y|ies)(?: in \d+ rounds)?: (.*); \d+\.\d\d s$",
                     report.result.stdout)
    told = dict(reversed(w.split(" ", 1)) for w in line.group(2).split(", ")) if line else {}
    held = told == told_tally(report.json["properties"]) and line.group(1) == str(len(verdicts))
    tap.point(held, what + ": the text has the same counts", report.result)
    concluded = report.json["conclusion"] in report.result.stdout
    coded = report.json["exit_code"] == report.result.code
    tap.point(concluded and coded and report.json["conformant"] == (report.result.code == 0),
              what + ": conclusion and exit code", report.result)


def is_clean(data):
    words = data.decode()  # raises where it is no UTF-8
    return not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029\ufeff]", words)


def clean(tap, what, report):
    for name, data in sorted(report.raw.items()):
        tap.point(is_clean(data), "%s: no control character in %s" % (what, name), data[:300])
    strings = json.dumps(report.json, ensure_ascii=False).replace("\\n", "")
    tap.point(is_clean(strings.encode()), what + ": nor behind JSON's escapes", strings[:300])
    texts = "".join(e.text or "" for e in report.junit.iter()) + "".join(
        value for e in report.junit.iter() for value in e.attrib.values())
    tap.point(is_clean(texts.encode()), what + ": nor behind XML's", texts[:300])


def other_readers(tap, what, report):
    """prove counts what failed, a WARN that --strict does not count being a TODO of its; xmllint
    reads the XML."""
    bad = {"FAIL", "CRASH", "TIMEOUT", "BROK"} | ({"WARN"} if report.strict else set())
    judges = {p["id"]: p["judge"] for p in report.json["properties"]}
    counted = {i: v == "BROK" or (v in bad and judges[i] == "handler")
               for i, v, _ in report.verdicts()}
    failed = sum(counted.values())
    if shutil.which("prove"):
        proved = suite.run(["prove", "--norc", "--exec", "cat", "r.tap"])
        total = re.search(r"Tests=(\d+)", proved.stdout)
        told = re.search(r"Failed (\d+)/\d+ subtests", proved.stdout)
        held = (proved.code == 0) == (failed == 0) and int(told.group(1) if told else 0) == failed
        held = held and total and int(total.group(1)) == len(judges)
        held = held and "Parse errors" not in proved.stdout + proved.stderr
        tap.point(held, "%s: prove counts %d that failed" % (what, failed), proved)
    else:
        tap.skip(what + ": prove", "it is not installed")
    if shutil.which("xmllint"):
        linted = suite.run(["xmllint", "--noout", "--nonet", "r.xml"])
        tap.point(linted.code == 0 and not linted.stderr, what + ": xmllint reads it", linted)
    else:
        tap.skip(what + ": xmllint", "it is not installed")


def members(tap, what, report, name):
    """What the JSON says about the run."""
    subject, environment = report.json["subject"], report.json["environment"]
    with open(subject["file"], "rb") as file:
        hashed = hashlib.sha256(file.read()).hexdigest()
    held = (
        report.json["format"] == "conform-report-1"
        and subject["sha256"] == hashed
        and subject["name"] == name
        and subject["version"] == 1
        and re.match(r"3\.\d+\.\d+", environment["python"])
        and environment["numpy"] == os.environ["NUMPY_VERSION"]
        and environment["executable"] == suite.PYTHON
        and environment["page_size"] == os.sysconf("SC_PAGESIZE")
        and environment["free_threaded"] in (True, False)
        and environment["kernel"].split()[1] == os.uname().release
        and re.match(r"\w+", environment["libc"])
        and report.json["seed"] == "12345678901234567890"
        and report.json["rounds"] == 1
        and report.json["whole"]
        and report.json["seconds"] >= 0
    )
    tap.point(held, what + ": JSON has all that is known of the run", report.raw["r.json"][:900])
    keys = {"id", "level", "basis", "judge", "verdict", "message", "seconds"}
    more = {"clause", "source", "hint", "again"}
    held = all(
        keys <= set(p) and (p["verdict"] in ("PASS", "SKIP") or more <= set(p))
        for p in report.json["properties"]
    )
    tap.point(held, what + ": each property has all of its members")


def again(tap, report):
    """The command that repeats a failure does repeat it."""
    for each in report.json["properties"]:
        if each["verdict"] == "FAIL":
            command = re.sub(r"^gdb --args ", "", each["again"])
            result = suite.run(["sh", "-c", command])
            held = result.code == 1 and "FAIL    " + each["id"] in result.stdout
            tap.point(held, "the command that repeats %s does" % each["id"], result)
            return
    tap.point(False, "there is a failure to repeat")


def same_every_time(tap):
    """Two runs with one seed differ in times and addresses, and in nothing else."""

    def told():
        result = suite.conform("-Haligned", "--seed=7", "--json=-")
        properties = json.loads(result.stdout)["properties"]
        return [(p["id"], p["verdict"], re.sub("0x[0-9a-f]+", "0x", p["message"]))
                for p in properties]

    once, again = told(), told()
    tap.point(once == again, "the same seed tells the same", difference(once, again))


def main():
    tap = suite.Tap()
    seed = "--seed=12345678901234567890"
    with suite.scratch() as folder:
        os.chdir(folder)
        report = Report("aligned", seed, "-v")
        members(tap, "aligned", report, "aligned")
        example = os.path.join(suite.FAULTY, "nep_example.so")
        for what, handler, options in [
            ("aligned", "aligned", ["-v"]),
            ("the NEP's example", example, []),
            ("the NEP's example, strictly", example, ["--strict"]),
            ("a part", "shift_header", ["--run=malloc.*", "--skip=malloc.zero"]),
            ("rounds", "shift_header", ["--run=malloc.extent", "--repeat=3"]),
        ]:
            report = Report(handler, *options)
            same_verdicts(tap, what, report)
            counts(tap, what, report)
            other_readers(tap, what, report)
        for number, (what, words) in enumerate(WORDS):
            report = Report(build("hostile%d" % number, words), "--strict" if number % 2 else "-v")
            same_verdicts(tap, what, report)
            counts(tap, what, report)
            clean(tap, what, report)
            other_readers(tap, what, report)
        again(tap, report)
        same_every_time(tap)
        os.chdir("..")
    tap.end()


if __name__ == "__main__":
    sys.exit(main())
