/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The threads of a history, all at once.  Each does its own steps in order, and a step waits until
 * those of its block that stand before it are done: which of two threads comes first is left to
 * the machine wherever it does not matter to a correct handler.
 */
#ifndef CONFORM_CONCURRENT_H
#define CONFORM_CONCURRENT_H

#include "search/steps.h"

enum { MOST_HANDS = 256 };

/* Does all steps but those that are about no block.  What did not hold is in the heap of `first`,
 * as is that there was no thread to be had. */
void concurrent_do(struct executing *first);

/* Gives the steps of a history for one thread to so many threads: a block belongs to the one that
 * makes it, and is sometimes resized or freed by another. */
void concurrent_assign(struct step *steps, size_t count, unsigned threads, struct random *random);

/* Gives each of so many threads all of them, so many times, with slots of its own: none waits for
 * another.  There is room for as many.  Returns how many there are then. */
size_t concurrent_multiply(struct step *steps, size_t count, uint32_t slots, unsigned threads,
                           unsigned times);

#endif
