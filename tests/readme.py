# SPDX-License-Identifier: BSD-3-Clause
"""What README.md shows is what happens: its commands, its handler, its failure, its links.

The other pages' commands run.
"""

import glob
import os
import re
import shlex

import suite
from suite import CONFORM, CONFORMANT, NOT_CONFORMANT, SOURCE, run

tap = suite.Tap()


def read(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
        return file.read()


README = read("README.md")
COMMANDS = re.findall(r"^    (\S.*)$", re.sub(r"^```.*?^```", "", README, flags=re.M | re.S), re.M)


def fenced(language):
    """The blocks of that language."""
    return re.findall(r"^```%s\n(.*?)^```" % language, README, re.M | re.S)


def command_with(words):
    """The first command that has those words in it, to be run where nep49.h is elsewhere."""
    command = next(command for command in COMMANDS if words in command)
    return shlex.split(command.replace("-I handlers", "-I " + shlex.quote(SOURCE + "/handlers")))


def faulty(source, body):
    """The handler with that body of mine_calloc."""
    source, count = re.subn(
        r"(mine_calloc\(.*?\)\n\{\n).*?^\}", lambda match: match[1] + body + "}", source,
        flags=re.M | re.S,
    )
    assert count == 1
    return "#include <string.h>\n" + source


def same_everywhere(report):
    """A report without what differs from one machine or run to the next."""
    report = re.sub(r"^conform \S+: \S*/", "conform: ", report, flags=re.M)
    report = re.sub(r"/\S*/(conform|libmine\.so)\b", r"\1", report)
    report = re.sub(r"^Python .*\n.*;", "", report, flags=re.M)
    report = re.sub(r"0x[0-9a-f]+|\d+\.\d+ s", "#", report)
    # Rows depend on the size classes of libc, and conditions on the time there is.
    report = re.sub(r"^( {8}call +calloc)\(.*?(it\s+returned).*?(?=^ {8}hint )", r"\1 \2\n",
                    report, flags=re.M | re.S)
    return report.split()


def compile_and_run(folder, source, words):
    suite.write(os.path.join(folder, "mine.c"), source)
    compiled = run(command_with("-o libmine.so"), cwd=folder)
    quiet = compiled.code == 0 and compiled.stderr == ""
    tap.point(quiet, "its compiler's line has no complaint", compiled)
    return run(command_with(words), cwd=folder)


def test_handler(folder):
    os.symlink(CONFORM, os.path.join(folder, "conform"))
    handler, body = fenced("c")
    result = compile_and_run(folder, handler, "./libmine.so")
    tap.point(result.code == CONFORMANT, "its handler is conformant", result)
    test_pages(folder)
    result = compile_and_run(folder, faulty(handler, body), "./libmine.so --run")
    tap.point(result.code == NOT_CONFORMANT, "its faulty calloc is not", result)
    shown, name = fenced("text")[0], "the report is the one it shows"
    if suite.SANITIZED:
        tap.skip(name, "AddressSanitizer clears gigabytes for a product that wraps to them")
    else:
        tap.point(same_everywhere(shown) == same_everywhere(result.stdout), name, result.stdout)


FIRST = "conform --handler aligned"


def test_first_commands():
    """Packages, and then a clone."""
    clone = ["./bootstrap && ./" + FIRST, "./bootstrap && make -j2 check"]
    tap.point(COMMANDS[1] == COMMANDS[3] == FIRST and COMMANDS[4:6] == clone
              and COMMANDS[0].startswith("pip install ") and COMMANDS[2].startswith("apt install "),
              "it begins with how it is installed and tried", COMMANDS[:6])


SCRIPT = "import numpy\nnumpy.sort(numpy.ones(9))\n"
# Other tests' matter, or without an end.
ELSEWHERE = ("LD_PRELOAD", "python:", "pytest", "tsan", "until-fail")


def commands_of(page):
    """Those of conform's that stand in lines of their own."""
    words = read(page).replace("\\-", "-")
    line = r"(?m)^(?:    |\.Dl \$ )((?:\w+=\S+ )?(?:\./)?conform .*[^|\n])$"
    found = re.findall(line, words)
    return [command for command in found if not any(word in command for word in ELSEWHERE)]


def test_pages(folder):
    """In the folder of libmine.so; of the battery a property alone."""
    suite.write(os.path.join(folder, "script.py"), SCRIPT)
    for page in ("auditing.md", "conform.1", "handlers.md", "writing-a-handler.md"):
        commands = commands_of("docs/" + page)
        for command in commands:
            line = command.replace("venv/bin/python", "$PYTHON").replace("/tmp/", "")
            if not re.search("conform (exec|replay) ", line):
                line = re.sub(r"--run \S+", "", line) + " --run abi.loads"
            result = run(["sh", "-c", 'PATH="$PWD:$PATH"; ' + line], cwd=folder)
            tap.point(result.code == 0, "%s: %s" % (page, command), result)
        tap.point(commands, page + " has commands", "none was found")


def test_links():
    pages = ["README.md", "CONTRIBUTING.md"]
    pages += [os.path.relpath(page, SOURCE) for page in glob.glob(SOURCE + "/docs/*.md")
              + glob.glob(SOURCE + "/docs/tutorials/*.md")]
    for page in sorted(pages):
        folder = os.path.join(SOURCE, os.path.dirname(page))
        links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", read(page))]
        dead = [
            link
            for link in links
            if link and "://" not in link and not os.path.exists(os.path.join(folder, link))
        ]
        tap.point(not dead, "the links in %s lead somewhere" % page, dead)


test_first_commands()
with suite.scratch() as scratch_folder:
    test_handler(scratch_folder)
test_links()
tap.end()
