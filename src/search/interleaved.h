/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The threads of a history, one at a time: steps are done in the order of the list, each by its own
 * thread, which lives as long as the history.  A STEP_STOP stops the next call of its thread at
 * some instruction, and what the others do until that thread's next step is done meanwhile.
 */
#ifndef CONFORM_INTERLEAVED_H
#define CONFORM_INTERLEAVED_H

#include "search/execute.h"
#include "search/writer.h"

enum { MOST_IN_TURNS = 8 }; /* threads */

/* Does all steps but those that are about no block.  What did not hold is in the heap of `first`,
 * as is that there was no thread to be had.  Where a call cannot be stopped none is. */
void interleaved_do(struct executing *first);

/* Writes a history of two threads, the first of which is stopped again and again.  The writer has
 * begun. */
void interleaved_write(struct writer *writer);

#endif
