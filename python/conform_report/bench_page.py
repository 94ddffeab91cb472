# SPDX-License-Identifier: BSD-3-Clause
"""The results of a bench as text and as HTML: charts of the ratio by size, and a table."""

import html
import itertools
import math
import os
import re

KIB, MIB = 1 << 10, 1 << 20
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 300, 54, 26, 10, 34
COLORS = 8  # classes of page.html


def size_words(size):
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return "%d %s" % (size // unit, name)
    return "%d B" % size


def value_words(cell, micro="us"):
    """Returns the value of the default handler."""
    value = cell["handlers"][0]["value"]
    if not cell["unit"].startswith("s"):
        return "%.3g" % value
    for least, name in ((1, "s"), (1e-3, "ms"), (1e-6, micro)):
        if value >= least:
            return "%.3g %s" % (value / least, name)
    return "%.3g ns" % (value * 1e9)


def ratio_words(figure, key):
    return ("%.2g" if figure[key] < 0.1 else "%.2f") % figure[key]


def spread_words(figure):
    return "%s to %s" % (ratio_words(figure, "low"), ratio_words(figure, "high"))


def print_table(bench):
    print(bench["python"])
    print("the time of each handler, as a multiple of that of NumPy's default handler")
    print("(cpu: the ratio of processor time, if it differs by more than a tenth)\n")
    labels = ["%20.20s%9s" % (each, "") for each in bench["handlers"][1:]]
    print("%46s %10s" % ("", "default"), *labels)
    title = None
    for cell in bench["cells"]:
        if cell["size"] and cell["title"] != title:
            print(cell["title"])
        title = cell["title"]
        name = "    %-42s" % size_words(cell["size"]) if cell["size"] else "%-46s" % title
        words = [name, "%10s" % value_words(cell)]
        for figure in cell["handlers"][1:]:
            used, ratio = figure["processor_ratio"], figure["ratio"]
            differs = cell["unit"] == "s" and not 0.9 * ratio <= used <= 1.1 * ratio
            cpu = " cpu " + ratio_words(figure, "processor_ratio") if differs else ""
            ratio = "%s (%s)" % (ratio_words(figure, "ratio"), spread_words(figure))
            words.append("%20s%-9s" % (ratio, cpu))
        print(*words, *["noisy"] * cell["noisy"])
    frame = "\n%d results in %.1f s: the median of at least %d rounds (the range of three quarters)"
    rounds = min((cell["rounds"] for cell in bench["cells"]), default=0)
    print(frame % (len(bench["cells"]), bench["seconds"], rounds))
    if bench["noisy"]:
        print("%d are noisy: half of the default handler's rounds differ by more than a tenth, so "
              "something else runs on this machine" % bench["noisy"])  # fmt: skip
    if bench["left_out"]:
        words = "%d more were left out because the time was over: use --max-time, or fewer handlers"
        print(words % bench["left_out"])


# ---- HTML ----------------------------------------------------------------------------------------


class Chart:
    """The ratios of one group by size.  Both axes are logarithmic; the default handler is at 1."""

    def __init__(self, cells):
        ratios = [f["ratio"] for cell in cells for f in cell["handlers"][1:] if f["ratio"] > 0]
        powers = [math.log2(ratio) for ratio in ratios]
        self.cells = cells
        self.low = max(math.floor(min([-1, *powers])), -4)
        self.high = min(math.ceil(max([1, *powers])), 4)
        self.least, self.most = (math.log2(cells[i]["size"]) for i in (0, -1))

    def x(self, size):
        part = (math.log2(size) - self.least) / max(self.most - self.least, 1)
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def y(self, ratio):
        power = min(max(math.log2(ratio) if ratio > 0 else self.low, self.low), self.high)
        return TOP + (self.high - power) / (self.high - self.low) * (HEIGHT - TOP - BOTTOM)

    def points(self, cells, handler, key):
        places = ((self.x(c["size"]), self.y(c["handlers"][handler][key])) for c in cells)
        return " ".join("%.1f,%.1f" % place for place in places)

    def svg(self, name):
        frame = '<svg viewBox="0 0 %d %d" role="img" aria-label="%s, the ratio by size; the table '
        parts = [(frame + 'has the numbers">\n') % (WIDTH, HEIGHT, name)]
        for power in range(self.low, self.high + 1):
            place = "grid" if power else "one", LEFT, WIDTH - RIGHT, self.y(2**power)
            line = '<line class="%s" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>'
            parts.append(line % (*place, place[3]))
            frame = '<text x="%d" y="%.1f" text-anchor="end">%g</text>\n'
            parts.append(frame % (LEFT - 6, place[3] + 4, 2**power))
        for cell in self.cells[:: 2 if len(self.cells) > 8 else 1]:
            frame = '<text x="%.1f" y="%d" text-anchor="middle">%s</text>\n'
            place = self.x(cell["size"]), HEIGHT - BOTTOM + 18, size_words(cell["size"])
            parts.append(frame % place)
        frame = '<g class="c%d"><polygon class="spread" points="%s %s"/><polyline class="drawn" '
        for i in range(1, len(self.cells[0]["handlers"])):
            upper = self.points(self.cells, i, "high")
            lower = self.points(self.cells[::-1], i, "low")
            line = self.points(self.cells, i, "ratio")
            parts.append((frame + 'points="%s"/></g>\n') % (i % COLORS, upper, lower, line))
        return "".join(parts) + "</svg>"


def table_row(cell):
    name = size_words(cell["size"]) if cell["size"] else html.escape(cell["title"])
    noisy = " (noisy)" * cell["noisy"]
    row = '<tr><th scope="row">%s%s</th><td>%s</td>' % (name, noisy, value_words(cell, "&#181;s"))
    for figure in cell["handlers"][1:]:
        words = spread_words(figure)
        if cell["unit"] == "s":
            words += "; cpu " + ratio_words(figure, "processor_ratio")
        row += "<td>%s <small>%s</small></td>" % (ratio_words(figure, "ratio"), words)
    return row + "</tr>\n"


def body(bench):
    frame = ("The time of each handler, as a multiple of that of NumPy's default handler in the "
             "same round: the median, and the range of three quarters of the rounds. Below 1 is "
             "faster; cpu is the ratio of processor time. %s; %.1f s, %s; %d results are noisy, "
             "and %d were left out because the time was over.")
    about = *(bench[key] for key in ("python", "seconds", "machine", "noisy", "left_out")),
    labels = [html.escape(each) for each in bench["handlers"]]
    parts = ["<p>%s</p>\n<ul>\n" % html.escape(frame % about)]
    for i, label in enumerate(labels):
        mark = "&#9632;" if i else "&#9473; 1 is"
        parts.append('<li class="c%d"><b>%s</b> %s</li>\n' % (i % COLORS, mark, label))
    parts.append('</ul>\n<div class="all">\n')
    rows = []
    for title, cells in itertools.groupby(bench["cells"], key=lambda cell: cell["title"]):
        cells, name = list(cells), html.escape(title)
        sized = [cell for cell in cells if cell["size"] > 0]
        if len(sized) > 2:
            chart = Chart(sized).svg(name)
            parts.append("<section><h2>%s</h2>\n%s</section>\n" % (name, chart))
        if sized:
            frame = '<tr><th scope="rowgroup" colspan="%d">%s</th></tr>\n'
            rows.append(frame % (len(labels) + 1, name))
        rows += map(table_row, cells)
    heads = "".join('<th scope="col">%s</th>' % label for label in labels)
    frame = '<div class="wide" tabindex="0"><table><thead><tr><th></th>%s</tr></thead>'
    parts += ["</div>\n", frame % heads, "<tbody>\n", *rows, "</tbody></table></div>\n"]
    return "".join(parts)


def render(bench):
    """Returns a page of its own, with the style of page.html."""
    with open(os.path.join(os.path.dirname(__file__), "page.html"), encoding="utf-8") as file:
        style = re.search("<style>.*?</style>", file.read(), re.S)[0]
    frame = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>%s</title>
%s
</head>
<body>
<main class="bench">
<h1>%s</h1>
%s</main>
</body>
</html>
"""
    title = "Handlers compared with NumPy's default handler"
    return frame % (title, style, title, body(bench))
