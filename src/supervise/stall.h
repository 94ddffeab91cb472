/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tells a process that hangs from one that waits for a processor on a busy machine.
 */
#ifndef CONFORM_STALL_H
#define CONFORM_STALL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* All zero before the first progress. */
struct stall {
    uint64_t since;  /* clock_now() of the last progress, or 0 */
    double used;     /* processor seconds of the process at that time */
    unsigned asleep; /* number of checks since then that found it late and no thread runnable */
};

/* Records progress. */
void stall_begin(struct stall *stall, pid_t pid);

/* True if `pid` has made no progress for more than `limit` seconds of the clock and hangs: it used
 * a processor for half of that time, or ten checks found none of its threads runnable.  Call it
 * some twenty times a second. */
bool stall_lasts(struct stall *stall, pid_t pid, double limit);

#endif
