/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whether memory stops growing while the same work is done again and again.
 */
#ifndef CONFORM_LEAK_CHECK_H
#define CONFORM_LEAK_CHECK_H

#include <stddef.h>

/* Does `cycle(data)` many times, `cycles` at first, and twice as often in each phase that follows
 * until in one of them what is mapped and what is resident grow no more.  Caches and quarantines
 * have filled by then.  Where memory still grows in the last phase, or has grown by more than a
 * quarter of a gibibyte, and goes on at that pace in three phases more (seven on a busy machine),
 * it returns how much, in one line (good until the next calls of text()), else NULL.  There is a
 * pause before each of these, after which what is kept for some tenths of a second is given back.
 * A cycle that is lost altogether has to be worth a kilobyte, or nothing is seen.
 *
 * Where memory cannot be measured (memcheck, the sanitizers) some cycles are all. */
const char *growth_over(size_t cycles, void (*cycle)(void *data), void *data);

/* Fails where the cycle grows: "memory to stop growing while `what`".  Not where
 * `control`, the same but for what the property is about, grows as well: then it SKIPs. */
#define expect_no_growth(cycles, cycle, control, data, what)                                       \
    expect_no_growth_at(__LINE__, cycles, cycle, control, data, what)
void expect_no_growth_at(int line, size_t cycles, void (*cycle)(void *data),
                         void (*control)(void *data), void *data, const char *what);

#endif
