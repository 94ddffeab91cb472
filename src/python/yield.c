/* SPDX-License-Identifier: BSD-3-Clause
 *
 * As interpose.c: a function that stands before libc's own.
 *
 * A Python without a GIL yields the processor 40 times before it waits for a lock, and where that
 * is its own thread's, as the lock of a file that is flushed as it is closed, nobody else will give
 * it back: 1800 times to start 3.13, each of them milliseconds on a busy machine.
 */
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma GCC visibility push(default)

/* Since glibc 2.32; before that, each call goes to the kernel. */
extern char __libc_single_threaded __attribute__((weak));

int sched_yield(void)
{
    bool alone = &__libc_single_threaded != NULL && __libc_single_threaded;
    return alone ? 0 : (int)syscall(SYS_sched_yield);
}

#pragma GCC visibility pop
