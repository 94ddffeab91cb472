/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pictures: sizes from left to right and ratios from the bottom to the top, both as powers of two;
 * the default handler is the line at 1.
 */
#include "report/bench_page.h"

#include <math.h>
#include <string.h>
#include <sys/param.h>

#include "base/text.h"
#include "report/markup.h"
#include "report/members.h"

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "style-src 'unsafe-inline'\">\n"
    "<title>Handlers beside NumPy's default one</title>\n<style>\n"
    ":root { --text: #1f2328; --dim: #59636e; --page: #fff; --line: #d1d9e0; --c0: #59636e;\n"
    "  --c1: #0a58b5; --c2: #b3400e; --c3: #1a7f37; --c4: #8250df; --c5: #8a5c00; --c6: #a0215f;\n"
    "  --c7: #007a82 }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "  :root { --text: #e6edf3; --dim: #9da7b1; --page: #0d1117; --line: #3d444d; --c0: #9da7b1;\n"
    "    --c1: #79b8ff; --c2: #ff9b6b; --c3: #4ac26b; --c4: #c297ff; --c5: #e3b341; --c6: "
    "#ff8ac0;\n"
    "    --c7: #56d4dd }\n"
    "}\n"
    "body { margin: 0 auto; max-width: 75rem; padding: 1rem; font: 1rem/1.45 system-ui, "
    "sans-serif;\n"
    "  color: var(--text); background: var(--page) }\n"
    "h1 { font-size: 1.5rem; margin: 0 } h2 { font-size: 1.1rem; margin: 0 0 .3rem }\n"
    "h1, h2, p, td, th, li { overflow-wrap: anywhere }\n"
    ".all { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), "
    "1fr));\n"
    "  gap: 1.5rem; margin: 1rem 0 }\n"
    "svg { display: block; width: 100%; height: auto } svg text { font: 12px system-ui, "
    "sans-serif;\n"
    "  fill: var(--dim) }\n"
    ".grid { stroke: var(--line) } .one { stroke: var(--text); stroke-width: 1.5 }\n"
    ".c0 { --c: var(--c0) } .c1 { --c: var(--c1) } .c2 { --c: var(--c2) } .c3 { --c: var(--c3) }\n"
    ".c4 { --c: var(--c4) } .c5 { --c: var(--c5) } .c6 { --c: var(--c6) }\n"
    ".c7 { --c: var(--c7) }\n"
    ".drawn { fill: none; stroke: var(--c); stroke-width: 2 } .spread { fill: var(--c); opacity: "
    ".18 }\n"
    "ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem }\n"
    "li b { color: var(--c) }\n"
    ".wide { overflow-x: auto } table { border-spacing: 0; font-size: .875rem }\n"
    "td, th { text-align: end; padding: .2rem .6rem; border-top: 1px solid var(--line);\n"
    "  font-weight: 400; white-space: nowrap } th:first-child, th[scope=rowgroup] { text-align: "
    "start }\n"
    "th[scope=row] { white-space: normal; min-width: 7rem }\n"
    "thead th, small, .dim { color: var(--dim) } tr > th[scope=rowgroup] { font-weight: 600 }\n"
    "</style>\n</head>\n<body>\n<main>\n<h1>Handlers beside NumPy's default one</h1>\n";

/* The picture's measures, and what part of it is drawn in. */
enum { WIDTH = 560, HEIGHT = 300, LEFT = 54, RIGHT = 26, TOP = 10, BOTTOM = 34 };
enum { MOST_DRAWN = 32, COLOURS = 8 };

struct picture {
    FILE *file;
    const json_t *cells[MOST_DRAWN];
    size_t count;
    double least, most;     /* sizes, as powers of two */
    double lowest, highest; /* ratios, likewise */
    int heading;            /* the level of its title */
};

static double number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static double power_of(double value)
{
    return log2(value > 0 && isfinite(value) ? value : 1);
}

static double x_of(const struct picture *p, double power)
{
    double width = WIDTH - LEFT - RIGHT, span = MAX(p->most - p->least, 1);
    return LEFT + (power - p->least) / span * width;
}

static double y_of(const struct picture *p, double power)
{
    double height = HEIGHT - TOP - BOTTOM, span = p->highest - p->lowest;
    return TOP + (p->highest - MIN(MAX(power, p->lowest), p->highest)) / span * height;
}

static const json_t *figure_of(const json_t *cell, size_t handler)
{
    return json_array_get(json_object_get(cell, "handlers"), handler);
}

/* No further than from a sixteenth to 16 times. */
static void measure(struct picture *p, size_t handlers)
{
    p->lowest = -1;
    p->highest = 1;
    p->least = power_of(number(p->cells[0], "size"));
    p->most = power_of(number(p->cells[p->count - 1], "size"));
    for (size_t i = 0; i < p->count; i++) {
        for (size_t k = 1; k < handlers; k++) {
            double ratio = power_of(number(figure_of(p->cells[i], k), "ratio"));
            p->lowest = MAX(MIN(p->lowest, floor(ratio)), -4);
            p->highest = MIN(MAX(p->highest, ceil(ratio)), 4);
        }
    }
}

static const char *size_words(double size)
{
    return size >= 1 << 20   ? text("%.0f MiB", size / (1 << 20))
           : size >= 1 << 10 ? text("%.0f KiB", size / (1 << 10))
                             : text("%.0f B", size);
}

static void draw_grid(const struct picture *p)
{
    for (double power = p->lowest; power <= p->highest; power++) {
        double y = y_of(p, power);
        fprintf(p->file,
                "<line class=\"%s\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                power == 0 ? "one" : "grid", LEFT, WIDTH - RIGHT, y, y, LEFT - 6, y + 4,
                exp2(power));
    }
    for (size_t i = 0; i<p->count; i += p->count> 8 ? 2 : 1) {
        double size = number(p->cells[i], "size");
        fprintf(p->file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                x_of(p, power_of(size)), HEIGHT - BOTTOM + 18, size_words(size));
    }
}

static void draw_point(const struct picture *p, size_t i, size_t handler, const char *which)
{
    fprintf(p->file, "%.1f,%.1f ", x_of(p, power_of(number(p->cells[i], "size"))),
            y_of(p, power_of(number(figure_of(p->cells[i], handler), which))));
}

static void draw_handler(const struct picture *p, size_t handler)
{
    fprintf(p->file, "<g class=\"c%zu\"><polygon class=\"spread\" points=\"", handler % COLOURS);
    for (size_t i = 0; i < p->count; i++)
        draw_point(p, i, handler, "high");
    for (size_t i = p->count; i-- > 0;)
        draw_point(p, i, handler, "low");
    fputs("\"/><polyline class=\"drawn\" points=\"", p->file);
    for (size_t i = 0; i < p->count; i++)
        draw_point(p, i, handler, "ratio");
    fputs("\"/></g>\n", p->file);
}

static void draw(struct picture *p, const json_t *labels)
{
    size_t handlers = json_array_size(labels);
    const char *title = word(p->cells[0], "title");
    measure(p, handlers);
    fprintf(p->file, "<section><h%d>", p->heading);
    markup_put(p->file, title);
    fprintf(p->file, "</h%d>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", p->heading,
            WIDTH, HEIGHT);
    markup_put(p->file, title);
    fputs(", times by size, as multiples of the default handler's; the table has the figures\">\n",
          p->file);
    draw_grid(p);
    for (size_t k = 1; k < handlers; k++)
        draw_handler(p, k);
    fputs("</svg></section>\n", p->file);
}

static void draw_all(FILE *file, const json_t *cells, const json_t *labels, int heading)
{
    struct picture picture = {.file = file, .heading = heading};
    const json_t *cell;
    size_t i;
    fputs("<div class=\"all\">\n", file);
    json_array_foreach(cells, i, cell)
    {
        const json_t *next = json_array_get(cells, i + 1);
        if (number(cell, "size") > 0 && picture.count < MOST_DRAWN)
            picture.cells[picture.count++] = cell;
        if (next != NULL && strcmp(word(next, "title"), word(cell, "title")) == 0)
            continue;
        if (picture.count > 2)
            draw(&picture, labels);
        picture.count = 0;
    }
    fputs("</div>\n", file);
}

static void put_legend(FILE *file, const json_t *labels)
{
    const json_t *label;
    size_t i;
    fputs("<ul>\n", file);
    json_array_foreach(labels, i, label)
    {
        fprintf(file, "<li class=\"c%zu\"><b>%s</b> ", i % COLOURS,
                i == 0 ? "&#9473; 1 is" : "&#9632;");
        markup_put(file, json_string_value(label));
        fputs("</li>\n", file);
    }
    fputs("</ul>\n", file);
}

static const char *value_words(const json_t *cell, double value)
{
    if (*word(cell, "unit") != 's')
        return text("%.3g", value);
    return value >= 1      ? text("%.3g s", value)
           : value >= 1e-3 ? text("%.3g ms", value * 1e3)
           : value >= 1e-6 ? text("%.3g &#181;s", value * 1e6)
                           : text("%.3g ns", value * 1e9);
}

/* "0.85", "0.0012" */
static const char *ratio_words(const json_t *figure, const char *name)
{
    double ratio = number(figure, name);
    return text(ratio < 0.1 ? "%.2g" : "%.2f", ratio);
}

static void put_row(FILE *file, const json_t *cell, size_t handlers)
{
    bool has_size = number(cell, "size") > 0;
    fputs("<tr><th scope=\"row\">", file);
    if (has_size)
        fputs(size_words(number(cell, "size")), file);
    else
        markup_put(file, word(cell, "title"));
    fprintf(file, "%s</th><td>%s</td>",
            json_is_true(json_object_get(cell, "noisy")) ? " (noisy)" : "",
            value_words(cell, number(figure_of(cell, 0), "value")));
    for (size_t k = 1; k < handlers; k++) {
        const json_t *figure = figure_of(cell, k);
        fprintf(file, "<td>%s <small>%s to %s", ratio_words(figure, "ratio"),
                ratio_words(figure, "low"), ratio_words(figure, "high"));
        if (strcmp(word(cell, "unit"), "s") == 0 &&
            json_is_number(json_object_get(figure, "processor_ratio")))
            fprintf(file, "; cpu %s", ratio_words(figure, "processor_ratio"));
        fputs("</small></td>", file);
    }
    fputs("</tr>\n", file);
}

static void put_table(FILE *file, const json_t *cells, const json_t *labels)
{
    const json_t *one;
    const char *title = "";
    size_t i, handlers = json_array_size(labels);
    fputs("<div class=\"wide\" tabindex=\"0\"><table><thead><tr><th></th>", file);
    json_array_foreach(labels, i, one)
    {
        fputs("<th scope=\"col\">", file);
        markup_put(file, json_string_value(one));
        fputs("</th>", file);
    }
    fputs("</tr></thead><tbody>\n", file);
    json_array_foreach(cells, i, one)
    {
        if (number(one, "size") > 0 && strcmp(title, word(one, "title")) != 0) {
            fprintf(file, "<tr><th scope=\"rowgroup\" colspan=\"%zu\">", handlers + 1);
            markup_put(file, word(one, "title"));
            fputs("</th></tr>\n", file);
        }
        title = word(one, "title");
        put_row(file, one, handlers);
    }
    fputs("</tbody></table></div>\n", file);
}

bool is_bench(const json_t *value)
{
    return strcmp(word(value, "format"), "conform-bench-1") == 0;
}

static bool is_figure(const json_t *figure)
{
    return json_is_number(json_object_get(figure, "value")) &&
           json_is_number(json_object_get(figure, "ratio")) &&
           json_is_number(json_object_get(figure, "low")) &&
           json_is_number(json_object_get(figure, "high"));
}

static bool is_cell(const json_t *cell, size_t handlers)
{
    const json_t *figures = json_object_get(cell, "handlers"), *figure;
    size_t i;
    if (*word(cell, "title") == '\0' || !json_is_number(json_object_get(cell, "size")) ||
        json_array_size(figures) != handlers)
        return false;
    json_array_foreach(figures, i, figure)
    {
        if (!is_figure(figure))
            return false;
    }
    return true;
}

const char *bench_wrong(const json_t *value)
{
    const json_t *labels = json_object_get(value, "handlers"), *each;
    const json_t *cells = json_object_get(value, "cells");
    size_t i;
    if (!is_bench(value))
        return "is no bench that --json wrote";
    if (json_array_size(labels) == 0 || json_array_size(cells) == 0)
        return "a bench without figures";
    json_array_foreach(labels, i, each)
    {
        if (!json_is_string(each))
            return text("handlers[%zu] is no string", i);
    }
    json_array_foreach(cells, i, each)
    {
        if (!is_cell(each, json_array_size(labels)))
            return text("cells[%zu] does not have what each has", i);
    }
    return NULL;
}

void bench_put(FILE *file, const json_t *value, int heading)
{
    const json_t *cells = json_object_get(value, "cells");
    const json_t *labels = json_object_get(value, "handlers");
    fputs("<p>What each takes, as a multiple of what NumPy's default handler takes in the same "
          "round: "
          "the median, and what three fourths of the rounds lie within. Below 1 is faster; cpu is "
          "the "
          "ratio of the processors' time. ",
          file);
    markup_put(file, word(value, "python"));
    fprintf(file, "; %.1f s, ", number(value, "seconds"));
    markup_put(file, word(value, "machine"));
    fprintf(file, "; %.0f of %zu figures are noisy", number(value, "noisy"),
            json_array_size(cells));
    if (number(value, "left_out") > 0)
        fprintf(file, ", and %.0f more were left out for want of time", number(value, "left_out"));
    fputs(".</p>\n", file);
    put_legend(file, labels);
    draw_all(file, cells, labels, heading);
    put_table(file, cells, labels);
}

int bench_page(FILE *file, const json_t *value)
{
    fputs(head, file);
    bench_put(file, value, 2);
    fputs("</main>\n</body>\n</html>\n", file);
    return ferror(file) ? -1 : 0;
}
