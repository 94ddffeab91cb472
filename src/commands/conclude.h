/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which properties there are, who answers for whom, and telling it.
 */
#ifndef CONFORM_CONCLUDE_H
#define CONFORM_CONCLUDE_H

#include "report/report.h"
#include "report/report_files.h"

/* Properties as they are on a board: the first one, which all others wait for, is at the front,
 * whether it was asked for or not. */
struct selection {
    const struct property **properties;
    size_t count;
    bool first_is_implied; /* it was not asked for */
};

/* The properties for which options_take() is true. */
struct selection selection_of(const struct options *options);

/* Attributes what a property did not fail by itself, and makes sure that nobody was let off. */
void conclude_settle(const struct selection *selection, struct board *board,
                     struct outcome *outcomes);

/* How many of them, at the front, are not in the report: the first where nobody asked for it and
 * there is nothing to tell of it. */
size_t conclude_hidden(const struct selection *selection, const struct outcome *first,
                       bool interrupted);

/* Leaves if the file that --baseline names is not one report. */
void conclude_check_baseline(const struct options *options);

/* Compares the run with --baseline, if there is one; `comparison` is the run's from then on. */
void conclude_compare(struct run *run, struct comparison *comparison);

/* Whether that is a terminal on which lines can be overwritten and colored. */
bool is_smart_terminal(int fd);

/* Prints the report, unless another takes its place.  False where stdout cannot be written. */
bool conclude_print(const struct run *run);

#endif
