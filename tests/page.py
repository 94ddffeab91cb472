# SPDX-License-Identifier: BSD-3-Clause
"""--html and --badge: the page is well formed, asks nothing of the network, has all that
the JSON has and escapes it; of several it is a table.  check-long: a browser runs its script."""

import base64
import hashlib
import html.parser
import importlib.util
import os
import re
import shutil
import xml.etree.ElementTree

import suite
from suite import CONFORMANT, HARNESS_BROKE, INCOMPLETE, NOT_CONFORMANT, USAGE

FAULTY = os.path.join(suite.FAULTY, "faulty.so:calloc_wraps")
PART = ["--run=abi.*", "--run=calloc.*"]
EVIL = "<script>alert(1)</script>\"'&{{body}}\x1b[31m\u202e\u20ac%s%n"
SHOWN = EVIL.replace("\x1b", "\\x1b").replace("\u202e", "\\xe2\\x80\\xae")
VOID = {"meta", "input", "br", "link", "img", "hr"}


class Page(html.parser.HTMLParser):
    """What is in it: balanced or not, ids, links, texts of elements."""

    def __init__(self, text):
        super().__init__()
        self.open, self.wrong, self.ids, self.links = [], [], [], []
        self.tags, self.text, self.verdicts, self.cells = [], "", {}, {}
        self.raw = text
        self.feed(text)
        self.close()
        self.wrong += ["open at the end: %s" % self.open] if self.open else []
        self.wrong += ["twice: %s" % i for i in set(self.ids) if self.ids.count(i) > 1]
        self.wrong += ["leads nowhere: " + link for link in self.links if link[1:] not in self.ids]

    def handle_starttag(self, tag, attributes):
        words = dict(attributes)
        self.tags.append(tag)
        self.wrong += ["<%s %s>" % (tag, name) for name, _ in attributes
                       if re.match(r"on|src|style$|action|http$", name)]
        self.ids += [words["id"]] if "id" in words else []
        self.links += [words["href"]] if "href" in words else []
        if tag == "tr":
            self.row = []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        if tag != "rect":
            self.wrong.append("<%s/>" % tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append("</%s>" % tag)
        if tag == "tr" and "tbody" in self.open:
            self.cells[self.row[0]] = self.row[1:-1]

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] in ("a", "td", "th") and "tr" in self.open:
            self.row.append(data)


def read(name):
    with open(name, encoding="utf-8", newline="") as file:
        return file.read()


def from_files(*files, page="page.html"):
    return suite.conform("report", "--html=" + page, "--badge=badge.svg", *files)


def settled(report, **change):
    """With the summary that belongs to its verdicts, as another version would have it."""
    report = dict(report, conform="9.9", seed="1", rounds=1, **change)
    sums = {target: dict.fromkeys(suite.VERDICTS, 0) for target in ("handler", "runtime")}
    against, waived = [], 0
    for each in report["properties"]:
        numpys = each.get("target") == "runtime"
        sums["runtime" if numpys else "handler"][each["verdict"]] += 1
        if not numpys and each["verdict"] in ("FAIL", "CRASH", "TIMEOUT", "INCOMPLETE"):
            waived += "waived" in each
            against += [each["verdict"]] if "waived" not in each else []
    code = INCOMPLETE if set(against) == {"INCOMPLETE"} else int(bool(against))
    return dict(report, verdicts=sums, waivers=waived, expected=len(report["properties"]),
                exit_code=code, conformant=not against and not waived)


def badge_of(name):
    root = xml.etree.ElementTree.parse(name).getroot()
    return root.find("{http://www.w3.org/2000/svg}title").text.partition(": ")[2]


def policy_wrong(page):
    """What the policy lets be run and styled is what is there."""
    policy = re.search(r'Policy" content="([^"]*)"', page.raw)[1]
    wrong = []
    if not policy.startswith("default-src 'none'; base-uri 'none'; form-action 'none'; "):
        wrong.append(policy)
    for tag in "style", "script":
        inside = re.findall("<%s>(.*?)</%s>" % (tag, tag), page.raw, re.S)
        digest = base64.b64encode(hashlib.sha256(inside[0].encode()).digest()).decode()
        if len(inside) != 1 or "%s-src 'sha256-%s'" % (tag, digest) not in policy:
            wrong.append("%d of %s" % (len(inside), tag))
        if "url(" in inside[0] or "@import" in inside[0] or "http" in inside[0]:
            wrong.append(tag + " goes elsewhere")
    return wrong


def runs(tap):
    """Of a run and of several handlers, beside the JSON."""
    for what, words, code, badge in (
            ("a handler", ["-Haligned"], CONFORMANT, "partial"),
            ("a faulty one", ["-H" + FAULTY], NOT_CONFORMANT, "not conformant"),
            ("both", ["-Haligned", "-H" + FAULTY], NOT_CONFORMANT, "not conformant")):
        result = suite.conform(*words, *PART, "--html=page.html", "--badge=badge.svg",
                               "--json=%s.json" % what.replace(" ", "_"))
        page = Page(read("page.html"))
        wrong = page.wrong + policy_wrong(page)
        tap.point(not wrong and result.code == code and badge_of("badge.svg") == badge,
                  "the page of " + what, "%s\n%s" % (wrong, result))


def escaped(tap):
    """Whatever a member is, it is text on the page."""
    report = suite.load("a_faulty_one.json")

    def changed(value):
        if isinstance(value, dict):
            return {name: changed(member) for name, member in value.items()}
        if isinstance(value, list):
            return [changed(member) for member in value]
        return EVIL if isinstance(value, str) and value not in suite.VERDICTS else value

    evil = changed(report)
    evil["format"] = report["format"]
    plain = Page(read("page.html") if from_files("a_faulty_one.json").code == 0 else "")
    suite.write("evil.json", dict(settled(evil), conform=EVIL))
    result = from_files("evil.json")
    page = Page(read("page.html"))
    wrong = page.wrong + policy_wrong(page)
    wrong += [] if SHOWN in page.text and "\x1b" not in page.raw else [page.text[:300]]
    wrong += [] if page.tags.count("script") == plain.tags.count("script") == 1 else [page.tags]
    tap.point(not wrong and result.code == 0, "what is embedded is escaped",
              "%s\n%s" % (wrong, result))


def head_of(page):
    return read(page).partition("<thead>")[2].partition("</thead>")[0]


def together(tap):
    """Several files make one table, also of two versions; a name tells them apart."""
    report = suite.load("a_handler.json")
    other = suite.load("a_faulty_one.json")
    other["properties"] = other["properties"][1:] + [
        dict(other["properties"][0], id="later.property", verdict="INCOMPLETE")]
    other["environment"]["numpy"] = "1.23.4"
    result = from_files("a_handler.json", suite.write("other.json", settled(other)), "both.json")
    page = Page(read("page.html"))
    first, last = report["properties"][0]["id"], ["not run", "INCOMPLETE"] + 2 * ["not run"]
    held = (result.code == 0 and not page.wrong + policy_wrong(page)
            and all(len(cells) == 4 for cells in page.cells.values())
            and page.cells["later.property"] == last and page.cells[first][1] == "not run"
            and "other.json" in page.text and "9.9" in page.text)
    tap.point(held, "several files", (page.wrong, result))
    several = "NumPy" in head_of("page.html")
    from_files("a_handler.json", "a_faulty_one.json")
    tap.point(several and "NumPy" not in head_of("page.html"),
              "the table's head names NumPys where they differ", head_of("page.html"))
    badges = []
    whole = {"whole": True, "environment": {}}
    first, *rest = report["properties"]
    failing = dict(first, verdict="FAIL")
    for change in (whole, {}, {"whole": True, "environment": {"checker": "memcheck"}},
                   dict(whole, properties=[dict(failing, waived={"reason": "x"}), *rest]),
                   {"properties": [failing, *rest], "conclusion": "NOT CONFORMANT: x"},
                   {"properties": [dict(first, verdict="INCOMPLETE"), *rest],
                    "conclusion": "INCOMPLETE: x"}):
        from_files(suite.write("odd.json", settled(report, **change)))
        badges.append(badge_of("badge.svg"))
    tap.point(badges == ["conformant", "partial", "partial", "conformant with waivers",
                         "not conformant", "no verdict"], "badges", badges)


def forged(tap):
    """A summary that is not that of its verdicts makes no badge."""
    report, faulty = suite.load("a_handler.json"), suite.load("a_faulty_one.json")
    good = {name: report[name] for name in ("verdicts", "conformant", "exit_code", "conclusion")}
    for forgery, words in (
            (dict(faulty, **good), "its summary is not"),
            (dict(faulty, exit_code=0), "its exit_code is not"),
            (dict(report, subject=1), "subject is not an object"),
            (dict(report, properties=[*report["properties"], []]), "is not an object"),
            (dict(report, seed="lucky"), "its seed is not")):
        result = from_files(suite.write("forged.json", forgery), page="forged.html")
        tap.point(result.code == USAGE and result.stderr.count("\n") == 1
                  and result.stderr.startswith("conform: forged.json: ") and words in result.stderr
                  and not os.path.exists("forged.html"), "forged: " + words, result)


def since(tap):
    """What --baseline found is on the page."""
    for what, handler, other in (("NEW", FAULTY, "a_handler.json"),
                                 ("no verdict is different", "aligned", "a_handler.json")):
        result = suite.conform("-H" + handler, *PART, "--baseline=" + other, "--html=page.html")
        page = Page(read("page.html"))
        words = page.text.partition("Since " + other)[2].partition("All properties")[0]
        tap.point(not page.wrong and what in words, "since another run: " + what,
                  "%s\n%s\n%s" % (page.wrong, words, result))


def refused(tap):
    """Nothing is written if one of the files cannot be read; tests/damaged.py has more of them."""
    result = from_files("a_handler.json", "none.json", page="not.html")
    tap.point(result.code == USAGE and "none.json" in result.stderr
              and result.stderr.count("\n") == 1 and not os.path.exists("not.html"),
              "report none.json", result)
    result = suite.conform("report", "--html=/dev/full", "a_handler.json")
    tap.point(result.code == HARNESS_BROKE and "/dev/full: cannot be" in result.stderr,
              "--html on a full disk", result)
    result = suite.conform("report", "--html=-", "a_handler.json")
    tap.point(result.code == 0 and not Page(result.stdout).wrong, "a page on stdout", result.stderr)
    left = [name for name in os.listdir() if ".conform-" in name]
    tap.point(not left, "nothing half written is left", left)


AXE = """
<script>%s</script>
<script>
axe.run().then(found => {
    const lines = found.violations.map(each => "axe: " + each.id + ": " + each.nodes[0].html);
    document.body.textContent = [...lines, "axe: looked at " + found.passes.length].join("\\n");
});
</script>
"""


def axe():
    """axe-core's source: of the file that is named, or as a package of PyPI brings it; or None."""
    spec = importlib.util.find_spec("axe_playwright_python")
    own = os.path.join(spec.submodule_search_locations[0], "axe.min.js") if spec else ""
    path = os.environ.get("AXE_CORE", own)
    return read(path) if os.path.exists(path) else None


def is_accessible(tap, browser):
    """As axe-core looks at it, light and dark, wide and as on a phone: in a copy of the page that
    lets its script run."""
    script = axe()
    if script is None:
        tap.skip("axe-core", "pip install --no-deps axe-playwright-python")
        return
    page = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", read("page.html"))
    script = AXE % script.replace("</script", "<\\/script")
    suite.write("axe.html", page.replace("</body>", script + "</body>"))
    for width in 1280, 360:
        for scheme, number in ("light", 1), ("dark", 0):
            result = suite.run([*browser, "--window-size=%d,900" % width,
                                "--blink-settings=preferredColorScheme=%d" % number,
                                "--virtual-time-budget=60000",
                                "file://" + os.path.abspath("axe.html")], timeout=300)
            said = re.findall("axe: .*", result.stdout)
            tap.point(len(said) == 1 and re.match(r"axe: looked at \d\d", said[0]),
                      "axe-core, %s, %d pixels wide" % (scheme, width), said or str(result)[-2000:])


def in_a_browser(tap):
    """The policy lets the script run, and whatever is embedded does not."""
    name = "the page in a browser"
    browser = shutil.which("chromium")
    if browser is None or not suite.LONG:
        tap.skip(name, "make check-long does it, with chromium, which is Debian's package")
        return
    from_files("evil.json", "both.json")
    browser = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
               "--user-data-dir=" + os.path.abspath("browser")]
    result = suite.run(browser + ["file://" + os.path.abspath("page.html")], timeout=300)
    count = len(Page(read("page.html")).cells)
    tap.point('id="shown">%d of %d properties<' % (count, count) in result.stdout, name,
              str(result)[-2000:])
    from_files("both.json", "a_handler.json")
    is_accessible(tap, browser)


def main():
    tap = suite.Tap()
    with suite.scratch(enter=True):
        runs(tap)
        escaped(tap)
        together(tap)
        forged(tap)
        since(tap)
        refused(tap)
        in_a_browser(tap)
    tap.end()


main()
