/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --repro: for each failure a file of its own that shows it, in C, or in Python where that is what
 * it is about.
 */
#ifndef CONFORM_REPRODUCERS_H
#define CONFORM_REPRODUCERS_H

#include "report/report.h"
#include "repro/attempt.h"
#include "runner/worker.h"

/* Before anything runs: makes the folder, or leaves with EXIT_USAGE. */
void reproducers_prepare(const struct options *options);

/* Tries each failure of the run again, and fills in run->reproducers.  Leaves with
 * EXIT_HARNESS_BROKE where a file cannot be written. */
void reproducers_write(struct run *run, const struct plan *plan);

/* What attempts on that handler are about, and how its object hands it out.  NULL, or why there
 * can be none. */
const char *reproducer_tried(const struct subject_place *place, struct tried *tried,
                             struct entry *entry);

#endif
