# SPDX-License-Identifier: BSD-3-Clause
"""Reads a list of waivers in TOML, and validates what needs no knowledge of the properties."""

import datetime
import importlib
import re
import site
import sys

from . import model

LARGEST = 1 << 20  # bytes
WANTED = "id", "verdict", "reason"
KEYS = (*WANTED, "url", "until", "numpy", "python", "platform")
VERDICTS = "FAIL", "WARN", "CRASH", "TIMEOUT", "INCOMPLETE"
HEADER = re.compile(r"\s*\[\[\s*(expect|\"expect\"|'expect')\s*\]\]")


def toml():
    """Python's parser of TOML, or one of the same interface that is installed.  conform starts this
    package without site, which makes the installed ones importable."""
    if sys.flags.no_site and sys.version_info < (3, 11):
        site.main()
    for name in ("tomllib", "tomli", "pip._vendor.tomli"):
        try:
            return importlib.import_module(name)
        except ImportError:
            pass
    words = "--expect: Python %d.%d cannot read TOML: %s -m pip install tomli"
    raise model.Invalid(words % (*sys.version_info[:2], sys.executable))


def listed(words):
    return "%s and %s" % (", ".join(words[:-1]), words[-1])


def check_value(entry, key):
    """Returns what is wrong with the value, or None."""
    value = entry[key]
    if key not in KEYS:
        return "%s: no such key; an entry has %s" % (key, listed(KEYS))
    if key == "until":
        if type(value) is not datetime.date:
            return "until is no date; write it without quotes, as 2027-01-31"
        if value < datetime.date.today():
            return "%s: expired, it was until %s" % (entry["id"], value)
        return None
    if not isinstance(value, str):
        return key + " is no string"
    if not value.strip():
        return key + " is empty"
    if "\0" in value:
        return key + " has a NUL in it"
    if key == "verdict" and value not in VERDICTS:
        return "verdict is %s; what can be expected is %s" % (value, listed(VERDICTS))
    if key in ("id", "platform") and re.search(r"\[(?![!^]?.[^]]*\])", value):
        return '%s: a [ has no ] in "%s"' % (key, value)
    return None


def check_entry(entry):
    """Returns what is wrong with an entry and the key that this is about, or None."""
    if not isinstance(entry, dict):
        return "expect is no table; begin each entry with [[expect]]", None
    missing = [key for key in WANTED if key not in entry]
    if missing:
        return "an entry without " + missing[0], None
    found = ((check_value(entry, key), key) for key in entry)
    return next((pair for pair in found if pair[0]), None)


def parse(path):
    """Returns the lines of the file, and its entries."""
    data, reader = model.read_file(path, LARGEST), toml()
    try:
        text = data.decode()
        root = reader.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is a ValueError
        place = re.search(r"at line (\d+), column (\d+)", str(error))
        where = place.groups() if place else (data.count(b"\n") + 1, 1)
        words = re.sub(r" \(at .*\)$", "", str(error))
        raise model.Invalid("%s:%s:%s: %s" % (path, *where, words)) from None
    for key, value in root.items():
        if key != "expect" or not isinstance(value, list):
            what = "%s: no such key" % key if key != "expect" else "expect is no array of tables"
            raise model.Invalid("%s:1:1: %s; begin each entry with [[expect]]" % (path, what))
    return text.splitlines(), root.get("expect", [])


def line_of(key, lines, begin):
    """Returns the line of a key in the entry that begins at a line, or else that line."""
    for number, line in enumerate(lines[begin:], begin + 1):
        if HEADER.match(line):
            break
        if key and re.match(r"""\s*["']?%s["']?\s*=""" % re.escape(key), line):
            return number
    return begin


def read(path):
    """The entries, each with its line and those of its keys."""
    lines, entries = parse(path)
    begins = [number for number, line in enumerate(lines, 1) if HEADER.match(line)]
    begins += [1] * len(entries)  # of an array in one line
    seen = {}
    for entry, begin in zip(entries, begins):
        wrong = check_entry(entry)
        if not wrong:
            same = tuple(entry.get(key) for key in ("id", "verdict", "numpy", "python", "platform"))
            if seen.setdefault(same, begin) != begin:
                words = "%s: the entry of line %d is about the same"
                wrong = words % (entry["id"], seen[same]), None
        if wrong:
            words, key = wrong
            raise model.Invalid("%s:%d: %s" % (path, line_of(key, lines, begin), words))
        entry.update(line=begin, lines={key: line_of(key, lines, begin) for key in entry})
        if "until" in entry:
            entry["until"] = str(entry["until"])
    return entries
