# SPDX-License-Identifier: BSD-3-Clause
"""--shard I/N and --merge: parts that are disjoint, complete and stay what they are, and of which
one report comes that says what one run would have said; or one line why not.
"""

import json
import os
import random
import re
import xml.etree.ElementTree

import suite
from suite import CONFORMANT, NOT_CONFORMANT, USAGE

# Of these many fail, and most of them because of calloc.zeroed.
FAULTY = os.path.join(suite.FAULTY, "faulty.so:calloc_does_not_zero")
CHOSEN = ["--run=calloc.*", "--run=numpy.[dv]*", "--run=numpy.route-*",
          "--run=runtime.free-size", "--skip=calloc.n*"]
PARTS = 3
COSTS = os.path.join(suite.SOURCE, "src", "model", "cost.c")
WAIVERS = """[[expect]]
id = "calloc.zeroed"
verdict = "FAIL"
reason = "kn\u00f6wn"
until = 2999-01-01
numpy = ">=1"
platform = "linux-*"
[[expect]]
id = "calloc.overflow"
verdict = "FAIL"
reason = "passes"
[[expect]]
id = "malloc.*"
verdict = "FAIL"
reason = "elsewhere"
platform = "win*"
"""


# ---- who is where --------------------------------------------------------------------------------

def mix(z):
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & 0xffffffffffffffff
    z = (z ^ z >> 27) * 0x94d049bb133111eb & 0xffffffffffffffff
    return z ^ z >> 31


def by_hash(id, count):
    """The rendezvous hashing that docs/reports.md has."""
    def value(shard):
        state = mix(shard + 0x9e3779b97f4a7c15 & 0xffffffffffffffff)
        for byte in id.encode():
            state = mix(state ^ byte)
        return state
    return max(range(1, count + 1), key=value)


def by_cost(costs, count):
    """Each of the table to the one that has least."""
    loads, shards = [0] * count, {}
    for id, cost in costs:
        shard = loads.index(min(loads))
        loads[shard] += cost
        shards[id] = shard + 1
    return shards


def listed(*arguments):
    return [line.split()[0] for line in suite.conform("--list", *arguments).stdout.splitlines()]


def who_is_where(tap):
    everything = listed("--numpy")
    with open(COSTS) as file:
        rows = re.findall(r'^    \{"([\w.-]+)", (\d+)\},$', file.read(), re.M)
    costs = [(id, int(cost)) for id, cost in rows]
    tap.point(len(costs) > 10 and set(id for id, cost in costs) <= set(everything)
              and len(dict(costs)) == len(costs), "each that is known to cost much is there", costs)
    for count in (1, 2, 3, 7):
        known = by_cost(costs, count)
        wanted = {id: known.get(id) or by_hash(id, count) for id in everything}
        parts = [listed("--shard=%d/%d" % (i + 1, count)) for i in range(count)]
        seen = {id: i + 1 for i, part in enumerate(parts) for id in part}
        tap.point(sum(map(len, parts)) == len(everything) and seen == wanted,
                  "%d parts: each property is in the one that its id says" % count, parts)
        loads = [sum(dict(costs).get(id, 15) for id in part) for part in parts]
        tap.point(max(loads) < 1.25 * sum(loads) / count, "%d parts: as much to do" % count, loads)
    part = listed("--shard=2/3")
    tap.point(listed("--shard=2/3", "--run=m*.*") == [id for id in part if id.startswith("m")],
              "what --run leaves is where it was")


# ---- merging -------------------------------------------------------------------------------------

def without_chance(words):
    """No addresses, no numbers that are measured."""
    return re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?", "#", str(words))


MEMBERS = ("level", "verdict", "message", "hint", "caused_by", "waived", "expected_verdict")


def of_report(name):
    with open(name) as file:
        report = json.load(file)
    told = {name: report.get(name) for name in (
        "conclusion", "start_with", "exit_code", "conformant", "whole", "verdicts", "subject",
        "environment", "seed", "rounds", "expected", "waivers", "stale", "conform")}
    told["properties"] = [(p["id"], *(without_chance(p.get(name)) for name in MEMBERS))
                          for p in report["properties"]]
    return told


def differences(one, other):
    rows = [pair for pair in zip(one["properties"], other["properties"]) if pair[0] != pair[1]]
    return rows + [(name, one[name], other[name]) for name in one
                   if name != "properties" and one[name] != other[name]]


def run_parts(*arguments):
    return [suite.conform("--shard=%d/%d" % (i, PARTS), "--json=%d.json" % i, *arguments)
            for i in range(1, PARTS + 1)]


NAMES = ["%d.json" % i for i in range(1, PARTS + 1)]


def as_one_run(tap):
    for name, handler, more, code in (
            ("a wrong handler", FAULTY, [], NOT_CONFORMANT),
            ("a wrong handler with waivers", FAULTY, ["--expect=w.toml", "--strict"],
             NOT_CONFORMANT),
            ("a right one", "aligned", ["--seed=7", "--claim=alignment=16"], CONFORMANT)):
        chosen = CHOSEN if handler == FAULTY else ["--run=calloc.[opz]*", "--run=free.n*"]
        arguments = ["-H", handler, *chosen, *more]
        whole = suite.conform(*arguments, "--json=whole.json")
        parts = run_parts(*arguments)
        merged = suite.conform("--merge", "--json=merged.json", *NAMES[1:], NAMES[0])
        reports = of_report("whole.json"), of_report("merged.json")
        tap.point(whole.code == merged.code == code and not differences(*reports)
                  and not merged.stderr, name + ": the merged report is that of one run",
                  "%s\n%s" % (differences(*reports), merged))
        same = [re.sub(r"[^ ]* s$", "", without_chance(report.stdout), flags=re.M)
                for report in (whole, merged)]
        tap.point(same[0] == same[1], name + ": the text too", "\n".join(same))
        conclusions = [json.load(open(part))["conclusion"] for part in NAMES]
        tap.point(all("shard %d/3" % (i + 1) in conclusion
                      for i, conclusion in enumerate(conclusions)) and len(parts) == PARTS,
                  name + ": a part says that it is one", conclusions)
        if handler == FAULTY and not more:
            causes = [row[5] for row in reports[1]["properties"]]
            owners = [i for i, part in enumerate(NAMES) for p in json.load(open(part))["properties"]
                      if p["id"] == "calloc.zeroed"]
            tap.point(causes.count("calloc.zeroed") > 3 and len(owners) == 1,
                      "one part has the property that answers for those of others", causes)


def formats(tap):
    files = ["--%s=m.%s" % (name, name) for name in "tap junit html badge json".split()]
    result = suite.conform(*files, "--quiet", "--merge", *NAMES)
    count = len(json.load(open("m.json"))["properties"])
    cases = xml.etree.ElementTree.parse("m.junit").getroot().findall(".//testcase")
    with open("m.tap") as file:
        points = re.findall(r"(?m)^(?:not )?ok ", file.read())
    tap.point(result.code == CONFORMANT and len(points) == len(cases) == count
              and os.path.getsize("m.html") > 5000 and os.path.getsize("m.badge") > 100
              and "shard" not in json.load(open("m.json")), "every format", result)
    result = suite.conform("--merge", "--json=-", *NAMES)
    tap.point(json.loads(result.stdout)["expected"] == count, "JSON to stdout", result)
    result = suite.conform("--merge", "--baseline=whole.json", "--fail-on=new", *NAMES)
    tap.point(result.code == CONFORMANT and "0 new, 0 fixed, 0 changed, 0 gone" in result.stdout,
              "--baseline", result)
    empty = next(shard for shard in ("--shard=1/3", "--shard=2/3")
                 if not listed("--run=free.null", shard))
    result = suite.conform("-H", "aligned", empty, "--run=free.null")
    tap.point(result.code == CONFORMANT and "0 properties" in result.stdout,
              "a part with nothing to run", result)


# ---- what is refused -----------------------------------------------------------------------------

def edit(change, name="2.json"):
    with open(name) as file:
        report = json.load(file)
    change(report)
    with open("edited.json", "w") as file:
        json.dump(report, file)
    return ["edited.json" if part == name else part for part in NAMES]


def setting(*path):
    """A change of one member: the last word is its value."""
    def change(report):
        for member in path[:-2]:
            report = report[member]
        report[path[-2]] = path[-1]
    return change


def twice(report):
    report["shard"]["records"].append(report["shard"]["records"][-1])


def shorter(report):
    del report["shard"]["records"][-1]


def stranger(report):
    report["shard"]["records"].append({"id": "no.such", "verdict": "PASS"})


def better(report):
    """What it says itself is not what it hands on."""
    report["shard"]["records"][1]["verdict"] = "FAIL"


# what is changed in the second, what is said
EDITED = [
    (setting("subject", "sha256", "0" * 64), "SHA-256 is 000"),
    (setting("subject", "symbol", "other"), "the symbol is other, there none"),
    (setting("subject", "claimed_for_it", []), "--claim is not what it is there"),
    (setting("environment", "python", "3.9.1"), "Python is 3.9.1, there "),
    (setting("environment", "numpy", "1.22.0"), "NumPy is 1.22.0, there "),
    (setting("environment", "libc", "glibc 2.1"), "libc is glibc 2.1, there "),
    (setting("environment", "checker", "memcheck"), "beside it is memcheck, there "),
    (setting("seed", "8"), "seed is 8, there 7"),
    (setting("daily_seed", "8"), "seed of the day is 8, there 7"),
    (setting("shard", "of", 4), "parts is 4, there 3"),
    (setting("shard", "filters", []), "--run and --skip is not"),
    (setting("shard", "expect", {"file": "w", "entries": []}), "--expect is not"),
    (setting("shard", "strict", True), "--strict is not"),
    (setting("shard", "number", 3), "3.json: is shard 3/3, and so is edited.json"),
    (setting("shard", "number", 9), "is no report of a shard"),
    (setting("shard", "of", 10 ** 9), "is no report of a shard"),
    (setting("shard", None), "is no report of a shard"),
    (setting("conform", "0.0.1"), "is of conform 0.0.1, and this is "),
    (setting("interrupted", True), "was interrupted; run shard 2/3 again"),
    (setting("format", "x"), "is no report that --json of this program writes"),
    (setting("subject", "argument", "./other"), ""),
    (setting("shard", "place", {}), "its shard is none that --shard writes: "),
    (setting("shard", "place", "module", 7), "its shard is none that --shard writes: "),
    (setting("shard", "load", []), "its shard is none that --shard writes: "),
    (setting("shard", "load", "state", "1"), "its shard is none that --shard writes: "),
    (setting("shard", "load", "state", -1), "its shard is none that --shard writes: "),
    (setting("shard", "load", "how", None), "its shard is none that --shard writes: "),
    (setting("shard", "gil", "yes"), "its shard is none that --shard writes: "),
    (setting("shard", "under", 3), "its shard is none that --shard writes: "),
    (setting("shard", "strict", 0), "its shard is none that --shard writes: "),
    (setting("shard", "records", 0, "verdict", "GOOD"), "has no sound verdict of abi.loads"),
    (setting("shard", "records", 0, "suspect0", [9, 0, 0, 0, 0]), "has no sound verdict of"),
    (setting("shard", "records", 0, "overwritten", 7), "has no sound verdict of"),
    (setting("shard", "records", 0, "overwritten", "1"), "has no sound verdict of"),
    (setting("shard", "records", 0, "expected", 7), "has no sound verdict of"),
    (setting("shard", "records", 0, "seconds", None), "has no sound verdict of"),
    (better, "what is not in its own records: it was changed"),
    (twice, "has more than one verdict of"),
    (shorter, "has nothing of"),
    (stranger, "properties, and shard 2/3 runs"),
]


def is_told(result, words):
    return (result.code == USAGE and not result.stdout and result.stderr.count("\n") == 1
            and result.stderr.startswith("conform: ") and words in result.stderr)


def refused(tap):
    os.mkfifo("fifo")
    for change, words in EDITED:
        result = suite.conform("--merge", *edit(change))
        if words:
            tap.point(is_told(result, words), words, result)
        else:  # the first one says it
            tap.point(result.code == CONFORMANT, "what only one has to say", result)
    for names, words in ((NAMES[:1], "of 3 shards there are 2 missing: 2, 3"),
                         (NAMES[1:], "of 3 shards there is one missing: 1"),
                         (NAMES + NAMES[:1], "1.json: is shard 1/3, and so is 1.json"),
                         (["whole.json"], "is no report of a shard"),
                         ([], "--merge takes the reports"),
                         (["fifo"], "fifo: is no regular file"),
                         (["none.json"], "none.json: No such file")):
        result = suite.conform("--merge", "--json=not.json", *names)
        tap.point(is_told(result, words) and not os.path.exists("not.json"), words, result)
    for words in (["--repeat=2"], ["--until-fail"], ["-H", "kept"], ["--baseline=whole.json"],
                  ["--python=x", "--python=y"]):
        result = suite.conform("-H", "aligned", "--shard=1/2", *words)
        tap.point(is_told(result, "shard"), "--shard with " + words[0], result)


def any_json(tap):
    """A part in which anything may stand: merged or refused, and never a crash."""
    numbers, wrong = random.Random(49), []
    values = [None, True, -1, 10 ** 18, 1e300, "", "\u0100\u20ac\U0001f600", [], {}, [[]], "FAIL"]

    def anywhere(value):
        while isinstance(value, (dict, list)) and value:
            key = numbers.choice(list(value) if isinstance(value, dict) else range(len(value)))
            if not isinstance(value[key], (dict, list)) or numbers.random() < 0.2:
                value[key] = numbers.choice(values)
                return
            value = value[key]

    for _ in range(600 if suite.LONG else 60):
        names = edit(lambda report: anywhere(report["shard"] if numbers.random() < 0.7 else report),
                     numbers.choice(NAMES))
        result = suite.conform("--merge", "--json=any.json", "--junit=any.xml", *names)
        if not is_told(result, "") and not (result.code in range(0, 6) and "conform" in
                                            result.stdout) and result.code != 77:
            wrong.append(str(result))
    tap.point(not wrong, "parts in which anything stands", wrong[:3])


def main():
    tap = suite.Tap()
    who_is_where(tap)
    with suite.scratch() as folder:
        os.chdir(folder)
        with open("w.toml", "w", encoding="utf-8") as file:
            file.write(WAIVERS)
        if "was built without toml++" in suite.conform("-H", "aligned", "--expect=w.toml",
                                                       "--run=abi.loads").stderr:
            open("w.toml", "w").close()
        as_one_run(tap)
        formats(tap)
        refused(tap)
        any_json(tap)
        os.chdir("..")
    tap.end()


if __name__ == "__main__":
    main()
