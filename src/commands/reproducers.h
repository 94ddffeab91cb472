/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --repro: for each failure a C file that shows it.
 */
#ifndef CONFORM_REPRODUCERS_H
#define CONFORM_REPRODUCERS_H

#include "report/report.h"
#include "runner/worker.h"
#include "search/trial.h"

/* Before anything runs: makes the folder, or leaves with EXIT_USAGE. */
void reproducers_prepare(const struct options *options);

/* Tries each failure of the run again, and fills in run->reproducers.  Leaves with
 * EXIT_HARNESS_BROKE where a file cannot be written. */
void reproducers_write(struct run *run, const struct plan *plan);

/* Writes the file that shows it to the folder of --repro and returns its name (owned).  `list` is
 * tidied, `alignment` what the handler claims. */
char *reproducer_write(const struct options *options, const struct subject_place *place,
                       bool is_getter, size_t alignment, const struct property *property,
                       const struct call_list *list, const struct found *found);

#endif
