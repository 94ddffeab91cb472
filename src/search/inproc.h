/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A small search in this process, one history after the other: for the battery, whose properties
 * have a process each.
 */
#ifndef CONFORM_INPROC_H
#define CONFORM_INPROC_H

#include "search/execute.h"

struct inproc_options {
    size_t alignment; /* that is claimed, or 0 */
    uint64_t seed;
    double seconds;    /* of processor time, and four times that by the clock */
    size_t most_steps; /* in all */
    bool threads;      /* new ones may make calls, too */
};

struct inproc_result {
    enum execution_state state; /* EXECUTION_PASSED where nothing is wrong */
    struct heap_violation violation;
    struct step step; /* where that was seen; its kind may be that of no call */
    uint64_t histories, calls;
};

/* Blocks that are live when something does not hold stay so. */
void inproc_search(PyDataMem_Handler *handler, const struct inproc_options *options,
                   struct inproc_result *result);

#endif
