/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks that what a process has of memory, mappings, descriptors and threads stops growing while
 * the same work is repeated.
 */
#ifndef CONFORM_GROWTH_H
#define CONFORM_GROWTH_H

#include <stddef.h>

/* What is measured; growth.c has a table with the limits of each. */
enum measure {
    MAPPED_BYTES,
    RESIDENT_BYTES,
    MAPPINGS,
    DESCRIPTORS,
    THREADS,
    LIBC_BLOCKS, /* that the handler holds, and bytes: if interpose_watch() was called */
    LIBC_BYTES,
    MEASURES
};

size_t measure_now(enum measure measure);

/* "descriptors", "bytes mapped" and so on. */
const char *measure_name(enum measure measure);

/* Runs `cycle(data)` in phases, `cycles` times in the first and twice as often in each further one,
 * until in one of them memory does not grow.  Returns NULL then.  If it still grows in the last
 * phase, or has grown by more than a cache may have, and keeps that pace in three more phases
 * (seven on a busy machine) with a pause before each measurement, returns how much it grew (valid
 * until the next calls of fmt()).  Finds leaks of a kilobyte per cycle and more.  Under memcheck
 * and the sanitizers runs some cycles only. */
const char *growth_over(size_t cycles, void (*cycle)(void *data), void *data);

/* Fails if memory grows: "memory to stop growing while `what`".  If `control`, which is the same
 * without what the property is about, grows as well, the failure is attributed elsewhere. */
#define expect_no_growth(cycles, cycle, control, data, what)                                       \
    expect_no_growth_at(__LINE__, MAPPINGS, cycles, cycle, control, data, what)

/* The same of all measures before `end`.  Memory is what the running property is about, unless it
 * answers for the growth of another measure; what else grows is reported by the property that
 * answers for it. */
void expect_no_growth_at(int line, enum measure end, size_t cycles, void (*cycle)(void *data),
                         void (*control)(void *data), void *data, const char *what);

#endif
