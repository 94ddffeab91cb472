/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The threads of a history, all at once.  Each does its own steps in order, and a step waits until
 * those of its block that stand before it are done: which of two threads comes first is left to
 * the machine wherever it does not matter to a correct handler.
 */
#ifndef CONFORM_CONCURRENT_H
#define CONFORM_CONCURRENT_H

#include <pthread.h>

#include "search/execute.h"

enum { MOST_AT_ONCE = 300 };

/* A thread that does steps of a list, here and in interleaved.c. */
struct list_thread {
    struct executing *first; /* of the process */
    struct executing e;
    struct execution execution; /* of its own, for its calls */
    uint64_t told;              /* of these, the first one */
    pthread_t id;
    unsigned number;
};

unsigned thread_count(const struct call_list *list);
/* Starts the thread of that number, which does `run`, whose argument is `thread`.  False: there is
 * no thread to be had. */
bool thread_begin(struct list_thread *thread, struct executing *first, unsigned number,
                  void *(*run)(void *));
/* Adds its calls since the last time to those of `first`: also that somebody gets on, however slow
 * the handler is, and however many threads wait. */
void thread_tell(struct list_thread *thread);
/* Reports what did not hold in that step, or that there is no memory: the first report counts. */
void thread_report(struct list_thread *thread, size_t at);

/* Does all steps but those that are about no block.  What did not hold is in the heap of `first`,
 * as is that there was no thread to be had. */
void concurrent_do(struct executing *first);

/* Gives the steps of a history for one thread to so many threads: a block belongs to the one that
 * makes it, and is sometimes resized or freed by another. */
void concurrent_assign(struct step *steps, size_t count, unsigned threads, struct random *random);

/* Gives each of so many threads all of them, so many times, with slots of its own: none waits for
 * another but at the end.  There is room for as many.  Returns how many there are then. */
size_t concurrent_multiply(struct step *steps, size_t count, uint32_t slots, unsigned threads,
                           unsigned times);

/* ---- one at a time ------------------------------------------------------------------------- */

enum { MOST_IN_TURNS = 8 }; /* threads */

/* Does the steps in the order of the list, each by its own thread, which lives as long as the list.
 * A STEP_STOP stops the next call of its thread at some instruction, and what the others do until
 * that thread's next step is done meanwhile.  If a call cannot be stopped, none is. */
void interleaved_do(struct executing *first);

#endif
