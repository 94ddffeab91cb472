/* SPDX-License-Identifier: BSD-3-Clause
 *
 * As interpose.c: functions that stand before libc's own.
 */
#include "harness/clock_jump.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static atomic_uint ahead; /* seconds */
static int (*libcs)(clockid_t, struct timespec *);

__attribute__((constructor)) static void find_libcs(void)
{
    *(void **)&libcs = dlsym(RTLD_NEXT, "clock_gettime");
}

void clock_jump(unsigned seconds)
{
    atomic_fetch_add(&ahead, seconds);
}

/* Not the clocks of processor time. */
static int clock_of_jump(clockid_t clock, struct timespec *t)
{
    int result = libcs != NULL ? libcs(clock, t) : (int)syscall(SYS_clock_gettime, clock, t);
    if (result == 0 && clock >= 0 && clock != CLOCK_PROCESS_CPUTIME_ID &&
        clock != CLOCK_THREAD_CPUTIME_ID)
        t->tv_sec += atomic_load_explicit(&ahead, memory_order_relaxed);
    return result;
}

#pragma GCC visibility push(default)

int clock_gettime(clockid_t clock, struct timespec *t)
{
    return clock_of_jump(clock, t);
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec t;
    (void)zone;
    int result = clock_of_jump(CLOCK_REALTIME, &t);
    *now = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
    return result;
}

time_t time(time_t *seconds)
{
    struct timespec t;
    clock_of_jump(CLOCK_REALTIME_COARSE, &t);
    if (seconds != NULL)
        *seconds = t.tv_sec;
    return t.tv_sec;
}

#pragma GCC visibility pop
