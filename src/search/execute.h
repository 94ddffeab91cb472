/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Executes a list of calls with a handler, in this process, and checks each call by the heap model.
 * execute.c has the order of the steps, steps.c each step.  All three files are a part of every
 * reproducer (src/search/reproducer.c), where REPRODUCER is defined.
 */
#ifndef CONFORM_EXECUTE_H
#define CONFORM_EXECUTE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/step.h"
#include "heap/heap.h"
#ifndef REPRODUCER
#include "search/novelty.h"
#endif

enum execution_state {
    EXECUTION_NONE,
    EXECUTION_UNDER_WAY, /* found by whoever watches: it ended in the call that it was at */
    EXECUTION_PASSED,
    EXECUTION_VIOLATED,
    EXECUTION_NO_MEMORY, /* for our own tables: nothing is said */
};

/* What one process reports of its steps, in memory that outlasts it.  It has no pointer. */
struct execution {
    _Atomic int state; /* enum execution_state */
    _Atomic uint64_t calls;
    _Atomic uint64_t huge;  /* bytes that the call under way may touch, of a huge block; or 0 */
    _Atomic uint64_t pause; /* milliseconds for which it makes no call now; or 0 */
    _Atomic size_t at;      /* the step */
    int status;             /* of a process that was forked half-way: how it ended */
    struct heap_violation violation, warning;
};

/* The process that began, and those that it forked half-way. */
enum { MOST_FORKS = 4 };
struct executions {
    struct execution side[1 + MOST_FORKS];
    _Atomic unsigned turn; /* the side that makes calls, if they do so in turn */
};

struct execute_options {
    struct heap_rules rules;
    PyDataMem_Handler *(*getter)(const char **why); /* for STEP_ASK_GETTER; or NULL */
    void (*refuse)(size_t nth, enum refusal how);   /* for STEP_REFUSE; or NULL */
    void (*jump)(unsigned seconds); /* moves the clock in place of a long STEP_PAUSE; or NULL */
    uint32_t slots;                 /* that the steps name, at the most */
    size_t most_bytes;       /* live; what is more is not asked for; SIZE_MAX: all is asked for */
    bool huge;               /* but for blocks of which little is touched: STEPS_HUGE */
    bool may_refuse;         /* nothing is said of that, whatever is live */
    uint64_t until;          /* on the clock: then what is left is not done */
    size_t most_resident;    /* bytes of this process, or 0: beyond them there is no memory */
    double growth_seconds;   /* for a list of_growth */
    struct novelty *novelty; /* what was met so far, or NULL */
};

/* Does the steps.  A step that makes a block where one is live, or frees where none is, does
 * nothing.  Contents are looked at before a block goes, and of all blocks at the end. */
void execute(const struct call_list *list, PyDataMem_Handler *handler,
             const struct execute_options *options, struct executions *executions);

/* To be registered by atexit() before the handler is loaded: its own such functions then come
 * first. A list with a STEP_AT_EXIT is done by execute() up to there, which then calls exit(0).
 */
void execute_at_exit(void);

/* Leaves bytes in libc's heap, up to `each` blocks of each size, as any program has done before its
 * first array: what comes from there is not zero by chance. */
void execute_use_memory(size_t largest, size_t each);

/* ---- steps --------------------------------------------------------------------------------- */

/* From this size on a block is huge: little of it is touched.  So many bytes are live in huge
 * blocks, and less than another such block. */
enum { STEPS_HUGE = 1 << 27 };
#define STEPS_MOST_HUGE ((uint64_t)STEPS_HUGE << 5)

/* The state of whoever does steps: a process, or a thread of it. */
struct executing {
    const struct call_list *list;
    const PyDataMemAllocator *allocator;
    const struct execute_options *options;
    struct execution *execution;
    struct executions *all;
    struct novelty *novelty;
    struct heap heap;
    uint64_t numbers;    /* of blocks, so far */
    uint64_t huge_bytes; /* live, in huge blocks */
    uint64_t spent;      /* bytes of large blocks that were asked for, so far */
    uint64_t zeroed;     /* the same of huge ones that were to be zero */
    uintptr_t last;      /* what the last call returned */
    size_t from, to;     /* the steps that a thread has to do */
    struct rlimit room;  /* of the address space, before it was limited */
    pid_t children[MOST_FORKS];
    unsigned forks;
    size_t in_turn, left; /* calls until it is another process's turn; 0: they run at once */
    bool is_child;
    bool passes; /* so far */
};

/* False where something did not hold, or nothing more can be said: see e->heap. */
bool steps_do(struct executing *e, const struct step *step);

/* From now on no more than so many bytes can be mapped; 0: as many as before. */
void steps_limit(struct executing *e, size_t room);

/* Bytes of this process: all that are mapped, or those that are resident; 0 if unknown. */
size_t steps_bytes(bool resident);

/* Lets the other process make its calls, if they do so in turn. */
void steps_end_turn(struct executing *e);

#endif
