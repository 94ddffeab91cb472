/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Cutting short what a search has found.
 */
#ifndef CONFORM_CUT_SHORT_H
#define CONFORM_CUT_SHORT_H

#include "search/search.h"

/* A history as it was found. */
struct uncut {
    struct trial_room *room; /* shared with the processes of trials */
    struct step *steps; /* likewise, with room for MOST_STEPS; other histories are written there */
    size_t count;
    bool at_once, in_turns; /* by threads; and those one at a time */
};

/* Fills in the result's list, which shows what was found, and how often that shows; it takes up to
 * half a minute.  A list that has not shown it again stays as long as it was. */
void cut_short(const struct search_options *options, const struct uncut *uncut,
               struct search_result *result);

#endif
