/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a shard found, as it is in its JSON beside the verdicts: each record as the property left
 * it, before any was attributed to another.  Who answers for whom is known once all shards are
 * there, and then it is settled as in one run.
 */
#ifndef CONFORM_EVIDENCE_H
#define CONFORM_EVIDENCE_H

#include <jansson.h>

#include "report/report.h"

/* All that the shard ran: the first property too, asked for or not. */
struct evidence {
    const struct property *const *properties;
    const struct record **records;
    size_t count;
};

/* The member "shard" of the run's report.  A new reference. */
json_t *evidence_object(const struct run *run);

/* The report of a shard, and whose it is. */
struct part {
    const char *file;
    const json_t *report, *shard;
    size_t number, of;
};

/* Reads the file.  Leaves with EXIT_USAGE and one line, which names it, where it is no whole report
 * of a shard that this version of the program has written. */
struct part part_read(const char *file);

/* In which way the two are not of one run, in words (good until the next calls of text()); or
 * NULL. */
const char *part_differs(const struct part *part, const struct part *other);

/* What the run was asked for, into `options`, which has the rest already. */
void part_options(const struct part *part, struct options *options);

/* What the list of --expect had, or NULL. */
const struct expectations *part_expectations(const struct part *part);

/* The handler and what it was run in; `place` and `environment` are empty before, and the words in
 * `run` go with the part. */
void part_surroundings(const struct part *part, struct subject_place *place,
                       struct environment *environment, struct run *run);
void part_load(const struct part *part, struct load *load);

/* The record of that property, and into *reproduce the command that shows it again, or NULL. Leaves
 * with EXIT_USAGE where there is none, or one that no property leaves. */
void part_record(const struct part *part, const char *id, struct record *record,
                 const char **reproduce);

/* How many records it has. */
size_t part_count(const struct part *part);

#endif
