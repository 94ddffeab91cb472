/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What --bench times.  The numbers of `work` and the layout of both structs are known in
 * conform_report/bench.py, which sends the tasks.
 */
#ifndef CONFORM_BENCH_H
#define CONFORM_BENCH_H

#include <stdint.h>

#include "nep49.h"

enum work {
    WORK_MALLOC, /* malloc, write the first and the last byte, free */
    WORK_CALLOC, /* the same with calloc */
    WORK_REALLOC,
    WORK_REPLAY,      /* a recorded program: that of `figure`, see profiles/ */
    WORK_LATENCY,     /* of single calls of malloc and free, among live blocks of many sizes */
    WORK_FOOTPRINT,   /* resident memory and page faults of the same blocks */
    WORK_LONG_REPLAY, /* the same of all recorded programs */
    WORK_NUMPY,       /* from here on: the functions of bench.py, in its order */
};

struct task {
    uint64_t work, size, threads, figure;
    uint64_t times;
};

struct answer {
    double wall, processor; /* seconds */
    double faults;          /* minor page faults */
    double figures[4];      /* results that are not times of the whole task */
    double refused;         /* 1 if the handler refused a request or NumPy raised an exception */
};

/* Makes the task known to bench.py.  Returns NULL, or what is wrong. */
const char *bench_prepare(void);

/* Does the task with the handler, which is installed in NumPy, and with the GIL. */
void bench_do(const struct task *task, PyDataMem_Handler *handler, struct answer *answer);

#endif
