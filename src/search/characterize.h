/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Characterization: which levels of factors reproduce a violation that a row has shown.  Rows with
 * these levels run alone, in a process that loads the handler anew.
 */
#ifndef CONFORM_CHARACTERIZE_H
#define CONFORM_CHARACTERIZE_H

#include "search/rows.h"
#include "search/trial.h"

/* Conditions such as "size >= 72, and made by = calloc(n, k)"; or "". */
struct conditions {
    const char *between; /* two of them */
    char words[1024];
};

struct characterization {
    struct conditions when;     /* rows that meet all of them show it each time */
    struct conditions not_when; /* rows never show it that meet one of them and else all above */
};

/* False if rows with the levels of this one do not show it alone each time, or if the seconds are
 * over before that is known. */
bool characterize(const struct trial *trial, const struct found_row *row, double seconds,
                  struct characterization *result);

#endif
