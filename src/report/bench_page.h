/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The page of a bench.
 */
#ifndef CONFORM_BENCH_PAGE_H
#define CONFORM_BENCH_PAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Whether it is what --bench --json writes. */
bool is_bench(const json_t *value);

/* Why it is none that has all of what is shown, in words (good until the next calls of text()); or
 * NULL. */
const char *bench_wrong(const json_t *value);

/* For a page that has the style of page.html: the same without what is around it, and with titles
 * of that level. */
void bench_put(FILE *file, const json_t *value, int heading);

/* A page of its own: a picture for each group that has sizes, and all figures in a table.  0, or -1
 * where writing failed (errno set). */
int bench_page(FILE *file, const json_t *value);

#endif
