/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads of a property.
 */
#ifndef CONFORM_THREADS_H
#define CONFORM_THREADS_H

#include <stddef.h>

/* Runs `body(data[i])` in `count` threads and waits for all; `element` is the size of one.  SKIPs
 * where so many cannot be started, for more than a few. */
void in_threads(size_t count, void (*body)(void *), void *data, size_t element);

/* The calling thread, number `number` of several, moves to a core of its own as far as there are
 * enough, and is stopped for some ten microseconds again and again, at moments that it does not
 * choose, whenever a timer finds it inside a call into the subject.  That goes on for thirty
 * milliseconds.  The timer's signal is SIGRTMIN, with SA_RESTART.  Does nothing under memcheck and
 * the sanitizers. */
void perturb_begin(size_t number);

/* No more of that. */
void perturb_end(void);

#endif
