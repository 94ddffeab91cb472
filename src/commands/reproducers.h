/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --repro: for each failure about the handler a C file of its own that shows it.
 */
#ifndef CONFORM_REPRODUCERS_H
#define CONFORM_REPRODUCERS_H

#include "report/report.h"
#include "runner/worker.h"

/* Before anything runs: makes the folder, or leaves with EXIT_USAGE. */
void reproducers_prepare(const struct options *options);

/* Tries each failure of the run again, and fills in run->reproducers.  Leaves with
 * EXIT_HARNESS_BROKE where a file cannot be written. */
void reproducers_write(struct run *run, const struct plan *plan);

#endif
