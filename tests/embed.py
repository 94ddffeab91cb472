# SPDX-License-Identifier: BSD-3-Clause
"""src/python/embed.sh: what goes in as Python comes out of the compiled C, byte for byte."""

import os
import subprocess
import tempfile

TOP = os.environ["top_srcdir"]
EMBED = os.path.join(TOP, "src", "python", "embed.sh")

PRINTER = """
#include <stdio.h>
#include "python/python_sources.h"
int main(void)
{
    for (const struct python_source *each = python_sources; each->name != NULL; each++)
        printf("[%s]%s", each->name, each->text);
    for (const char *const *need = python_source_find("i")->needs; *need != NULL; need++)
        printf("[i needs %s]", *need);
    return python_source_find("j")->name != NULL;
}
"""

# what is special about it, file name, text
FILES = [
    ("quotes and backslashes", "b.py", b"x = \"\\\\ \\\" '\"\n"),
    ("trigraphs", "c.py", b"x = '??/ ??= ???'\n"),
    ("UTF-8", "d.py", "x = 'd\u00e9j\u00e0 \u2260 1'\n".encode()),
    ("control characters before digits", "e.py", b"x = '\x01' '1\x0c2\t3'\n"),
    ("a backslash at the end of a line", "f.py", b"x = 1 + \\\n    2\n"),
    ("nothing at all", "a.py", b""),
    ("CR LF", "g.py", b"x = 1\r\ny = 2\r\n"),
    ("what it imports", "i.py", b"import os\nfrom conform_a import (\n    x,\n)\n"
     b"from conform_b_c import y\nz = 'from conform_d import z'\n"),
    ("a line of ten thousand bytes", "h.py", b"x = '" + b"ab" * 5000 + b"'\n"),
]


def embed(folder, names):
    return subprocess.run(
        ["sh", EMBED, "table.c"] + names, cwd=folder, stderr=subprocess.PIPE, text=True
    )


def compiled_output(folder):
    with open(os.path.join(folder, "printer.c"), "w") as file:
        file.write(PRINTER)
    compiler = os.environ["CC"].split() + ["-I", os.path.join(TOP, "src")]
    subprocess.run(compiler + ["-o", "printer", "printer.c", "table.c"], cwd=folder, check=True)
    return subprocess.run(
        [os.path.join(folder, "printer")], stdout=subprocess.PIPE, check=True
    ).stdout


def results():
    with tempfile.TemporaryDirectory() as folder:
        for _, name, text in FILES:
            with open(os.path.join(folder, name), "wb") as file:
                file.write(text)
        yield "embeds", embed(folder, [name for _, name, _ in FILES]).returncode == 0
        output = compiled_output(folder)
        for what, name, text in FILES:
            yield what, b"[%s]%s" % (name[:-3].encode(), text) in output
        yield "needs what it imports", output.endswith(b"[i needs a][i needs b_c]")

        with open(os.path.join(folder, "bad.py"), "wb") as file:
            file.write(b"x = '\0'\n")
        for what, name in (("a NUL byte", "bad.py"), ("no file", "none.py")):
            refused = embed(folder, [name])
            named = refused.returncode != 0 and name in refused.stderr
            yield what + " is refused, and the file named", named
        with open(os.path.join(folder, "table.c"), "rb") as file:
            yield "a refusal leaves the old table alone", b"abab" in file.read()


count = 0
for count, (what, held) in enumerate(results(), 1):
    print("%s %d - %s" % ("ok" if held else "not ok", count, what))
print("1..%d" % count)
