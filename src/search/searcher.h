/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One of the processes that search: it makes histories up and tries them, until one shows a defect
 * or the time is over.
 */
#ifndef CONFORM_SEARCHER_H
#define CONFORM_SEARCHER_H

#include "search/search.h"

/* What a searcher tells, in memory that is shared. */
struct search_slot {
    uint64_t trials, ended, calls, small;
    unsigned small_whole;
    double busy; /* seconds, in histories */
    int broken;  /* errno, or 0 */
    int has_found;
    struct found found;
    size_t count; /* of the steps that show it */
    int at_once;  /* 1: by threads at once */
    int in_turns; /* 1: by those, but one at a time */
    struct trial_room room;
    struct step steps[MOST_STEPS];
};

struct search_shared {
    struct novelty novelty;
    _Atomic int is_over; /* 1: somebody has found something, or whoever waits wants an end */
    struct search_slot slots[];
};

/* Calls, whose histories are for every search of so many seconds. */
unsigned searcher_small_calls(double seconds);

/* Searches in the slot of that number until clock_now() is past `until`, and for what is left of
 * the histories of few calls a minute more.  None of these loads the handler: that is for the
 * process of each trial. */
_Noreturn void searcher_be(const struct search_options *options, struct search_shared *shared,
                           unsigned number, uint64_t until);

#endif
