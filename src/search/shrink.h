/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shrinks a list of calls that shows a failure, by executing shorter and simpler ones.
 */
#ifndef CONFORM_SHRINK_H
#define CONFORM_SHRINK_H

#include "search/search.h"

/* Shrinks the list, which shows `found`, until nothing can be left out or the seconds are over.
 * `found` is then what the list has shown last. */
void shrink(const struct trial *trial, struct call_list *list, struct found *found, double seconds);

/* Shrinks what a search has found: fills in the result's list, which shows it, and how often it
 * does.  Takes up to half a minute.  A list that has not shown it again stays as long as it was.
 * Other lists are written to list->at, which has room for MOST_STEPS. */
void shrink_result(const struct search_options *options, struct trial_room *room,
                   const struct call_list *list, struct search_result *result);

#endif
