/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What workers.c and proof.c know of the threads of a job.
 *
 * Whoever includes this has included Python.h.
 */
#ifndef EMBED_DEMO_CREW_H
#define EMBED_DEMO_CREW_H

#include <pthread.h>
#include <stdbool.h>

#include "workers.h"

#include "arena.h"

struct worker {
    struct books books; /* the first, so that a handler's ctx is the worker as well */
    struct arena arena;
    struct crew *crew;
    int rank;
    pthread_t thread;
    unsigned long python_id; /* 0 before it begins, and after it ended */
    PyObject *result;        /* what the call returned; NULL where it raised */
    bool in_use;             /* NumPy may still call the handler */
};

/* The threads of one job.  It outlives them: arrays keep the handler that they were born with. */
struct crew {
    struct crew *next; /* the one before it in time */
    struct job job;    /* its objects are there while it runs */
    char name[24];
    int count;
    pthread_mutex_t lock; /* on the next three */
    pthread_cond_t changed;
    enum { GATE_SHUT, GATE_OPEN, GATE_GO_HOME } gate; /* before which threads wait for the others */
    int running;                                      /* threads that have not ended yet */
    PyObject *error[3]; /* the first exception: type, value, traceback; or NULL */
    bool interrupted;   /* by Ctrl-C */
    struct worker *workers[WORKERS_MOST];
};

/* The threads of the last job of that name, or NULL. */
struct crew *crew_find(const char *name);

#endif
