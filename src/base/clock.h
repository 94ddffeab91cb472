/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The monotonic clock, and how far to trust it.
 */
#ifndef CONFORM_CLOCK_H
#define CONFORM_CLOCK_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

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

#ifndef REPRODUCER
/* How much slower everything is on a machine that has more to run than it has cores: 1 and more. */
static inline double clock_slowness(void)
{
    double load;
    static long cores; /* it is asked for at each property, and is a file to be read */
    if (cores == 0)
        cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (getloadavg(&load, 1) != 1 || cores < 1 || load < (double)cores)
        return 1;
    return load / (double)cores;
}
#endif

#endif
