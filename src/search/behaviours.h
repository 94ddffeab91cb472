/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What programs do that shows how a heap is broken: each behaviour adds its steps to a history,
 * and histories are several of them, one after the other and on top of what the others left.
 */
#ifndef CONFORM_BEHAVIOURS_H
#define CONFORM_BEHAVIOURS_H

#include "search/writer.h"

struct behaviour_options {
    bool threads, forks, limits, huge, exits;
    bool is_brief;       /* nothing by the hundred thousand, and no pauses */
    const size_t *sizes; /* that are to be asked for; NULL: those of the size dictionary */
    size_t size_count;
};

/* Writes a history.  It is the same for the same state of writer->random, size dictionary and room.
 */
void behaviours_write(struct writer *writer, const struct behaviour_options *options);

#endif
