/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads of a property, and making them meet inside the handler.
 */
#ifndef CONFORM_THREADS_H
#define CONFORM_THREADS_H

#include <stddef.h>

/* Runs `body(data[i])` in `count` threads and waits for all; `element` is the size of one datum.
 * SKIPs if many threads cannot be started. */
void in_threads(size_t count, void (*body)(void *), void *data, size_t element);

/* For 30 ms a timer (SIGRTMIN, SA_RESTART) stops this thread, number `number` of several, for some
 * ten microseconds again and again whenever it is inside a call into the handler.  Moves it to a
 * core of its own if there are enough.  On a busy machine threads would rarely meet otherwise. Does
 * nothing if is_instrumented(). */
void perturb_begin(size_t number);
void perturb_end(void);

#endif
