/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Making a list that shows a defect as short as there is time for.
 */
#ifndef CONFORM_SHRINK_H
#define CONFORM_SHRINK_H

#include "repro/attempt.h"

/* Tries a list, as attempt() does, which is one; `about` is what the caller gave shrink(). */
typedef struct attempt attempt_function(const void *about, const struct call_list *list);

/* Cuts the list, which shows what `seen` says, until it shows it with nothing left out, or the
 * seconds are over.  Returns what the last attempt with it has shown. */
struct attempt shrink(attempt_function *how, const void *about, struct call_list *list,
                      struct attempt seen, double seconds);

/* Goes on with one that cannot be cut any more step by step, where it is longer than `enough`:
 * leaves out blocks, and a few steps at once, at random, and makes sizes alike. */
struct attempt shrink_by_chance(attempt_function *how, const void *about, struct call_list *list,
                                struct attempt seen, size_t enough, double seconds);

#endif
