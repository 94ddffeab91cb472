/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Three drops fall into a square pool.  A script says what the water does; the host knows.
 *
 * Whoever includes this has included Python.h.
 */
#ifndef EMBED_DEMO_WAVE_H
#define EMBED_DEMO_WAVE_H

#include <stddef.h>

enum { WAVE_MODES = 96 };

struct wave_job {
    PyObject *function;  /* of the script, see host.wave */
    PyObject *abort;     /* see struct job, or NULL */
    int count;           /* threads */
    int points;          /* in a row of the grid */
    const char *picture; /* where to, or NULL */
};

/* Runs the function in as many threads, each with an arena of its own, and claims that the surface
 * they hand in is the true one; writes the picture.  0, or -1 with an exception set. */
int wave_run(const struct wave_job *job);

#endif
