# SPDX-License-Identifier: BSD-3-Clause
"""src/python/embed.sh: what goes in as Python comes out of the compiled C, byte for byte."""

import os

import suite

EMBED = os.path.join(suite.SOURCE, "src", "python", "embed.sh")
PRINTER = """
#include <stdio.h>
#include "python/python_sources.h"
int main(void)
{
    for (const struct python_source *each = python_sources; each->name != NULL; each++)
        printf("[%s %s]%s", each->name, each->path, each->text);
    for (const char *const *need = python_source_find("needs")->needs; *need != NULL; need++)
        printf("[needs %s]", *need);
    return python_source_find("none")->name != NULL;
}
"""
FILES = {
    "empty": b"",
    "quotes": b"x = \"\\\\ \\\" '\"\n",
    "trigraphs": b"x = '??/ ??= ???'\n",
    "utf_8": "x = 'd\u00e9j\u00e0 \u2260 1'\n".encode(),
    "control_characters": b"x = '\x01' '1\x0c2\t3'\n",
    "backslash_at_the_end": b"x = 1 + \\\n    2\n",
    "cr_lf": b"x = 1\r\ny = 2\r\n",
    "long_line": b"x = '" + b"ab" * 5000 + b"'\n",
    "needs": b"import os\nfrom conform_a import (\n    x,\n)\nfrom conform_b_c import y\n"
             b"z = 'from conform_d import z'\n",
}


def main():
    tap = suite.Tap()
    with suite.scratch(enter=True):
        os.mkdir("in")
        names = [suite.write("in/%s.py" % name, text) for name, text in FILES.items()]
        made = suite.run(["sh", EMBED, "table.c", *names])
        suite.write("printer.c", PRINTER)
        suite.build("printer.c", "printer", "table.c", "-I", suite.SOURCE + "/src", shared=False)
        output = suite.run(["./printer"])
        for name, text in FILES.items():
            head = "[%s in/%s.py]" % (name, name)
            tap.point(head + suite.decode(text) in output.stdout, name, made)
        tap.point(output.code == 0 and output.stdout.endswith("[needs a][needs b_c]"), "imports")
        for name in suite.write("nul.py", b"x = '\0'\n"), "none.py":
            refused = suite.run(["sh", EMBED, "table.c", name])
            with open("table.c") as file:
                tap.point(refused.code != 0 and name in refused.stderr and "abab" in file.read(),
                          name + " is refused, and the old table stays", refused)
    tap.end()


main()
