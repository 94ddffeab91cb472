/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stops a thread at one instruction of the handler, without a debugger.
 *
 * A first call stops after a number of single steps (the trap flag), which collect its
 * instructions; libc, Python and this program run at full speed meanwhile.  A later call stops at
 * one of them by a breakpoint, which costs a thousandth of stepping there.
 *
 * Works on x86 Linux if /proc/self/mem can be written and no debugger is attached, for one thread
 * at a time.  Code that blocks SIGTRAP around such an instruction is killed by it, so use it only
 * in a process that may be lost.
 */
#ifndef CONFORM_BREAKPOINT_H
#define CONFORM_BREAKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/step.h"
#include "nep49.h"

/* Instructions at which a call can be stopped. */
enum { MOST_POINTS = 512 };
struct points {
    uintptr_t at[MOST_POINTS];
    size_t count;
};

/* Returns where the function of a handler begins. */
uintptr_t breakpoint_function(const PyDataMemAllocator *a, enum step_kind function);

/* In the thread that is to be stopped; false if that is not possible. */
bool breakpoint_begin(void);

/* Calls `pause`, in a signal handler, when this thread next reaches `point`. */
void breakpoint_set(uintptr_t point, void (*pause)(void));

/* Steps through the next call of `function` by this thread, adds its instructions to `points`, and
 * calls `pause` after that many of them. */
void breakpoint_stop_behind(uintptr_t function, size_t instructions, struct points *points,
                            void (*pause)(void));

/* Where the latest call was stopped, or 0. */
uintptr_t breakpoint_where(void);

/* After the call: nothing stops any more. */
void breakpoint_clear(void);

/* Returns "libmine.so+0x1139", as addr2line takes it; valid until the next calls of fmt(). */
const char *breakpoint_name(uintptr_t point);

#endif
