/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs a plan in several workers.
 */
#ifndef CONFORM_SCHEDULER_H
#define CONFORM_SCHEDULER_H

#include <sys/types.h>

#include "runner/worker.h"

struct one_worker {
    pid_t pid; /* 0: not running */
    struct worker_pipes pipes;
    uint64_t since; /* when it was started, or began the round */
    bool hung;      /* it was killed for that */
};

struct scheduler {
    struct plan *plan;
    size_t jobs;     /* workers at a time, at most MOST_WORKERS */
    size_t restarts; /* after deaths without a property, in all rounds on a handler */
    struct one_worker workers[WORKER_SLOTS]; /* number `jobs` runs the `fresh` queue */
};

/* Runs the plan once.  Returns false if a signal ended it: properties that had begun are
 * INCOMPLETE, and no worker is left.  Else workers with Python wait for another round. */
bool scheduler_run(struct scheduler *scheduler);

/* Ends the workers. */
void scheduler_end(struct scheduler *scheduler);

#endif
