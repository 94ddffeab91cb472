/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The flag of x86 by which string instructions go down instead of up.  It is clear at every call
 * and return, and what is compiled relies on it.
 */
#ifndef CONFORM_DIRECTION_FLAG_H
#define CONFORM_DIRECTION_FLAG_H

#include <stdbool.h>

enum {
#ifdef __x86_64__
    HAS_DIRECTION_FLAG = 1
#else
    HAS_DIRECTION_FLAG = 0
#endif
};

/* Whether it was set.  It is clear afterwards. */
static inline bool clear_direction_flag(void)
{
#ifdef __x86_64__
    enum { DIRECTION = 0x400 };
    bool was_set = (__builtin_ia32_readeflags_u64() & DIRECTION) != 0;
    if (was_set)
        __asm__ volatile("cld" ::: "cc", "memory");
    return was_set;
#else
    return false;
#endif
}

#endif
