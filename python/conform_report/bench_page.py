# SPDX-License-Identifier: BSD-3-Clause
"""The results of a bench as text and as HTML: charts of the ratio by size, and a table."""

import html
import itertools
import math

from . import page

KIB, MIB = 1 << 10, 1 << 20


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

STYLE = """svg { height: auto; max-width: 70rem; background: none }
svg text { font-size: .75rem; fill: var(--dim) }
line { stroke: var(--line) }
polyline { fill: none; stroke: currentColor; stroke-width: 2 }
polygon { fill: currentColor; opacity: .2 }
"""
COLORS = "bar", "bad", "good", "warn", "text", "dim"
STYLE += "".join(".%s { color: var(--%s) }\n" % (each, each) for each in COLORS)
STEP, POWER, MOST = 50, 36, 4  # pixels of a size and of a factor of two; the largest ratio is 2**4


def chart(name, cells):
    """Returns the ratios by size, and their spread.  The default handler is the line at 1."""

    def height(ratio):
        return (MOST - min(max(math.log2(max(ratio, 1e-9)), -MOST), MOST)) * POWER + 10

    def points(i, key):
        return ["%d,%.1f" % (x * STEP + 60, height(cell["handlers"][i][key]))
                for x, cell in enumerate(cells)]

    size = len(cells) * STEP + 40, 2 * MOST * POWER + 40
    parts = ['<svg viewBox="0 0 %d %d" role="img" aria-label="%s, the ratio by size; the table '
             'has the numbers">' % (*size, name)]
    for power in range(-MOST, MOST + 1):
        y = height(2**power)
        parts.append('<line x1="50" x2="%d" y1="%d" y2="%d"/><text x="0" y="%d">%g</text>'
                     % (size[0], y, y, y + 4, 2**power))
    for x, cell in enumerate(cells):
        place = x * STEP + 60, size[1] - 5, size_words(cell["size"])
        parts.append('<text x="%d" y="%d" text-anchor="middle">%s</text>' % place)
    for i in range(1, len(cells[0]["handlers"])):
        spread = " ".join(points(i, "high") + points(i, "low")[::-1])
        parts.append('<g class="%s"><polygon points="%s"/><polyline points="%s"/></g>' % (
            COLORS[i % len(COLORS)], spread, " ".join(points(i, "ratio"))))
    return "\n".join(parts) + "</svg>\n"


def table_row(cell):
    name = size_words(cell["size"]) if cell["size"] else html.escape(cell["title"])
    row = '<tr><th scope="row">%s%s</th><td>%s</td>' % (
        name, " (noisy)" * cell["noisy"], value_words(cell, "&#181;s"))
    for figure in cell["handlers"][1:]:
        words = spread_words(figure)
        if cell["unit"] == "s":
            words += "; cpu " + ratio_words(figure, "processor_ratio")
        row += "<td>%s <small>%s</small></td>" % (ratio_words(figure, "ratio"), words)
    return row + "</tr>\n"


def render(bench):
    title = "Handlers compared with NumPy's default handler"
    labels = [html.escape(each) for each in bench["handlers"]]
    about = ("The time of each handler, as a multiple of that of NumPy's default handler in the "
             "same round: the median, and the range of three quarters of the rounds. Below 1 is "
             "faster; cpu is the ratio of processor time. {python}; {seconds:.1f} s, {machine}; "
             "{noisy} results are noisy, and {left_out} were left out because the time was over.")
    keys = "".join('<li><b class="%s">%s</b> %s</li>\n' % (
        COLORS[i % len(COLORS)], "&#9632;" if i else "&#9473; 1 is", label)
        for i, label in enumerate(labels))
    charts, rows = "", ""
    for name, cells in itertools.groupby(bench["cells"], key=lambda cell: cell["title"]):
        name, cells = html.escape(name), list(cells)
        if cells[0]["size"] and len(cells) > 2:
            charts += "<section><h2>%s</h2>\n%s</section>\n" % (name, chart(name, cells))
        if cells[0]["size"]:
            rows += '<tr><th scope="rowgroup" colspan="%d">%s</th></tr>\n' % (len(labels) + 1, name)
        rows += "".join(map(table_row, cells))
    heads = "".join('<th scope="col">%s</th>' % label for label in labels)
    table = ('<div class="wide" tabindex="0"><table><thead><tr><th></th>%s</tr></thead>\n'
             "<tbody>\n%s</tbody></table></div>" % (heads, rows))
    body = "<main>\n<h1>%s</h1>\n<p>%s</p>\n<ul>%s</ul>\n%s%s\n</main>" % (
        title, html.escape(about.format(**bench)), keys, charts, table)
    return page.framed(title, body, STYLE, is_filtered=False)
