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

#endif
