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

/* Compares what reports_read returned, or the like: where one of the two has several handlers
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
