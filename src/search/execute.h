/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Doing the steps of a history with a handler, in this process, and judging each call.
 */
#ifndef CONFORM_EXECUTE_H
#define CONFORM_EXECUTE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/heap.h"
#include "repro/step.h"
#include "search/novelty.h"

enum execution_state {
    EXECUTION_NONE,
    EXECUTION_UNDER_WAY, /* found by whoever watches: it ended in the call that it was at */
    EXECUTION_PASSED,
    EXECUTION_VIOLATED,
    EXECUTION_NO_MEMORY, /* for our own tables: nothing is said */
};

/* What one process says of its steps, in memory that outlasts it.  It holds no pointer. */
struct execution {
    _Atomic int state; /* enum execution_state */
    _Atomic uint64_t calls;
    _Atomic uint64_t huge;  /* bytes that the call under way may touch, of a huge block; or 0 */
    _Atomic uint64_t pause; /* milliseconds for which it makes no call now; or 0 */
    _Atomic size_t at;      /* the step */
    uint32_t turn;          /* of a step that is done several times */
    int status;             /* of a process that was forked half-way: how it ended */
    struct heap_violation violation, warning;
};

/* The process that began, and those that it forked half-way. */
enum { MOST_FORKS = 4 };
struct executions {
    struct execution side[1 + MOST_FORKS];
};

struct history {
    const struct step *steps;
    size_t count;
    bool at_once;      /* its threads run at once, see concurrent.h, and not one after the other */
    bool in_turns;     /* that, but one at a time: see interleaved.h */
    struct step *told; /* the steps once more, where each STEP_STOP is told where; or NULL */
};

struct execute_options {
    struct heap_rules rules;
    uint32_t slots;          /* that the steps name, at the most */
    size_t most_bytes;       /* live; what is more is not asked for */
    bool huge;               /* but for blocks of which little is touched: STEPS_HUGE */
    bool may_refuse;         /* nothing is said of that, whatever is live */
    uint64_t until;          /* on the clock: then what is left is not done */
    struct novelty *novelty; /* what was met so far, or NULL */
};

/* Does the steps.  A step that makes a block where one is live, or frees where none is, does
 * nothing.  Contents are looked at before a block goes, and of all blocks at the end. */
void execute(const struct history *history, PyDataMem_Handler *handler,
             const struct execute_options *options, struct executions *executions);

/* To be registered by atexit() before the handler is loaded: its own such functions then come
 * first. A history with a STEP_AT_EXIT is done by execute() up to there, which then calls exit(0).
 */
void execute_at_exit(void);

#endif
