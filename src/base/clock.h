/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The monotonic clock.
 */
#ifndef CONFORM_CLOCK_H
#define CONFORM_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since some point in the past. */
static inline uint64_t clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Seconds from then until now. */
static inline double clock_since(uint64_t then)
{
    return (double)(clock_now() - then) / 1e9;
}

#endif
