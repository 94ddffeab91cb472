/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions that glibc 2.28 does not have, for tools/wheel, which includes this before everything
 * else.  It includes no header of libc, because some files choose features first.
 */
#ifndef OLDER_GLIBC_H
#define OLDER_GLIBC_H

#include <asm/unistd.h>

long syscall(long number, ...);

static inline int older_close_range(unsigned first, unsigned last, int flags)
{
    return (int)syscall(__NR_close_range, first, last, flags);
}

static inline int older_gettid(void)
{
    return (int)syscall(__NR_gettid);
}

static inline const char *older_sigabbrev_np(int number)
{
    static const char *const names[] = {
        0,      "HUP",  "INT",  "QUIT", "ILL",    "TRAP",   "ABRT",  "BUS",  "FPE",  "KILL", "USR1",
        "SEGV", "USR2", "PIPE", "ALRM", "TERM",   "STKFLT", "CHLD",  "CONT", "STOP", "TSTP", "TTIN",
        "TTOU", "URG",  "XCPU", "XFSZ", "VTALRM", "PROF",   "WINCH", "POLL", "PWR",  "SYS",
    };
    int count = sizeof names / sizeof *names;
    return number > 0 && number < count ? names[number] : 0;
}

#define close_range older_close_range
#define gettid older_gettid
#define sigabbrev_np older_sigabbrev_np

#endif
