# SPDX-License-Identifier: BSD-3-Clause
"""Draws the figures of bench_arrays.py, by matplotlib, as SVG.

Above, a panel for each handler: its time over the default handler's, by the size of the array.
Below, by the number of threads.  The colours can be told apart on white and on black, and by
people who do not see all of them; the background is whatever the page has.
"""

import math

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator  # noqa: E402

INK = "#7a828c"  # readable on both
COLOURS = {"empty": "#3b8fd4", "zeros": "#d98324", "a + a": "#2f9e77"}
MEANING = {"empty": "np.empty(n), dropped at once", "zeros": "np.zeros(n), dropped at once",
           "a + a": "a + a, of n bytes each"}
THREAD_COLOURS = ["#3b8fd4", "#d98324", "#a46fc4"]
THREAD_MARKERS = ["o", "s", "D"]
COLUMNS = 4

STYLE = {
    "axes.edgecolor": INK, "axes.labelcolor": INK, "axes.titlecolor": INK,
    "font.family": "sans-serif", "font.size": 9, "figure.facecolor": "none",
    "axes.facecolor": "none", "grid.alpha": 0.35,
    "grid.color": INK, "grid.linewidth": 0.6, "text.color": INK,
    "savefig.facecolor": "none", "svg.fonttype": "none", "svg.hashsalt": "handlers",
    "xtick.color": INK, "ytick.color": INK, "xtick.major.size": 0, "ytick.major.size": 0,
    "axes.spines.top": False, "axes.spines.right": False,
}


def times(value, _=None):
    return f"{value:g}×"


def limits(handlers):
    """Of all ratios, and a little beyond."""
    ratios = [r["ratio"] for figures in handlers.values() for r in figures["rows"]]
    return min(0.5, min(ratios) * 0.7), max(2, max(ratios) * 1.4)


def ratio_axis(axis):
    """The scale is logarithmic already; here are its numbers."""
    axis.set_major_locator(FixedLocator([10.0 ** power for power in range(-3, 4)]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(times))


def panel(axes, name, figures, sizes, shown, extent):
    axes.set_yscale("log")
    axes.set_ylim(*extent)
    axes.set_xlim(sizes[0] / 2, sizes[-1] * 2)
    axes.set_xscale("log", base=2)
    ratio_axis(axes.yaxis)
    axes.xaxis.set_major_locator(FixedLocator([sizes[0], 1 << 10, 64 << 10, sizes[-1]]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: shown(int(size))))
    axes.tick_params(axis="x", labelsize=7)
    axes.grid(axis="y")
    axes.axhline(1, color=INK, linewidth=1.2)
    for what, colour in COLOURS.items():
        points = [(r["size"], r["ratio"]) for r in figures["rows"]
                  if r["what"] == what and r["threads"] == 1]
        axes.plot(*zip(*points), color=colour, linewidth=1.8, marker="o", markersize=3.2,
                  clip_on=False)
    small = [r["ratio"] for r in figures["rows"]
             if r["what"] == "empty" and r["threads"] == 1 and r["size"] < 1024]
    axes.set_title(name, loc="left", fontweight="bold", fontsize=10)
    mean = math.exp(sum(map(math.log, small)) / len(small))
    axes.set_title(f"below 1 KiB: {mean:.{2 if mean < 10 else 0}f}×", loc="right",
                   fontsize=7.5, color=COLOURS["empty"])


def key(axes):
    """What the lines are, in the place of a panel."""
    axes.axis("off")
    for place, (what, colour) in enumerate(COLOURS.items()):
        y = 0.82 - 0.19 * place
        axes.plot([0.01, 0.12], [y, y], color=colour, linewidth=1.8, marker="o", markersize=3.2,
                  transform=axes.transAxes, clip_on=False)
        axes.text(0.17, y, MEANING[what], transform=axes.transAxes, va="center", fontsize=8.5)
    axes.plot([0.01, 0.12], [0.25, 0.25], color=INK, linewidth=1.2, transform=axes.transAxes)
    axes.text(0.17, 0.25, "NumPy's default handler", transform=axes.transAxes, va="center",
              fontsize=8.5)
    axes.text(0.0, 0.08, "one thread; lower is faster", transform=axes.transAxes, va="center",
              fontsize=8)


def by_threads(axes, handlers, what, size, threads, shown, labels):
    axes.set_xscale("log")
    axes.set_xlim(0.5, max(2, limits(handlers)[1]))
    ratio_axis(axes.xaxis)
    axes.axvline(1, color=INK, linewidth=1.2, zorder=1)
    axes.grid(axis="x")
    names = list(handlers)
    for row, name in enumerate(names):
        ratios = [r["ratio"] for count in threads for r in handlers[name]["rows"]
                  if (r["what"], r["size"], r["threads"]) == (what, size, count)]
        axes.plot([min(ratios), max(ratios)], [row, row], color=INK, alpha=0.35, linewidth=3,
                  zorder=2)
        for ratio, colour, marker in zip(ratios, THREAD_COLOURS, THREAD_MARKERS):
            axes.plot(ratio, row, marker, color=colour, markersize=4.5, zorder=3, clip_on=False)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), names if labels else [])
    axes.set_title(f"{what}, {shown(size)}", loc="left", fontsize=9)


def draw(results, path, sizes, threaded, threads, shown):
    """Writes the chart to `path`."""
    handlers = {name: figures for name, figures in results["handlers"].items()
                if "rows" in figures}
    rows = -(-(len(handlers) + 1) // COLUMNS)
    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(10.5, 1.95 * rows + 4.0))
        above, below = figure.subfigures(2, 1, height_ratios=[1.95 * rows + 0.7, 3.3])
        panels = above.subplots(rows, COLUMNS, squeeze=False, sharex=False).flat
        for number, axes in enumerate(panels):
            if number < len(handlers):
                name = list(handlers)[number]
                panel(axes, name, handlers[name], sizes, shown, limits(handlers))
                if number % COLUMNS:
                    axes.set_yticklabels([])
            elif number == len(handlers):
                key(axes)
            else:
                axes.axis("off")
        above.subplots_adjust(left=0.06, right=0.985, top=1 - 0.75 / (1.95 * rows + 0.7),
                              bottom=0.05, hspace=0.5, wspace=0.12)
        above.text(0.012, 1 - 0.2 / (1.95 * rows + 0.7), "Arrays under each handler: time over "
                   "NumPy's default handler, by size", fontsize=12.5, fontweight="bold")
        above.text(0.012, 1 - 0.42 / (1.95 * rows + 0.7),
                   f"NumPy {results['numpy']}; {results['machine']}", fontsize=8)
        cases = [(what, size) for what in COLOURS if what != "zeros" for size in threaded]
        for place, (axes, (what, size)) in enumerate(zip(below.subplots(1, len(cases)), cases)):
            by_threads(axes, handlers, what, size, threads, shown, place == 0)
        below.subplots_adjust(left=0.095, right=0.985, top=0.8, bottom=0.09, wspace=0.1)
        below.text(0.012, 0.93, "By number of threads", fontsize=12.5, fontweight="bold")
        marks = [plt.Line2D([], [], linestyle="", marker=marker, color=colour, markersize=5,
                            label="1 thread" if count == 1 else f"{count} threads")
                 for count, colour, marker in zip(threads, THREAD_COLOURS, THREAD_MARKERS)]
        below.legend(handles=marks, loc="upper right", ncols=len(marks), frameon=False,
                     bbox_to_anchor=(0.99, 1.0), fontsize=8.5)
        figure.savefig(path, format="svg", metadata={"Date": None})
        plt.close(figure)
