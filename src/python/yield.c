/* SPDX-License-Identifier: BSD-3-Clause
 *
 * As interpose.c: a function that stands before libc's own.
 *
 * A Python without a GIL yields the processor 40 times before it waits for a lock, and where that
 * is its own thread's, as the lock of a file that is flushed as it is closed, nobody else will give
 * it back: 1800 times to start 3.13, each of them milliseconds on a busy machine.
 */
#include <sched.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma GCC visibility push(default)

int sched_yield(void)
{
    return __libc_single_threaded ? 0 : (int)syscall(SYS_sched_yield);
}

#pragma GCC visibility pop
