/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Running a plan in several workers at once.
 */
#ifndef CONFORM_SCHEDULER_H
#define CONFORM_SCHEDULER_H

#include <sys/types.h>

#include "runner/worker.h"

struct one_worker {
    pid_t pid; /* 0: not running */
    struct worker_pipes pipes;
    uint64_t since; /* when it was started, or began the round */
    bool hung;      /* it has been killed for that */
};

struct scheduler {
    struct plan *plan;
    size_t jobs;     /* workers at a time, at most MOST_WORKERS */
    size_t restarts; /* of those that died with nothing in hand, in all rounds on a handler */
    struct one_worker workers[WORKER_SLOTS]; /* number `jobs` is for the fresh one */
};

/* Runs the plan once.  False where a signal has ended it: what had begun is INCOMPLETE then, and no
 * worker is left.  Else those in which Python runs stay, at rest, for another round. */
bool scheduler_run(struct scheduler *scheduler);

/* Ends them. */
void scheduler_end(struct scheduler *scheduler);

#endif
