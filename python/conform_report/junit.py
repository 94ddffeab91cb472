# SPDX-License-Identifier: BSD-3-Clause
"""JUnit's XML: a suite for each group, a case for each property."""

import collections
import itertools
import os
import xml.etree.ElementTree as ET

from . import model


def is_expected(report, p):
    return model.is_waived(p) and model.would_decide(report, p)


def outcome(report, p):
    """The element that a case gets, or None if it passes."""
    if not model.ran(report, p) or is_expected(report, p):
        return "skipped"
    counts = p["verdict"] in ("SKIP", "BROK") or model.decides(report, p)
    return model.VERDICTS[p["verdict"]].junit if counts else None


def element(parent, tag, cases, seconds, **attributes):
    """Adds a suite, or all of them, with the number of cases of each outcome."""
    of = collections.Counter(cases)
    counts = {"tests": len(cases), "failures": of["failure"], "errors": of["error"],
              "skipped": of["skipped"], "time": "%.6f" % seconds}
    made = ET.Element(tag, {**attributes, **{key: str(value) for key, value in counts.items()}})
    if parent is not None:
        parent.append(made)
    return made


def add_case(suite, report, p):
    time = "%.6f" % p["seconds"]
    case = ET.SubElement(suite, "testcase", classname=model.group(p), name=p["id"], time=time)
    tag, expected, output = outcome(report, p), is_expected(report, p), p["output"]
    if tag:
        message = "waived: " + model.waiver(p) if expected else p["message"]
        result = ET.SubElement(case, tag, message=message)
        if tag != "skipped" or expected:
            result.set("type", p["verdict"])
            result.text = "%(clause)s\n%(source)s\n%(hint)s\nreproduce: %(reproduce)s\n" % p
    if (tag is None and p["verdict"] != "PASS") or expected:  # JUnit has no word for the verdict
        output = "%s: %s\n%s" % (p["verdict"], p["message"], output)
    if output:
        ET.SubElement(case, "system-out").text = output


def render(reports):
    (report,) = reports
    subject, environment, stale = report["subject"], report["environment"], report["stale"]
    facts = {"file": subject["file"], "sha256": subject["sha256"], "seed": report["seed"]}
    facts.update((key, environment[key]) for key in ("python", "numpy"))
    facts.update((key, environment[key]) for key in ("tunables", "allocator") if environment[key])
    argument = subject["argument"]
    if subject["symbol"]:
        argument = argument[: -len(":" + subject["symbol"])]
    cases = [outcome(report, p) for p in report["properties"]] + ["failure"] * len(stale)
    name = "conform " + os.path.basename(argument)
    root = element(None, "testsuites", cases, report["seconds"], name=name)
    for name, members in itertools.groupby(report["properties"], model.group):
        members = list(members)
        seconds = sum(p["seconds"] for p in members)
        cases = [outcome(report, p) for p in members]
        suite = element(root, "testsuite", cases, seconds, name=name)
        properties = ET.SubElement(suite, "properties")
        for key, value in facts.items():
            ET.SubElement(properties, "property", name=key, value=value)
        for p in members:
            add_case(suite, report, p)
    if stale:  # entries of --expect for what passes now
        suite = element(root, "testsuite", ["failure"] * len(stale), 0, name="waivers")
    for one in stale:
        case = ET.SubElement(suite, "testcase", classname="waivers", name=one["id"], time="0")
        ET.SubElement(case, "failure", type="STALE", message=model.stale_words(one))
    return '<?xml version="1.0" encoding="UTF-8"?>\n%s\n' % ET.tostring(root, "unicode")
