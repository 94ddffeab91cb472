/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The flag of x86 by which string instructions go down instead of up.  It is clear at every call
 * and return, and what is compiled relies on it.
 */
#ifndef CONFORM_DIRECTION_FLAG_H
#define CONFORM_DIRECTION_FLAG_H

#include <stdbool.h>

#if defined(__x86_64__)
#define READ_FLAGS __builtin_ia32_readeflags_u64
#elif defined(__i386__)
#define READ_FLAGS __builtin_ia32_readeflags_u32
#endif

enum {
#ifdef READ_FLAGS
    HAS_DIRECTION_FLAG = 1
#else
    HAS_DIRECTION_FLAG = 0
#endif
};

/* Whether it was set.  It is clear afterwards. */
static inline bool clear_direction_flag(void)
{
#ifdef READ_FLAGS
    enum { DIRECTION = 0x400 };
    bool was_set = (READ_FLAGS() & DIRECTION) != 0;
    if (was_set)
        __asm__ volatile("cld" ::: "cc", "memory");
    return was_set;
#else
    return false;
#endif
}

#undef READ_FLAGS

#endif
