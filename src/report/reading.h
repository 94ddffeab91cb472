/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reports that --json wrote, read from a file or taken from one another.
 */
#ifndef CONFORM_READING_H
#define CONFORM_READING_H

#include <jansson.h>
#include <stdbool.h>

/* Why the value is no single report that --json wrote, in words (good until the next calls of
 * text()); or NULL. */
const char *report_wrong(const json_t *value);

/* The same of what a file has: where it has several, each is a report, or says why there is none.
 */
const char *reports_wrong(const json_t *root);

/* Whether this stands in the place of one that did not come. */
bool report_is_missing(const json_t *member);

/* The reports in what --json writes: a report, an array of them, or those of several interpreters.
 * Each is a copy, with which one it is as its member "where", and what --python was given, if it is
 * one of several interpreters, as "python".  With `errors` also what stands in
 * the place of one that did not come, which has an "error" and no "properties". */
json_t *reports_in(const json_t *value, bool errors);

/* The same of a file; "-" is stdin.  Leaves with EXIT_USAGE and one line, which names the file,
 * where it is none of these, or something in it is not. */
json_t *reports_read(const char *file, bool errors);

/* In two steps: what is in the file, which leaves with EXIT_USAGE where that is no JSON; and the
 * reports in it, which takes it over. */
json_t *reports_load(const char *file);
json_t *reports_of_file(json_t *root, const char *file, bool errors);

#endif
