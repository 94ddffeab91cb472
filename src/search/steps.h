/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One step of a history: what execute.c and concurrent.c do one after the other.
 */
#ifndef CONFORM_STEPS_H
#define CONFORM_STEPS_H

#include <sys/resource.h>
#include <sys/types.h>

#include "search/execute.h"

/* From this size on a block is huge: little of it is touched.  So many bytes are live in huge
 * blocks, and less than another such block. */
enum { STEPS_HUGE = 1 << 27 };
#define STEPS_MOST_HUGE ((uint64_t)STEPS_HUGE << 5)

/* The state of whoever does steps: a process, or a thread of it. */
struct executing {
    const struct history *history;
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
    bool is_child;
    bool passes; /* so far */
};

/* False where something did not hold, or nothing more can be said: see e->heap. */
bool steps_do(struct executing *e, const struct step *step);

/* From now on no more than so many bytes can be mapped; 0: as many as before. */
void steps_limit(struct executing *e, size_t room);

#endif
