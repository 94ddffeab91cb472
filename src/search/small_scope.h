/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All short histories: of so many calls of the four functions, on few slots, with few sizes.  A
 * slot that is empty is as good as any other, and the first is taken; so none is there twice but
 * for its names.
 */
#ifndef CONFORM_SMALL_SCOPE_H
#define CONFORM_SMALL_SCOPE_H

#include <stdbool.h>

#include "repro/step.h"

enum { SMALL_SLOTS = 3, SMALL_SIZES = 4, MOST_SMALL_CALLS = 6 };

struct small_scope {
    unsigned calls; /* in each; begins with 1 */
    unsigned most;  /* of them */
    unsigned whole; /* of up to so many calls all were written */
    uint64_t size[SMALL_SIZES];
    unsigned part, parts;              /* one in so many is ours */
    unsigned choice[MOST_SMALL_CALLS]; /* of the next */
    uint64_t number;                   /* of the next */
    uint64_t written;                  /* so far */
    bool is_done;
};

/* Writes histories, the short ones first, each with the frees of what it leaves, as long as there
 * is room.  Returns how many steps; 0: none is left. */
size_t small_scope_write(struct small_scope *scope, struct step *steps, size_t room);

#endif
