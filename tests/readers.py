# SPDX-License-Identifier: BSD-3-Clause
"""Reading reports back, by readers of somebody else's: Python's json and xml, and prove."""

import json
import re
import shutil
import xml.etree.ElementTree

import suite


class Report:
    """One run, in all formats."""

    def __init__(self, handler, *options, **more):
        if not any(option.startswith("--timeout") for option in options):
            options += ("--timeout=5",)
        self.result = suite.conform("--handler=" + handler, "--json=r.json", "--junit=r.xml",
                                    "--tap=r.tap", *options, **more)
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
                    told = re.match(r"(WARN|FAIL|CRASH|TIMEOUT|INCOMPLETE): (.*)\n", child.text)
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


def counts(tap, what, report):
    """How many of each: in JSON's tally, in JUnit's attributes, and in the text's last lines."""
    verdicts = [verdict for _, verdict, _ in report.verdicts()]
    told = [(each["target"], each["verdict"]) for each in report.json["properties"]]
    tally = {target: {each: told.count((target, each)) for each in suite.VERDICTS}
             for target in ("handler", "runtime")}
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
    wanted = sorted(count for count in tally["handler"].values() if count)
    told = sorted(map(int, re.findall(r"(\d+) ", line[2]))) if line else []
    tap.point(told == wanted and (not wanted or int(line[1]) == sum(wanted)),
              what + ": the text has the same counts", report.result)
    concluded = report.json["conclusion"] in " ".join(report.result.stdout.split())
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


def to_fail(report):
    """How many points prove counts as failed: a WARN that --strict does not count is a TODO."""
    bad = {"FAIL", "CRASH", "TIMEOUT", "BROK", "INCOMPLETE"}
    bad |= {"WARN"} if report.strict else set()
    targets = {p["id"]: p["target"] for p in report.json["properties"]}
    should = {p["id"] for p in report.json["properties"] if p["level"] == "SHOULD"}
    return sum(v == "BROK" or (v in bad and targets[i] == "handler"
                               and (v != "INCOMPLETE" or report.strict or i not in should))
               for i, v, _ in report.verdicts())


def prove(tap, what, wanted):
    """prove counts what failed: `wanted` has for each file how many points, and how many failed."""
    if not shutil.which("prove"):
        tap.skip(what + ": prove", "install it: Perl's Test::Harness")
        return
    proved = suite.run(["prove", "--norc", "--exec", "cat", *wanted])
    total = re.search(r"Tests=(\d+)", proved.stdout)
    told = {name: int(failed) for name, failed in re.findall(
        r"(?m)^(\S+) +\(Wstat: .*Failed: (\d+)\)$", proved.stdout)}
    failed = {name: told.get(name, 0) for name in wanted}
    held = failed == {name: count for name, (_, count) in wanted.items()}
    held = held and total and int(total.group(1)) == sum(points for points, _ in wanted.values())
    held = held and (proved.code == 0) == (not any(failed.values()))
    held = held and "Parse errors" not in proved.stdout + proved.stderr
    tap.point(held, "%s: prove counts %d that failed" % (what, sum(failed.values())),
              "%s\n%s" % (wanted, proved))


def other_readers(tap, what, report):
    prove(tap, what, {"r.tap": (len(report.json["properties"]), to_fail(report))})
