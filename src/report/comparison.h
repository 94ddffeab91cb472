/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is different between two runs, from their JSON reports, which may be of two versions of this
 * program: an id never changes its meaning.
 */
#ifndef CONFORM_COMPARISON_H
#define CONFORM_COMPARISON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "model/options.h"

enum difference {
    DIFFERENCE_NEW,     /* it says more against the handler: a PASS that is a WARN now or a FAIL */
    DIFFERENCE_FIXED,   /* it counted against the handler, and passes now */
    DIFFERENCE_CHANGED, /* another verdict in any other way */
    DIFFERENCE_GONE,    /* the later report has no such property, though it is a whole one */
};
enum { DIFFERENCES = DIFFERENCE_GONE + 1 };

struct comparison {
    json_t *told[DIFFERENCES]; /* arrays of objects: id, before, after, target, where */
    json_t *unknown;           /* likewise, of properties that only the later one has */
    json_t *surroundings;      /* what was otherwise: strings such as "NumPy 2.3.5, now 2.4.6" */
    size_t not_run;            /* of what the earlier judged: for an interrupt, or as an interpreter
                                  could not be run */
    size_t incomplete, broken; /* likewise, and what is now INCOMPLETE or BROK */
    bool interrupted;          /* the later one */
    size_t left_out;           /* what the earlier has and a later one that is a part has not */
    enum exit_code status; /* with --fail-on new: EXIT_NOT_CONFORMANT where one about the handler
                              that is new fails, with `strict` or warns, or one does of which an
                              earlier report that is a part, or is not there, says nothing; else
                              as that of a battery, for what the earlier judged and the later
                              did not */
};

/* Why the value is no single report that --json wrote, in words (good until the next calls of
 * text()); or NULL. */
const char *comparison_wrong(const json_t *value);

/* The same of what a file has: where it has several, each is a report, or says why there is none.
 */
const char *comparison_wrong_in(const json_t *root);

/* The reports in what --json writes: a report, an array of them, or those of several interpreters.
 * Each is a copy, with which one it is as its member "where", and what --python was given, if it is
 * one of several interpreters, as "python".  With `errors` also what stands in
 * the place of one that did not come, which has an "error" and no "properties". */
json_t *comparison_reports(const json_t *value, bool errors);

/* The same of a file; "-" is stdin.  Leaves with EXIT_USAGE and one line, which names the file,
 * where it is none of these, or something in it is not. */
json_t *comparison_read(const char *file, bool errors);

/* In two steps: what is in the file, which leaves with EXIT_USAGE where that is no JSON; and the
 * reports in it, which takes it over. */
json_t *comparison_load(const char *file);
json_t *comparison_of_file(json_t *root, const char *file, bool errors);

/* Compares what comparison_read returned, or the like: where one of the two has several handlers
 * each with that of the same handler, where one has several interpreters of the same interpreter.
 */
struct comparison comparison_of(const json_t *before, const json_t *after, bool strict);

/* Prints all of it; `name` is what the earlier one is called. */
void comparison_print(FILE *file, const struct comparison *comparison, const char *name,
                      const struct options *options);

/* The same for a report in JSON.  A new reference. */
json_t *comparison_object(const struct comparison *comparison, const char *name);

void comparison_free(struct comparison *comparison);

#endif
