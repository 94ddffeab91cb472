# SPDX-License-Identifier: BSD-3-Clause
"""A program of extract.py's without the statements that it shows the failure without.

Its arguments are the program's file, for how many seconds it may try, and handlers that must show
nothing; what is left goes to stdout.  Each attempt is a process that is forked when NumPy is there:
a few milliseconds.
"""

import ast
import contextlib
import gc
import os
import re
import select
import signal
import sys
import time

import numpy  # noqa: F401, which the programs find there

# How the handler is found and what is told of it, which every program has.
KEPT = {"ADDRESS", "Allocator", "ENTRY", "OBJECT", "PLACES", "Report", "SEED", "SIZE", "Struct",
        "Subject", "TYPES", "judge", "load_module", "load_object", "main", "work"}
SHIM = "_conform"  # stands between that and what the property does


class Statement:
    """One that may go, with the lines that it has to itself, and those below it."""

    def __init__(self, node, lines):
        self.node, self.end = node, node.end_lineno
        self.begin = min([node.lineno, *(each.lineno for each in decorators(node))]) - 1
        while self.begin > 0 and lines[self.begin - 1].lstrip().startswith("#"):
            self.begin -= 1
        self.bodies = [body for body in bodies_of(node, lines) if body]


def decorators(node):
    return getattr(node, "decorator_list", [])


def bodies_of(node, lines):
    for field in "body", "orelse", "finalbody", "handlers":
        below = getattr(node, field, [])
        if field == "handlers":
            for each in below:
                yield from bodies_of(each, lines)
        elif isinstance(below, list):
            yield [Statement(each, lines) for each in below
                   if each.lineno > node.lineno and not is_words(each)]


def is_words(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def names_of(node):
    targets = getattr(node, "targets", [])
    names = [each.elts if isinstance(each, ast.Tuple) else [each] for each in targets]
    return {getattr(node, "name", "")} | {each.id for group in names for each in group
                                          if isinstance(each, ast.Name)}


def may_go(node):
    is_run = isinstance(node, ast.If) and "__main__" in ast.dump(node.test)
    is_import = isinstance(node, (ast.Import, ast.ImportFrom))
    return not (is_run or is_import or is_words(node) or names_of(node) & KEPT)


class Names:
    """What is given a name in each line, and what is called by it."""

    def __init__(self, tree):
        self.given, self.used = {}, {}  # sets of lines by name
        for node in ast.walk(tree):
            is_stored = isinstance(getattr(node, "ctx", ast.Load()), ast.Store)
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                self.given.setdefault(node.name, set()).update(
                    range(node.lineno - 1, node.end_lineno))
            elif isinstance(node, ast.arg):
                self.given.setdefault(node.arg, set()).add(node.lineno - 1)
            elif isinstance(node, (ast.Name, ast.Attribute)):
                name = node.id if isinstance(node, ast.Name) else node.attr
                (self.given if is_stored else self.used).setdefault(name, set()).add(
                    node.lineno - 1)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                self.used.setdefault(node.value, set()).add(node.lineno - 1)

    def are_there(self, gone, now):
        """Whether no name loses its last meaning by what goes now and is used nevertheless."""
        return all(not lines & now or lines - gone or not self.used.get(name, set()) - gone
                   for name, lines in self.given.items())


class Program:
    def __init__(self, path, seconds, sound):
        with open(path, encoding="utf-8") as file:
            self.lines = file.read().splitlines()
        self.tree = ast.parse("\n".join(self.lines))
        self.parts = [Statement(node, self.lines) for node in self.tree.body]
        self.names = Names(self.tree)
        self.compiled = {}  # each part by its text, as most are the same in all attempts
        self.path, self.until = path, time.monotonic() + seconds
        self.gone = set()  # numbers of lines, from 0
        begun = time.monotonic()
        self.limit = seconds
        self.wanted = [(words, self.said(*words)) for words in ((), ("-",), *zip(sound))]
        self.limit = 1 + time.monotonic() - begun

    def text(self, gone, begin=0, end=None):
        """Without these lines; "pass" stands where nothing is left of a body."""
        kept = [line for number, line in enumerate(self.lines[begin:end], begin)
                if number not in gone]
        words = "\n".join(with_passes(kept)).rstrip() + "\n"
        return re.sub(r"\n{3,}( +)", r"\n\n\1", re.sub(r"\n{4,}", "\n\n\n", words))

    def codes(self, gone):
        for part in self.parts:
            words = self.text(gone, part.begin, part.end)
            if words not in self.compiled:
                self.compiled[words] = compile(words, self.path, "exec", dont_inherit=True)
            yield self.compiled[words]

    def said(self, *arguments, gone=frozenset()):
        """All that it prints, without numbers."""
        codes = list(self.codes(gone))
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read_end)
            self.become(codes, arguments, write_end)
        os.close(write_end)
        words, end = b"", time.monotonic() + self.limit
        while select.select([read_end], [], [], max(0, end - time.monotonic()))[0]:
            more = os.read(read_end, 65536)
            words += more
            if not more:
                break
        os.close(read_end)
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it is all over, mostly
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return re.sub(r"0x[0-9a-f]+|\d+", "#", words.decode("utf-8", "replace"))

    def become(self, codes, arguments, write_end):
        os.setpgid(0, 0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor, end in (0, nothing), (1, write_end), (2, write_end):
            os.dup2(end, descriptor)
        sys.argv = [self.path, *arguments]
        names, own = {"__name__": "__main__"}, os.getpid()
        try:
            for code in codes:
                exec(code, names)
        except SystemExit:
            if os.getpid() != own:  # the child of its own ends as it does by itself
                raise
        sys.stdout.flush()
        os._exit(0)

    def shows(self, gone):
        """The same as the whole, and nothing with handlers that are sound."""
        try:
            return (time.monotonic() < self.until
                    and all(self.said(*arguments, gone=gone) == said
                            for arguments, said in self.wanted))
        except SyntaxError:
            return False

    def unused(self):
        """Functions and classes that nothing names any more."""
        below = [each for part in self.parts if may_go(part.node) for body in part.bodies
                 for each in body]
        return [each for each in self.parts + below if getattr(each.node, "name", None)
                and not self.names.used.get(each.node.name, set()) - self.gone]

    def take_out(self, statements):
        """As many of them as can go, halves of them first, and then of what is in the rest."""
        statements = [each for each in statements
                      if may_go(each.node) and each.end - 1 not in self.gone]
        if not statements or time.monotonic() > self.until:
            return
        gone = {n for each in statements for n in range(each.begin, each.end)}
        if self.names.are_there(self.gone | gone, gone) and self.shows(self.gone | gone):
            self.gone |= gone
        elif len(statements) > 1:
            half = len(statements) // 2
            self.take_out(statements[half:])  # what is last is used by nobody
            self.take_out(statements[:half])
        else:
            for body in statements[0].bodies:
                self.take_out(body)


def indent(line):
    return len(line) - len(line.lstrip())


def with_passes(lines):
    """A "pass" behind each line that begins a body which is not there."""
    filled = [number for number, line in enumerate(lines) if line.strip()]
    after = dict(zip(filled, filled[1:]))
    for number, line in enumerate(lines):
        yield line
        begins = re.match(r" *(def|class|if|elif|else|for|while|with|try|except|finally)\b.*:"
                          r"(  #.*)?$", line)
        following = lines[after[number]] if number in after else ""
        if begins and indent(following) <= indent(line):
            yield " " * (indent(line) + 4) + "pass"


def main():
    path, seconds, *sound = sys.argv[1:]
    gc.freeze()  # no page of what is there need be copied
    program = Program(path, float(seconds), sound)
    shim = [each for each in program.parts if getattr(each.node, "name", "") == SHIM]
    own = program.parts.index(shim[0]) + 1 if shim else 0
    before = None
    while before != program.gone:
        before = set(program.gone)
        program.take_out(program.parts[own:])  # what the property does is where most can go
        program.take_out(program.unused())
        program.take_out(program.parts[:own])
        program.take_out(program.unused())
    sys.stdout.write(program.text(program.gone))


main()
