# SPDX-License-Identifier: BSD-3-Clause
"""JUnit's XML: a suite for each group, a case for each property."""

import collections
import itertools
import xml.etree.ElementTree as ET

from . import model


def is_expected(report, p):
    return "waived" in p and model.would_decide(report, p)


def outcome(report, p):
    """The element that a case gets, or None if it passes."""
    verdict = p["verdict"]
    if verdict == "SKIP" or not model.ran(report, p) or is_expected(report, p):
        return "skipped"
    if verdict == "BROK":
        return "error"
    if model.decides(report, p):
        return "error" if verdict in ("CRASH", "TIMEOUT", "INCOMPLETE") else "failure"
    return None


def counts(report, properties, stale=0):
    of = collections.Counter(outcome(report, p) for p in properties)
    return {
        "tests": str(len(properties) + stale),
        "failures": str(of["failure"] + stale),
        "errors": str(of["error"]),
        "skipped": str(of["skipped"]),
    }


def seconds(value):
    return "%.6f" % value


def add_case(suite, report, p):
    case = ET.SubElement(
        suite, "testcase", classname=model.group(p), name=p["id"], time=seconds(p["seconds"])
    )
    tag, expected = outcome(report, p), is_expected(report, p)
    if tag:
        message = "waived: " + model.waiver(p) if expected else p["message"]
        result = ET.SubElement(case, tag, message=message)
        if tag != "skipped" or expected:
            result.set("type", p["verdict"])
            result.text = "%(clause)s\n%(source)s\n%(hint)s\nreproduce: %(reproduce)s\n" % p
    output = p["output"]
    if (tag is None and p["verdict"] != "PASS") or expected:  # JUnit has no word for the verdict
        output = "%s: %s\n%s" % (p["verdict"], p["message"], output)
    if output:
        ET.SubElement(case, "system-out").text = output


def add_stale(root, stale):
    """Entries of --expect for what passes now: a suite with a failure for each."""
    count = str(len(stale))
    suite = ET.SubElement(
        root, "testsuite", name="waivers", tests=count, failures=count, errors="0", skipped="0",
        time=seconds(0),
    )  # fmt: skip
    for one in stale:
        case = ET.SubElement(suite, "testcase", classname="waivers", name=one["id"], time="0")
        ET.SubElement(case, "failure", type="STALE", message=model.stale_words(one))


def render(reports):
    (report,) = reports
    subject, environment, stale = report["subject"], report["environment"], report["stale"]
    facts = {"file": subject["file"], "sha256": subject["sha256"], "seed": report["seed"]}
    facts.update((key, environment[key]) for key in ("python", "numpy", "tunables", "allocator"))
    totals = counts(report, report["properties"], len(stale))
    name = "conform " + model.argument(report)
    root = ET.Element("testsuites", {"name": name, **totals, "time": seconds(report["seconds"])})
    for name, members in itertools.groupby(report["properties"], model.group):
        members = list(members)
        time = seconds(sum(p["seconds"] for p in members))
        suite = ET.SubElement(
            root, "testsuite", {"name": name, **counts(report, members), "time": time}
        )
        properties = ET.SubElement(suite, "properties")
        for key, value in facts.items():
            if value or key not in ("tunables", "allocator"):
                ET.SubElement(properties, "property", name=key, value=value)
        for p in members:
            add_case(suite, report, p)
    if stale:
        add_stale(root, stale)
    return '<?xml version="1.0" encoding="UTF-8"?>\n%s\n' % ET.tostring(root, "unicode")
