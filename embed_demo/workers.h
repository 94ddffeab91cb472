/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads of the host that run Python, each with an arena, a handler and books of its own.
 *
 * Whoever includes this has included Python.h.  All but workers_begin, workers_end and
 * workers_interrupted_twice is called with the GIL held.
 */
#ifndef EMBED_DEMO_WORKERS_H
#define EMBED_DEMO_WORKERS_H

#include <stddef.h>

#include "memory.h" /* before books.h, which then takes the struct of a handler from NumPy */

#include "books.h"

enum { WORKERS_MOST = 64 };

/* Where arenas come from from now on. */
void workers_begin(const PyDataMemAllocator *below);

struct job {
    const char *name;       /* of the part that it does */
    int count;              /* threads, 1 to WORKERS_MOST */
    size_t room;            /* bytes of each arena */
    PyObject *function;     /* called by each thread as function(rank, count, *arguments) */
    PyObject *arguments;    /* a tuple */
    PyObject *abort;        /* called as abort() where the threads are to end early; or NULL */
    const double *progress; /* from 0 to 1, one for each thread, written by it; or NULL */
};

/* Runs the job to its end and returns a list of what the calls returned, by rank.  Meanwhile others
 * can have the GIL.  Where a call raised, returns NULL with the first exception of all that were
 * raised; and so after a Ctrl-C.  Threads that wait for each other have to be told of either: that
 * is what `abort` is for.  Where there is none, each thread hears of a Ctrl-C as a
 * KeyboardInterrupt, and of another's exception nothing. */
PyObject *workers_run(const struct job *job);

/* Claims, with a line for each of the two: every block that the threads of the last job named
 * `name` were ever given lay in the arena of the thread it was for; and each array among `results`
 * (a list by rank, of arrays or lists of arrays) owns a block that the books of that thread know,
 * with its size.  0, or -1 with an exception set where `results` is something else. */
int workers_prove(const char *name, PyObject *results);

/* The books of this thread's handler: those of the worker that it is, or else `otherwise`. */
struct books *workers_books(struct books *otherwise);

/* How many arenas are still in use, because an array of theirs is alive. */
int workers_in_use(void);

/* After the last table was printed: frees what nobody uses any more. */
void workers_end(void);

#endif
