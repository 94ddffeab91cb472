# SPDX-License-Identifier: BSD-3-Clause
"""Reads a list of waivers in TOML, and validates what needs no knowledge of the properties."""

import datetime
import importlib
import re
import sys

from . import model

LARGEST = 1 << 20  # bytes
WANTED = "id", "verdict", "reason"
KEYS = (*WANTED, "url", "until", "numpy", "python", "platform")
VERDICTS = "FAIL", "WARN", "CRASH", "TIMEOUT", "INCOMPLETE"
HEADER = re.compile(r"\s*\[\[\s*(expect|\"expect\"|'expect')\s*\]\]")


def toml():
    """Python's parser of TOML, or one of the same interface that is installed."""
    for name in ("tomllib", "tomli", "pip._vendor.tomli"):
        try:
            return importlib.import_module(name)
        except ImportError:
            pass
    words = "--expect: Python %d.%d cannot read TOML: %s -m pip install tomli"
    raise model.Invalid(words % (*sys.version_info[:2], sys.executable))


def lines_of(text, parse):
    """The line of each [[expect]]: one that has only valid TOML before it is not in a string."""
    numbers, lines = [], text.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        if HEADER.match(line):
            try:
                before = parse("".join(lines[: number - 1])).get("expect", [])
            except ValueError:
                continue
            if len(before) == len(numbers):
                numbers.append(number)
    return numbers


def check_entry(entry):
    """Raises Invalid, with the key that it is about."""
    for key in WANTED:
        if key not in entry:
            raise model.Invalid("an entry without " + key, None)
    for key, value in entry.items():
        if key not in KEYS:
            words = "%s: no such key; an entry has %s and %s"
            raise model.Invalid(words % (key, ", ".join(KEYS[:-1]), KEYS[-1]), key)
        if key == "until":
            if type(value) is not datetime.date:
                raise model.Invalid("until is no date; write it without quotes, as 2027-01-31", key)
            if value < datetime.date.today():
                raise model.Invalid("%s: expired, it was until %s" % (entry["id"], value), key)
        elif not isinstance(value, str):
            raise model.Invalid(key + " is no string", key)
        elif not value.strip():
            raise model.Invalid(key + " is empty", key)
        elif "\0" in value:
            raise model.Invalid(key + " has a NUL in it", key)
    if entry["verdict"] not in VERDICTS:
        words = "verdict is %s; what can be expected is %s and %s"
        words %= entry["verdict"], ", ".join(VERDICTS[:-1]), VERDICTS[-1]
        raise model.Invalid(words, "verdict")
    for key in ("id", "platform"):
        if re.search(r"\[(?![!^]?.[^]]*\])", entry.get(key, "")):
            raise model.Invalid('%s: a [ has no ] in "%s"' % (key, entry[key]), key)


def parse(path):
    """The text of the file, its entries, and the line of each."""
    data = model.read_file(path, LARGEST)
    reader = toml()
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
    entries = root.get("expect", [])
    numbers = lines_of(text, reader.loads)
    return text.splitlines(), entries, numbers + [1] * (len(entries) - len(numbers))


def read(path):
    """The entries, each with its line and those of its keys."""
    lines, entries, numbers = parse(path)
    seen = {}

    def line_of(key, i):
        end = numbers[i + 1] - 1 if i + 1 < len(numbers) else len(lines)
        for number in range(numbers[i], end + 1):
            if key and re.match(r"""\s*["']?%s["']?\s*=""" % re.escape(key), lines[number - 1]):
                return number
        return numbers[i]

    for i, entry in enumerate(entries):
        try:
            if not isinstance(entry, dict):
                raise model.Invalid("expect is no table; begin each entry with [[expect]]", None)
            check_entry(entry)
            same = tuple(entry.get(key) for key in ("id", "verdict", "numpy", "python", "platform"))
            if seen.setdefault(same, i) != i:
                words = "%s: the entry of line %d is about the same"
                raise model.Invalid(words % (entry["id"], numbers[seen[same]]), None)
        except model.Invalid as error:
            words, key = error.args
            raise model.Invalid("%s:%d: %s" % (path, line_of(key, i), words)) from None
        entry.update(line=numbers[i], lines={key: line_of(key, i) for key in entry})
        if "until" in entry:
            entry["until"] = str(entry["until"])
    return entries
