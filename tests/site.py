# SPDX-License-Identifier: BSD-3-Clause
"""The tutorials do what they say.  check-long: make html makes a site without a warning, in which
no link leads nowhere and each property has its anchor, on its page and in the specification.
"""

import html.parser
import os
import re
import urllib.parse

import suite

HANDLERS = os.path.abspath(os.path.join(suite.BUILD, "handlers"))


def read(name):
    with open(os.path.join(suite.SOURCE, name), encoding="utf-8") as file:
        return file.read()


def blocks(name, language):
    return re.findall(r"^```%s\n(.*?)^```" % language, read("docs/tutorials/" + name), re.M | re.S)


def verdict_with(realloc):
    """The README's handler with that realloc."""
    source = re.search(r"^```c\n(.*?)^```", read("README.md"), re.M | re.S)[1]
    body = re.search(r"static void \*mine_realloc.*?^}\n", source, re.M | re.S)[0]
    source = "#include <string.h>\n#include <malloc.h>\n" + source.replace(body, realloc)
    suite.build(suite.write("mine.c", source), "libmine.so", "-w")
    return suite.conform("--handler=./libmine.so", "--run=realloc.*", "--run=abi.loads")


def red_line(tap):
    wrong, mended = blocks("red-line.md", "c")
    result = verdict_with(wrong)
    said = blocks("red-line.md", "text")[0].strip()
    tap.point(result.code == suite.NOT_CONFORMANT and said in result.stdout,
              "red-line.md: which one to look at", result)
    result = verdict_with(mended)
    tap.point(result.code == suite.CONFORMANT, "red-line.md: mended", result)
    result = suite.conform("explain", "realloc.keeps-contents")
    hint = re.search(r"hint: \*(.*?)\*", read("docs/tutorials/red-line.md").replace("\n", " "))[1]
    tap.point(hint in " ".join(result.stdout.split()), "red-line.md: its hint", result)


def python(program, **more):
    return suite.run([suite.PYTHON, "-B", "-c", program], env={
        "PYTHONPATH": os.path.join(suite.SOURCE, "python"), "NEP49_HANDLERS": HANDLERS, **more})


def first_handler(tap):
    made = suite.conform("init", "myhandler")
    suite.build("myhandler/mine.c", "libmine.so")
    result = suite.conform("--handler=./libmine.so", "--quick")
    tap.point(made.code == 0 and result.code == suite.CONFORMANT, "first-handler.md: it passes",
              result)
    result = python(blocks("first-handler.md", "python")[0])
    tap.point(result.code == 0 and result.stdout == "mine\n", "first-handler.md: it is used",
              result)


def share(tap):
    result = python("".join(blocks("share-an-array.md", "python")))
    tap.point(result.code == 0 and not result.stderr, "share-an-array.md: what it shows", result)


def known(tap):
    """The file of known failures is read, and its line is about what is there."""
    suite.write("known.toml", blocks("ci.md", "toml")[0].replace("2027", "2999"))
    result = suite.conform("--handler=aligned", "--expect=known.toml", "--run=abi.loads")
    tap.point(result.code == suite.CONFORMANT, "ci.md: its file", result)


class Page(html.parser.HTMLParser):
    """Its ids, and what it links to."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links = set(), []
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attributes):
        words = dict(attributes)
        self.ids.update(words[name] for name in ("id", "name") if words.get(name))
        self.links += [words[name] for name in ("href", "src") if words.get(name)]


def dead_links(pages):
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            target = os.path.normpath(os.path.join(
                os.path.dirname(path), urllib.parse.unquote(parts.path))) if parts.path else path
            anchor = urllib.parse.unquote(parts.fragment)
            if not parts.scheme and (not os.path.exists(target) or (
                    anchor and target in pages and anchor not in pages[target].ids)):
                yield "%s: %s" % (path, link)


def site(tap):
    if not suite.LONG:
        tap.skip("make html", "it takes Sphinx from PyPI: set CHECK_LONG")
        return
    plain = {name: "" for name in ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "TESTS")}
    made = suite.run([os.environ.get("MAKE", "make"), "-s", "html"], cwd=suite.BUILD, env=plain,
                     timeout=600)
    if "No matching distribution" in made.stderr or "ConnectionError" in made.stderr:
        tap.skip("make html", "Sphinx cannot be had: " + made.stderr.splitlines()[-1])
        return
    if not tap.point(made.code == 0 and "WARNING:" not in made.stdout, "make html", made):
        return
    top = os.path.join(suite.BUILD, "html")
    pages = {os.path.join(folder, name): Page(os.path.join(folder, name))
             for folder, _, names in os.walk(top) for name in names
             if name.endswith(".html") and "_static" not in folder}
    dead = list(dead_links(pages))
    tap.point(len(pages) > 200 and not dead, "no link leads nowhere", dead[:20])
    ids = suite.listed_ids()
    lacking = [each for each in ids
               if each not in pages[os.path.join(top, "docs", "clauses.html")].ids
               or each not in pages[os.path.join(top, "properties", each + ".html")].ids]
    tap.point(len(ids) > 100 and not lacking, "each property has its page and anchor", lacking)


def main():
    tap = suite.Tap()
    with suite.scratch(enter=True):
        if suite.SANITIZED:
            tap.skip("handlers and what is said of them", "a sanitizer says other things")
        else:
            red_line(tap)
            first_handler(tap)
            share(tap)
        known(tap)
    site(tap)
    tap.end()


if __name__ == "__main__":
    main()
