# SPDX-License-Identifier: BSD-3-Clause
"""The results of a bench as text and as HTML: a table, and charts of the ratio by size."""

import itertools
import math

from . import model, page

TITLE = "The time of each handler, as a multiple of that of NumPy's default handler"
STEP, POWER, MOST = 50, 36, 4  # pixels of a size and of a factor of two; the largest ratio is 2**4
COLORS = "bar", "bad", "good", "warn", "text", "dim"
STYLE = """svg { height: auto; max-width: 70rem; background: none }
svg text { font-size: .75rem; fill: var(--dim) }
line { stroke: var(--line) }
polyline { fill: none; stroke: currentColor; stroke-width: 2 }
polygon { fill: currentColor; opacity: .2 }
""" + "".join(".%s { color: var(--%s) }\n" % (each, each) for each in COLORS)


def size_words(size):
    power = (size.bit_length() - 1) // 10
    return "%d %s" % (size >> 10 * power, ("B", "KiB", "MiB")[power])


def value_words(value, unit):
    if not unit.startswith("s"):
        return "%.3g" % value
    for factor, name in ((1e9, "ns"), (1e6, "us"), (1e3, "ms"), (1, "s")):
        if value * factor < 1000:
            break
    return "%.3g %s" % (value * factor, name)


def ratio_words(ratio):
    return ("%.2g" if ratio < 0.1 else "%.2f") % ratio


def by_title(bench):
    for title, cells in itertools.groupby(bench["cells"], key=lambda cell: cell["title"]):
        yield title, list(cells)


def row(cell):
    """Returns the name, the default handler's value, and the ratios of each other handler."""
    figures = []
    for figure in cell["handlers"][1:]:
        keys = "ratio", "low", "high", "processor_ratio"
        ratio, low, high, used = (ratio_words(figure[key]) for key in keys)
        differs = cell["unit"] == "s" and abs(figure["processor_ratio"] / figure["ratio"] - 1) > 0.1
        figures.append(("%s (%s to %s)" % (ratio, low, high), " cpu " + used if differs else ""))
    name = size_words(cell["size"]) if cell["size"] else cell["title"]
    return name, value_words(cell["handlers"][0]["value"], cell["unit"]), figures


def notes(bench):
    rounds = min((cell["rounds"] for cell in bench["cells"]), default=0)
    lines = ["%d results in %.1f s: the median of at least %d rounds (the range of three quarters)"
             % (len(bench["cells"]), bench["seconds"], rounds)]
    if bench["noisy"]:
        lines.append("%d are noisy: half of the default handler's rounds differ by more than a "
                     "tenth, so something else runs on this machine" % bench["noisy"])
    if bench["left_out"]:
        lines.append("%d more were left out because the time was over: use --max-time, or fewer "
                     "handlers" % bench["left_out"])
    return lines


def show(bench, quiet):
    """Prints the results, or which handler is lost, and returns the exit status: a handler that is
    lost has broken its contract, except for the first two, which are ours."""
    if "lost" in bench:
        place = bench["title"] + (" of " + size_words(bench["size"]) if bench["size"] else "")
        words = ", ".join([bench["why"], "in " + place] if place else [bench["why"]])
        print("%-7s %s: %s; there are no figures"
              % (bench["verdict"], model.clean(bench["label"]), model.clean(words)))
        return model.BROKE if bench["lost"] < 2 else model.NOT_CONFORMANT
    if quiet:
        return model.CONFORMANT
    print(bench["python"], TITLE, "(cpu: of processor time, if it differs by more than a tenth)",
          "", sep="\n")
    heads = ["%20.20s%9s" % (model.clean(each), "") for each in bench["handlers"][1:]]
    print("%46s %10s" % ("", "default"), *heads)
    for title, cells in by_title(bench):
        if cells[0]["size"]:
            print(title)
        for cell in cells:
            name, value, figures = row(cell)
            name = "    " * bool(cell["size"]) + name
            print("%-46s %10s" % (name, value), *("%20s%-9s" % pair for pair in figures),
                  *["noisy"] * cell["noisy"])
    print("", *notes(bench), sep="\n")
    return model.CONFORMANT


# ---- HTML ----------------------------------------------------------------------------------------


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
                 f'{size_words(cell["size"])}</text>\n')
    for i in range(1, len(cells[0]["handlers"])):
        spread = " ".join(points(i, "high") + points(i, "low")[::-1])
        made += (f'<g class="{COLORS[i % len(COLORS)]}"><polygon points="{spread}"/>'
                 f'<polyline points="{" ".join(points(i, "ratio"))}"/></g>\n')
    return made + "</svg></section>\n"


def render(bench):
    bench = page.escaped(bench)
    labels, charts, rows = bench["handlers"], "", ""
    for title, cells in by_title(bench):
        if cells[0]["size"] and len(cells) > 2:
            charts += chart(title, cells)
        if cells[0]["size"]:
            rows += f'<tr><th scope="rowgroup" colspan="{len(labels) + 1}">{title}</th></tr>\n'
        for cell in cells:
            name, value, figures = row(cell)
            noisy = " (noisy)" * cell["noisy"]
            rows += (f'<tr><th scope="row">{name}{noisy}</th><td>{value}</td>'
                     + "".join(f"<td>{words}{cpu}</td>" for words, cpu in figures) + "</tr>\n")
    about = [TITLE + " in the same round; below 1 is faster; cpu is the ratio of processor time",
             *notes(bench), f"{bench['python']}, {bench['machine']}"]
    keys = "".join(
        f'<li><b class="{COLORS[i % len(COLORS)]}">{"&#9632;" if i else "&#9473; 1 is"}</b> {each}'
        "</li>\n" for i, each in enumerate(labels))
    heads = "".join(f'<th scope="col">{each}</th>' for each in labels)
    body = (f'<main>\n<h1>{TITLE}</h1>\n<p>{". ".join(about)}</p>\n<ul>{keys}</ul>\n{charts}'
            f'<div class="wide" tabindex="0"><table><thead><tr><th></th>{heads}</tr></thead>\n'
            f"<tbody>\n{rows}</tbody></table></div>\n</main>")
    return page.framed(TITLE, body, STYLE, is_filtered=False)
