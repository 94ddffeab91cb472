/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The figures as a table and as JSON.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/program_version.h"
#include "base/text.h"
#include "bench/bench.h"
#include "model/options.h"

/* "0.85", "0.0012" */
static const char *ratio_words(double ratio)
{
    return text(ratio < 0.1 ? "%.2g" : "%.2f", ratio);
}

/* " cpu 1.20" where the processors' time has another ratio, or "". */
static const char *processor_words(const struct cell *cell, const struct figure *figure)
{
    static const double same = 0.1;
    double used = figure->processor_ratio;
    bool is_other = used > figure->ratio * (1 + same) || used < figure->ratio * (1 - same);
    return is_other && strcmp(cell->unit, "s") == 0 ? text(" cpu %s", ratio_words(used)) : "";
}

void bench_print(const struct bench *bench)
{
    enum { TITLE = 46 };
    const char *title = "";
    printf("%s\ntimes that each takes, as multiples of what NumPy's default handler takes\n"
           "(cpu: that of processors' time, where it differs by more than a tenth)\n\n",
           text_safe(bench->python));
    printf("%-*s %10s", TITLE, "", "default");
    for (size_t k = BENCH_LIBC; k < bench->subjects; k++)
        printf(" %20.20s%9s", text_safe(bench->labels[k]), "");
    putchar('\n');
    for (size_t i = 0; i < bench->count; i++) {
        const struct bench_cell *cell = &bench->cells[i];
        bool has_size = cell->cell.size != 0;
        if (has_size && strcmp(title, cell->cell.title) != 0)
            puts(cell->cell.title);
        title = cell->cell.title;
        printf("%s%-*s %10s", has_size ? "    " : "", has_size ? TITLE - 4 : TITLE,
               has_size ? bench_size(cell->cell.size) : cell->cell.title,
               bench_value(&cell->cell, cell->of[BENCH_DEFAULT].value));
        for (size_t k = BENCH_LIBC; k < bench->subjects; k++) {
            const struct figure *figure = &cell->of[k];
            printf(" %20s%-9s",
                   text("%s (%s to %s)", ratio_words(figure->ratio), ratio_words(figure->low),
                        ratio_words(figure->high)),
                   processor_words(&cell->cell, figure));
        }
        puts(cell->is_noisy ? " noisy" : "");
    }
    printf("\n%zu figures in %.1f s, the median of %zu rounds and more, and what three fourths of "
           "them "
           "lie within\n",
           bench->count, bench->seconds, bench->count > 0 ? bench->cells[0].rounds : 0);
    if (bench->noisy > 0)
        printf("%zu of them are noisy: half of the default handler's own rounds lie further apart "
               "than a tenth; the machine does something else\n",
               bench->noisy);
    if (bench->left_out > 0)
        printf("%zu more were left out for want of time: --max-time says another, fewer "
               "handlers want less\n",
               bench->left_out);
}

static json_t *figure_value(const struct figure *figure)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "value", figure->value, "ratio",
                     figure->ratio, "low", figure->low, "high", figure->high, "processor_ratio",
                     figure->processor_ratio, "faults", figure->faults);
}

json_t *bench_report(const struct bench *bench)
{
    json_t *cells = json_array(), *labels = json_array();
    for (size_t k = 0; k < bench->subjects; k++)
        json_array_append_new(labels, json_string(text_safe(bench->labels[k])));
    for (size_t i = 0; i < bench->count; i++) {
        const struct bench_cell *cell = &bench->cells[i];
        json_t *figures = json_array();
        for (size_t k = 0; k < bench->subjects; k++)
            json_array_append_new(figures, figure_value(&cell->of[k]));
        json_array_append_new(cells, json_pack("{s:s, s:s, s:s, s:I, s:i, s:I, s:b, s:o}", "group",
                                               cell->cell.group, "title", cell->cell.title, "unit",
                                               cell->cell.unit, "size", (json_int_t)cell->cell.size,
                                               "threads", (int)cell->cell.threads, "rounds",
                                               (json_int_t)cell->rounds, "noisy", cell->is_noisy,
                                               "handlers", figures));
    }
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:f, s:I, s:I, s:o}", "format", "conform-bench-1", "conform",
        program_version, "python", text_safe(bench->python), "machine", text_safe(bench->machine),
        "handlers", labels, "seconds", bench->seconds, "noisy", (json_int_t)bench->noisy,
        "left_out", (json_int_t)bench->left_out, "cells", cells);
    if (root == NULL)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    return root;
}
