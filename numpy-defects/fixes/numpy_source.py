# SPDX-License-Identifier: BSD-3-Clause
"""Changes functions in a tree of NumPy's source: what the scripts beside it are written in.

    python3 sort-out-of-memory.py TREE

makes the change of that script in TREE, an unpacked sdist or a checkout.  A place is named by its
function and a pattern that has to match once; where NumPy has changed so that it does not, nothing
is written, and the status is 1.
"""

import contextlib
import os
import re
import sys
import textwrap


class Moved(Exception):
    """The place is not where it was."""


class Text:
    """Of a C function, from its name at the beginning of a line to its last brace; or a file's."""

    def __init__(self, where, text):
        self.where = where
        self.text = text

    def find(self, pattern, times=1):
        found = list(re.finditer(pattern, self.text, re.MULTILINE))
        if len(found) != times:
            raise Moved("%s: %r is there %d times, not %d"
                        % (self.where, pattern, len(found), times))
        return found

    def replace(self, pattern, text, times=1):
        """Each place, of as many as there have to be; text may have groups of the pattern."""
        for match in reversed(self.find(pattern, times)):
            self.text = self.text[:match.start()] + match.expand(text) + self.text[match.end():]

    def after(self, pattern, lines, times=1):
        """New lines behind the line that the pattern ends in, indented as that one is, or by one
        more where it opens a block."""
        for match in reversed(self.find(pattern, times)):
            begin, _ = self.line(match.start())
            _, end = self.line(match.end() - 1)
            opens = self.text[:end].endswith("{\n")
            self.text = self.text[:end] + self.indented(begin, lines, opens) + self.text[end:]

    def before(self, pattern, lines, times=1):
        """New lines before the line that the pattern begins in, indented as that one is."""
        for match in reversed(self.find(pattern, times)):
            begin, _ = self.line(match.start())
            self.text = self.text[:begin] + self.indented(begin, lines) + self.text[begin:]

    def cut(self, pattern):
        """The lines that the pattern matches go."""
        match, = self.find(pattern)
        begin, _ = self.line(match.start())
        _, end = self.line(match.end() - 1)
        self.text = self.text[:begin] + self.text[end:]

    def line(self, at):
        """Where the line of that character begins, and where the next one does."""
        return self.text.rfind("\n", 0, at) + 1, self.text.index("\n", at) + 1

    def indented(self, begin, lines, deeper=False):
        indent = re.match(" *", self.text[begin:]).group() + "    " * deeper
        return textwrap.indent(textwrap.dedent(lines).strip("\n") + "\n", indent)


class Tree:
    """A tree of source.  write() puts all changes there, and nothing does before."""

    def __init__(self, folder):
        self.folder = folder
        self.texts = {}

    def read(self, path):
        if path not in self.texts:
            try:
                with open(os.path.join(self.folder, path), encoding="utf-8") as file:
                    self.texts[path] = file.read()
            except OSError as error:
                raise Moved(str(error)) from None
        return self.texts[path]

    @contextlib.contextmanager
    def file(self, path):
        """with tree.file(path) as text: what is done to it is in the file behind it."""
        text = Text(path, self.read(path))
        yield text
        self.texts[path] = text.text

    @contextlib.contextmanager
    def function(self, path, name):
        """The same of one function."""
        found = re.findall(r"^%s\([^;{]*\)\s*\{\n.*?^\}\n" % re.escape(name), self.read(path),
                           re.MULTILINE | re.DOTALL)
        if len(found) != 1:
            raise Moved("%s: %s is there %d times, not once" % (path, name, len(found)))
        text = Text("%s: %s" % (path, name), found[0])
        yield text
        self.texts[path] = self.texts[path].replace(found[0], text.text)

    def write(self):
        for path, text in self.texts.items():
            with open(os.path.join(self.folder, path), "w", encoding="utf-8") as file:
                file.write(text)


def main(fix):
    """What a script ends in: makes the change in the tree that the command line names."""
    if len(sys.argv) != 2:
        sys.exit("usage: %s TREE" % sys.argv[0])
    tree = Tree(sys.argv[1])
    try:
        fix(tree)
    except Moved as moved:
        sys.exit(str(moved))
    tree.write()
