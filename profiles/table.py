# SPDX-License-Identifier: BSD-3-Clause
"""docs/callers.md, from the caller profiles: what each NumPy asks of a handler, route by route.

    profiles/table.py CONFORM              print the page
    profiles/table.py CONFORM --write      put it in its place
    profiles/table.py CONFORM TRACE        print one profile, without numbers of calls and blocks

The last is for git: `git config diff.trace.textconv "python3 profiles/table.py ./conform"` makes
`git diff` show what changed in a trace.
"""

import collections
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, os.pardir, "docs", "callers.md")
NO_MEMORY = "no memory"
FITS = 150  # characters of a cell before calls are only counted

HEAD = """\
# What each NumPy asks of a handler

<!-- Made by `profiles/table.py` from the traces in profiles/; not edited by hand. -->

Each route by which NumPy comes to its handler was recorded on several versions of it, with the
PyPI wheels for x86-64 Linux.  The recordings are the caller profiles `profile.numpy-*` of the
battery, which replays them all, whatever NumPy is there: `profiles/routes.py` is what was run,
`make profiles` runs it again, and `conform replay profiles/numpy-1.22.trace --print` shows one
whole.

A call is shown with its sizes: *realloc 72 to 40*, *free 80*.  In bold is what a handler could
stumble over: **free 8 as 1** is a block of 8 bytes that free is told has 1, **free(NULL, 40)** has
no block and a size, **malloc 0** asks for nothing.  Where a route makes many calls, they are
counted.  Every route ends when all that it made is gone.
"""

CALL = re.compile(
    r"^ *\d+ +\d+ +\d+  (?P<function>\w+)\((?:(?P<pointer>block \d+ of \d+|NULL|foreign)"
    r"(?:, (?P<to>\d+))?|(?P<size>\d+)(?:, (?P<elsize>\d+))?)\)(?: = (?P<result>[^,]+))?"
    r"(?P<gil>, without the GIL)?$"
)


def version_key(version):
    return tuple(int(part) for part in version.split("."))


class Profile:
    """The calls of each part of a trace, in the words of the page."""

    def __init__(self, conform, path):
        shown = subprocess.run(
            [conform, "replay", path, "--print"], stdout=subprocess.PIPE, check=True,
            universal_newlines=True,
        ).stdout
        self.notes = {}
        self.parts = collections.OrderedDict(start=[])
        part = self.parts["start"]
        for line in shown.splitlines():
            note = re.match(r"# (\w+): (.*)$", line)
            if note and note.group(1) == "part":
                part = self.parts.setdefault(note.group(2), [])
            elif note:
                self.notes[note.group(1)] = note.group(2)
            elif not line.startswith("#"):
                part.append(words_of(CALL.match(line)))
        self.version = ".".join(self.notes["numpy"].split(".")[:2])


def words_of(call):
    """A call as the page shows it."""
    function, pointer, to = call.group("function", "pointer", "to")
    block = int(pointer.split()[-1]) if pointer and pointer.startswith("block") else None
    if function == "malloc":
        words = "malloc " + call.group("size")
    elif function == "calloc":
        words = "calloc(%s, %s)" % call.group("size", "elsize")
    elif function == "realloc":
        words = "realloc %s to %s" % (pointer if block is None else block, to)
    elif block is None:
        words = "**free(%s, %s)**" % (pointer, to)
    else:
        words = "free %d" % block if block == int(to) else "**free %d as %s**" % (block, to)
    if words in ("malloc 0", "calloc(0, 1)"):
        words = "**%s**" % words
    if call.group("result") == "NULL":
        words += " refused"
    if call.group("gil") and function == "realloc":
        words += " without the GIL"
    return words


def repeats(calls):
    """The calls, with what repeats itself said once: pairs of a group of them and how often."""
    at = 0
    while at < len(calls):
        best = (1, 1)
        for length in range(1, 7):
            group, times = calls[at:at + length], 1
            while calls[at + times * length:at + (times + 1) * length] == group:
                times += 1
            if times > 1 and times * length > best[0] * best[1]:
                best = (length, times)
        length, times = best
        yield calls[at:at + length], times
        at += length * times


def counted(calls):
    """How many of each function, and what is in bold one by one."""
    plain = collections.Counter(re.match(r"\w+", c).group() for c in calls if c[0] != "*")
    bold = collections.Counter(c for c in calls if c[0] == "*")
    said = ["%d %s" % (plain[name], name) for name in ("malloc", "calloc", "realloc", "free")
            if plain[name]]
    many = ["%s, %d times" % (c, n) if n > 1 else c for c, n in bold.items()]
    return ", ".join(said) + ("; " if many else "") + "; ".join(many)


def cell(calls):
    if not calls:
        return "none"
    said = []
    for group, times in repeats(calls):
        words = ", ".join(group)
        said.append(words if times == 1
                    else "%d times %s" % (times, words if len(group) == 1 else "(%s)" % words))
    text = ", ".join(said)
    return text if len(text) <= FITS else counted(calls)


def spans(versions, every):
    """Versions in words: those that follow one another as the first and the last."""
    runs = []
    for version in versions:
        if runs and every.index(version) == every.index(runs[-1][-1]) + 1:
            runs[-1].append(version)
        else:
            runs.append([version])
    return ", ".join(r[0] if len(r) == 1 else "%s to %s" % (r[0], r[-1]) for r in runs)


def merged(profiles):
    """The names of all parts, in an order that none of the profiles contradicts."""
    names = []
    for profile in profiles:
        at = 0
        for name in profile.parts:
            if name in names:
                at = names.index(name) + 1
            else:
                names.insert(at, name)
                at += 1
    return names


def code(text):
    """Markdown of a route: a bar would end the cell."""
    return "`%s`" % text.replace("\\x0a", "; ").replace("|", "\\|")


def rows(name, route, profiles):
    """The lines of a route: one for all versions that do the same."""
    every = [profile.version for profile in profiles]
    by_text = collections.OrderedDict()
    for profile in profiles:
        text = cell(profile.parts[name]) if name in profile.parts else "(not run)"
        by_text.setdefault(text, []).append(profile.version)
    first = route
    for text, versions in by_text.items():
        yield "| %s | %s | %s |" % (first, "all" if versions == every else spans(versions, every),
                                    text)
        first = ""


def summary(profiles):
    """A line for each version: what is peculiar to it."""
    yield "| NumPy | Python | calls | free(NULL, n) | wrong sizes | of 0 bytes |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for profile in profiles:
        calls = [c for name, part in profile.parts.items() if not name.startswith(NO_MEMORY)
                 for c in part]
        nulls = sum(c.startswith("**free(NULL") for c in calls)
        wrong = {c[len("**free "):].split("**")[0] for c in calls if " as " in c}
        wrong = sorted(wrong, key=lambda w: [int(n) for n in w.split(" as ")])
        nothing = sum("malloc 0" in c or "calloc(0" in c for c in calls)
        yield "| %s | %s | %d | %s | %s | %s |" % (
            profile.notes["numpy"], profile.notes["python"],
            sum(len(part) for part in profile.parts.values()), nulls or "none",
            ", ".join(wrong) or "none", nothing or "none")


def page(conform):
    paths = glob.glob(os.path.join(glob.escape(HERE), "numpy-*.trace"))
    profiles = sorted((Profile(conform, path) for path in paths),
                      key=lambda profile: version_key(profile.version))
    lines = [HEAD]
    lines += summary(profiles)
    lines.append("\nThe calls of import and of the interpreter's end are among these; routes that"
                 "\nrun out of memory, the last section, only in the number of calls.")
    group = None
    for name in merged(profiles):
        if ": " not in name:
            continue
        of, _, route = name.partition(": ")
        if of != group:
            group = of
            lines += ["", "## " + group[0].upper() + group[1:], "", "| route | NumPy | calls |",
                      "| --- | --- | --- |"]
        lines += rows(name, code(route), profiles)
    lines += ["", "## Before and after", "", "| | NumPy | calls |", "| --- | --- | --- |"]
    lines += rows("start", "importing NumPy", profiles)
    lines += rows("the interpreter's end", "the interpreter's end", profiles)
    return "\n".join(lines) + "\n"


def show(conform, path):
    profile = Profile(conform, path)
    for name, value in profile.notes.items():
        print("%s: %s" % (name, value))
    for name, calls in profile.parts.items():
        print("\n%s" % name)
        for call in calls:
            print("    " + call.replace("**", ""))


def main():
    conform, words = os.path.abspath(sys.argv[1]), sys.argv[2:]
    if words == ["--write"]:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(page(conform))
    elif words:
        show(conform, words[0])
    else:
        sys.stdout.write(page(conform))


if __name__ == "__main__":
    main()
