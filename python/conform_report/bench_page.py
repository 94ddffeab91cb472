# SPDX-License-Identifier: BSD-3-Clause
"""The results of a bench as text and as HTML: a table, and charts of the ratio by size."""

import itertools
import math

from . import model, page

TITLE = "The time of each handler, as a multiple of that of NumPy's default handler"
STEP, POWER, MOST = 50, 36, 4  # pixels of a size and of a factor of two; the largest ratio is 2**4
COLORS = "bad", "good", "warn", "text", "dim"
STYLE = """svg { height: auto; max-width: 70rem; background: none }
svg text { font-size: .75rem; fill: var(--dim) }
line { stroke: var(--line) }
polyline { fill: none; stroke: currentColor; stroke-width: 2 }
polygon { fill: currentColor; opacity: .2 }
"""


def value_words(value, unit):
    if not unit.startswith("s"):
        return "%.3g" % value
    power = min(max(math.ceil(-math.log10(max(value, 1e-12)) / 3), 0), 3)
    return "%.3g %s" % (value * 1000**power, ("s", "ms", "us", "ns")[power])


def ratio_words(*ratios):
    return "%5s (%s to %s)" % tuple(("%.2g" if one < 0.1 else "%.2f") % one for one in ratios)


def by_title(bench):
    for title, cells in itertools.groupby(bench["cells"], key=lambda cell: cell["title"]):
        yield title, list(cells)


def rows(bench):
    """Yields a title alone, or a name, the default handler's value, and the others' ratios."""
    for title, cells in by_title(bench):
        if cells[0]["name"]:
            yield [title]
        for cell in cells:
            name = "    " + cell["name"] if cell["name"] else title
            default, *others = cell["handlers"]
            yield [name + " (noisy)" * cell["noisy"], value_words(default["value"], cell["unit"]),
                   *(ratio_words(one["ratio"], one["low"], one["high"]) for one in others)]


def notes(bench):
    rounds = min(cell["rounds"] for cell in bench["cells"])
    return ["%d results in %.1f s: the median of at least %d rounds (the range of three quarters)"
            % (len(bench["cells"]), bench["seconds"], rounds),
            "%d are noisy: half of the default handler's rounds differ by more than a tenth, "
            "because something else runs on this machine" % bench["noisy"]]


def show(bench):
    print(bench["python"], TITLE, "", sep="\n")
    labels = [model.clean(label)[:27] for label in bench["handlers"][1:]]
    for row in [["", "default", *labels], *rows(bench)]:
        name, value, *ratios = [*row, ""]
        print(("%-48s%11s" % (name, value) + "".join("  %-27s" % one for one in ratios)).rstrip())
    print("", *notes(bench), sep="\n")


def chart(name, cells):
    """Returns the ratios by size, and their spread.  The default handler is the line at 1."""

    def height(ratio):
        return (MOST - min(max(math.log2(max(ratio, 1e-9)), -MOST), MOST)) * POWER + 10

    def points(i, key):
        return ["%d,%.1f" % (x * STEP + 60, height(cell["handlers"][i][key]))
                for x, cell in enumerate(cells)]

    width, bottom = len(cells) * STEP + 40, 2 * MOST * POWER + 40
    made = (f'<section><h2>{name}</h2>\n<svg viewBox="0 0 {width} {bottom}" role="img" '
            f'aria-label="{name}, the ratio by size; the table has the numbers">\n')
    for power in range(-MOST, MOST + 1):
        y = height(2**power)
        made += (f'<line x1="50" x2="{width}" y1="{y}" y2="{y}"/>'
                 f'<text x="0" y="{y + 4}">{2**power:g}</text>\n')
    for x, cell in enumerate(cells):
        made += (f'<text x="{x * STEP + 60}" y="{bottom - 5}" text-anchor="middle">'
                 f'{cell["name"]}</text>\n')
    for i, color in zip(range(1, len(cells[0]["handlers"])), itertools.cycle(COLORS)):
        spread = " ".join(points(i, "high") + points(i, "low")[::-1])
        made += (f'<g class="{color}"><polygon points="{spread}"/>'
                 f'<polyline points="{" ".join(points(i, "ratio"))}"/></g>\n')
    return made + "</svg></section>\n"


def render(bench):
    bench = page.escaped(bench)
    labels, body = bench["handlers"], ""
    charts = "".join(chart(title, cells) for title, cells in by_title(bench) if len(cells) > 2)
    for name, *figures in rows(bench):
        scope = 'row"' if figures else f'rowgroup" colspan="{len(labels) + 1}"'
        body += f'<tr><th scope="{scope}>{name.strip()}</th>'
        body += "".join(f"<td>{each}</td>" for each in figures) + "</tr>\n"
    about = [TITLE + ", which is the line at 1, in the same round; below 1 is faster",
             *notes(bench), f"{bench['python']}, {bench['machine']}"]
    keys = "".join(f'<li><b class="{color}">&#9632;</b> {label}</li>\n'
                   for color, label in zip(itertools.cycle(COLORS), labels[1:]))
    heads = "".join(f'<th scope="col">{label}</th>' for label in labels)
    body = (f'<main>\n<h1>{TITLE}</h1>\n<p>{". ".join(about)}</p>\n<ul>{keys}</ul>\n{charts}'
            f'<div class="wide" tabindex="0"><table><thead><tr><th></th>{heads}</tr></thead>\n'
            f"<tbody>\n{body}</tbody></table></div>\n</main>")
    return page.framed(TITLE, body, STYLE, is_filtered=False)
