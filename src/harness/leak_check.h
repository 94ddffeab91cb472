/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks that memory stops growing while the same work is repeated.
 */
#ifndef CONFORM_LEAK_CHECK_H
#define CONFORM_LEAK_CHECK_H

#include <stddef.h>

/* Runs `cycle(data)` in phases, `cycles` times in the first and twice as often in each further one,
 * until mapped and resident memory stop growing in one of them.  Returns NULL then.  If memory
 * still grows in the last phase, or has grown by 256 MiB, and keeps that pace in three more phases
 * (seven on a busy machine) with a pause before each measurement, returns how much it grew (valid
 * until the next calls of fmt()).  Finds leaks of a kilobyte per cycle and more.  Under memcheck
 * and the sanitizers runs some cycles only. */
const char *growth_over(size_t cycles, void (*cycle)(void *data), void *data);

/* Fails if the cycle grows: "memory to stop growing while `what`".  If `control`, which is the same
 * without what the property is about, grows as well, the failure is attributed elsewhere. */
#define expect_no_growth(cycles, cycle, control, data, what)                                       \
    expect_no_growth_at(__LINE__, cycles, cycle, control, data, what)
void expect_no_growth_at(int line, size_t cycles, void (*cycle)(void *data),
                         void (*control)(void *data), void *data, const char *what);

#endif
