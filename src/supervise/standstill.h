/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whether a process that gets nowhere hangs, or others have the machine meanwhile.
 */
#ifndef CONFORM_STANDSTILL_H
#define CONFORM_STANDSTILL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* All zero is one that has not begun. */
struct standstill {
    uint64_t since;  /* clock_now() when it was last seen to get on; 0 where it was not yet */
    double used;     /* seconds of processor time that it had had by then */
    unsigned asleep; /* how often it was late since, and no thread of it was to run */
};

/* It has got on: from here its standstill begins anew. */
void standstill_begin(struct standstill *standstill, pid_t pid);

/* Whether `pid` has been at a standstill for more than `limit` seconds by the clock, and that is
 * its own doing: meanwhile it had a processor for half as long, or none of its threads was to run,
 * ten times that this was asked.  To be asked some twenty times a second. */
bool standstill_lasts(struct standstill *standstill, pid_t pid, double limit);

#endif
