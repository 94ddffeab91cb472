/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The end of a run: the comparison with --baseline, and printing the report.
 */
#ifndef CONFORM_FINISH_H
#define CONFORM_FINISH_H

#include "report/report.h"

/* Exits if the file that --baseline names is not one report. */
void check_baseline(const struct options *options);

/* Compares the run with --baseline, if there is one. */
void compare_with_baseline(struct run *run);

/* True if that is a terminal on which lines can be overwritten and colored. */
bool is_smart_terminal(int fd);

/* Prints the report unless another format goes to stdout.  False if stdout cannot be written. */
bool print_report(const struct run *run);

#endif
