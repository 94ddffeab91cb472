# SPDX-License-Identifier: BSD-3-Clause
"""What of our own .py files a property is, as one program that needs none of them.

Its arguments say which handler; on stdin is JSON: "sources" by name, "calls" as pairs of a source
and a function of it, and what is said at the beginning.  The program goes to stdout.
"""

import ast
import json
import os
import re
import sys
import textwrap

SHIM, SHIM_CLASS = "judge", "_conform"


class Part:
    """A statement of a file's outermost level, or a function of the class SHIM_CLASS."""

    def __init__(self, source, node, prefix=""):
        self.source, self.node = source, node
        self.names = {prefix + name for name in defined_by(node)}
        self.uses = set(used_by(node)) - self.names
        self.strings = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)
                        and isinstance(each.value, str)}
        self.registers = {argument.value for call in getattr(node, "decorator_list", [])
                          if isinstance(call, ast.Call) for argument in call.args
                          if isinstance(argument, ast.Constant)}

    def text(self):
        """As it is in its file, with the comment above it."""
        lines, begin = self.source.lines, self.node.lineno - 1
        for decorator in getattr(self.node, "decorator_list", []):
            begin = min(begin, decorator.lineno - 1)
        while begin > 0 and lines[begin - 1].lstrip().startswith("#"):
            begin -= 1
        return "\n".join(lines[begin:self.node.end_lineno])


class Source:
    """A file, by what is on its outermost level."""

    def __init__(self, name, text):
        self.name, self.lines = name, text.splitlines()
        self.imports, self.parts = {}, []  # by what it is called here: how, and of whom
        for node in ast.parse(text).body:
            self.take(node)

    def take(self, node):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self.imports.update(imports_of(node))
        elif isinstance(node, ast.ClassDef) and node.name == SHIM_CLASS:
            self.parts += [Part(self, each, SHIM_CLASS + ".") for each in node.body
                           if defined_by(each)]
        elif defined_by(node):
            self.parts.append(Part(self, node))


def imports_of(node):
    """(name here, (line, our own source or None, name there))"""
    for alias in node.names:
        name = alias.asname or alias.name.split(".")[0]
        words = alias.name + (" as " + alias.asname if alias.asname else "")
        module = getattr(node, "module", None)
        if module is None:
            yield name, ("import " + words, None, None)
        elif module.startswith("conform_"):
            yield name, (None, module[len("conform_"):], alias.name)
        else:
            yield name, ("from %s import %s" % (module, words), None, None)


def defined_by(node):
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    return {each.id for each in ast.walk(node)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def used_by(node):
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute) and getattr(each.value, "id", "") == SHIM_CLASS:
            yield SHIM_CLASS + "." + each.attr


class Program:
    """What is needed of all files."""

    def __init__(self, texts, seen):
        self.texts, self.sources = texts, {}
        self.seen = set(re.findall(r"\w+", seen))
        self.parts = []  # in the order in which they were found to be needed
        self.imports = set()

    def source(self, name):
        if name not in self.sources:
            self.sources[name] = Source(name, self.texts[name])
        return self.sources[name]

    def need(self, source, name):
        if name.startswith(SHIM_CLASS):
            source = self.source(SHIM)
        if name in source.imports:
            line, module, there = source.imports[name]
            if line is None:
                self.need(self.source(module), there)
            elif name != SHIM_CLASS:
                self.imports.add(line)
            return
        found = [part for part in source.parts if name in part.names]
        if name.startswith(SHIM_CLASS + ".") and not found:
            raise LookupError("it needs %s(), which conform alone has" % name.split(".")[1])
        for part in found:
            self.add(part)

    def add(self, part):
        if part in self.parts:
            return
        self.parts.append(part)
        for name in sorted(part.uses):
            self.need(part.source, name)
        for other in self.entries(part.source):
            self.add(other)

    def entries(self, source):
        """What enters itself in a table, by its decorator: that which the failure names, or else
        what is entered by a name that others use."""
        all_of_them = [part for part in source.parts if part.registers]
        strings = set().union(*(part.strings for part in self.parts if not part.registers))
        named = [part for part in all_of_them if part.names & self.seen]
        return named or [part for part in all_of_them if part.registers & strings]

    def print(self, head, settings, calls):
        modules = [name for name in self.order() if name != SHIM]
        names = [name for part in self.parts for name in part.names]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise LookupError("%s is the name of two things in it" % twice[0])
        own = sorted(line for line in self.imports if not line.startswith("import numpy"))
        print(head + "\n".join([*own, "", *sorted(self.imports - set(own)), "", settings]))
        members = [part for part in self.of(SHIM) if any("." in name for name in part.names)]
        for part in self.of(SHIM):
            if part not in members and "OBJECT" not in part.names:
                print("\n\n" + part.text())
        print("\n\nclass %s:" % SHIM_CLASS)
        print("\n\n".join(part.text() for part in members))
        print("\n\n# ---- what is done " + "-" * 82)
        for module in modules:
            for part in self.of(module):
                print("\n\n" + part.text())
        print("\n\ndef body():")
        for _, function in calls:
            print("    %s()" % function)
        print('\n\nif __name__ == "__main__":\n    sys.exit(main(body, sys.argv[1:]))')

    def order(self):
        """Each behind those that it imports."""
        order = []

        def visit(name):
            if name in order or name not in self.sources:
                return
            for _, module, _ in self.sources[name].imports.values():
                visit(module)
            order.append(name)

        for name in self.sources:
            visit(name)
        return order

    def of(self, module):
        return [part for part in self.sources[module].parts if part in self.parts]


HEAD = """prints what is wrong and exits with 1, or with 0 where nothing is.  It needs NumPy and
nothing of conform %(version)s, which made it of what the property itself runs: body() is at the
end, and what it stands on before it."""
ABOUT_HANDLER = """With another object as its argument it asks that one, and with - libc's own
functions."""


def head_of(given, is_about_numpy):
    paragraphs = [given["id"], "The clause: %(clause)s." % given, "Seen here: %(seen)s." % given]
    about = HEAD % given + ("" if is_about_numpy else "  " + ABOUT_HANDLER)
    usage = "    python3 %s.py%s" % (given["id"], "" if is_about_numpy else " [OBJECT.so | -]")
    lines = [textwrap.wrap(each, 96) for each in (*paragraphs, about)]
    lines = [*lines[0], "", *lines[1], *lines[2], "", usage, "", *lines[3]]
    return "".join(("# " + line).rstrip() + "\n" for line in lines) + "\n"


def settings_of(path, entry, module, getter, seed):
    places = [os.getcwd(), *os.environ.get("PYTHONPATH", "").split(os.pathsep)] if module else []
    return ("OBJECT = %r\nENTRY, MODULE, IS_GETTER = %r, %r, %r\nPLACES = %r\n"
            "SEED, SECONDS = %s, 20" % (path, entry, module, getter == "getter",
                                        [os.path.abspath(each) for each in places], seed))


def main():
    given, words = json.load(sys.stdin), sys.argv[1:]
    program = Program(given["sources"], given["seen"])
    try:
        for name in "main", "OBJECT", "sys":
            program.need(program.source(SHIM), name)
        for module, function in given["calls"]:
            program.need(program.source(module), function)
        program.print(head_of(given, words[0] == "-"), settings_of(*words), given["calls"])
    except LookupError as error:
        print(error.args[0])
        sys.exit(2)


main()
