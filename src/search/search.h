/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The search: histories of calls, one after the other, until one shows a defect or the time is
 * over; and that one cut short.
 */
#ifndef CONFORM_SEARCH_H
#define CONFORM_SEARCH_H

#include "search/generators.h"
#include "search/scenario.h"
#include "search/trial.h"

struct search_options {
    get_handler *get;       /* called in processes of trials */
    void *data;             /* for it */
    get_handler *get_plain; /* has libc's allocator, likewise */
    size_t alignment;       /* that the handler claims, or 0 */
    bool unjudged;          /* make the calls and nothing else */
    uint64_t seed;
    double seconds;    /* for finding; shrinking takes up to 30 */
    double hangs;      /* seconds in one call */
    size_t jobs;       /* processes that search at once, to MOST_SEARCHERS */
    size_t most_bytes; /* live */
    struct scenario_limits may;
    bool huge;  /* blocks of more than a hundred MiB, little of which is touched */
    bool stops; /* threads in the midst of a call: interleaved.c */
};

enum { MOST_SEARCHERS = 64 };

struct search_result {
    bool is_broken;         /* no process or no memory could be had; errno says why */
    uint64_t trials, calls; /* that were made */
    uint64_t ended;         /* of the trials, those that came to their end */
    uint64_t tuples;        /* different ones that were met */
    unsigned edges;         /* of size classes, that were learnt */
    double seconds;         /* that it took */
    double busy;            /* of these all processes together, in histories */

    bool has_found;
    struct found found;
    struct call_list list; /* that shows it, cut short; owned */
    size_t length_before;  /* steps, before it was cut */
    unsigned shown, tried; /* how often it does */
    bool plain_shows;      /* with libc's allocator it shows something as well: nobody is blamed */
};

/* What its trials have in common. */
struct trial search_trial(const struct search_options *options, struct trial_room *room);

void search_run(const struct search_options *options, struct search_result *result);
void search_result_free(struct search_result *result);

/* ---- shrink.c ----------------------------------------------------------------------------- */

/* Shrinks the list, which shows `found`, until nothing can be left out or the seconds are over.
 * `found` is then what the list has shown last. */
void shrink(const struct trial *trial, struct call_list *list, struct found *found, double seconds);

/* Shrinks what a search has found: fills in the result's list, which shows it, and how often it
 * does.  Takes up to half a minute.  A list that has not shown it again stays as long as it was.
 * Other lists are written to list->at, which has room for MOST_STEPS. */
void shrink_result(const struct search_options *options, struct trial_room *room,
                   const struct call_list *list, struct search_result *result);

#endif
