/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stopping a thread at one instruction of the subject, in this process and without a debugger.
 *
 * First a call is traced: single steps, by the processor's trap flag, say which instructions it
 * goes through; what libc, Python and this program do meanwhile runs at full speed.  Then a later
 * call is stopped at any of them by a breakpoint, which costs a thousandth of stepping there.
 *
 * Works on x86-64 Linux, where /proc/self/mem can be written and no debugger is attached.  One
 * thread at a time is traced or stopped, and breakpoints are SIGTRAPs: whoever blocks that signal
 * round a traced instruction is killed by it, so that this is for a process that may be lost.
 */
#ifndef CONFORM_BREAKPOINT_H
#define CONFORM_BREAKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Places where a call can be stopped. */
enum { MOST_POINTS = 512 };
struct points {
    uintptr_t at[MOST_POINTS];
    size_t count;
};

/* In the thread that is to be stopped: false where that cannot be done here. */
bool breakpoint_begin(void);

/* The next call of `function` by this thread adds the instructions that it goes through. */
void breakpoint_trace(uintptr_t function, struct points *points);

/* When this thread next comes to `point`, `pause` is called, in a signal handler. */
void breakpoint_set(uintptr_t point, void (*pause)(void));

/* The next call of `function` by this thread adds the instructions that it goes through until it
 * has gone through so many, and calls `pause` there, in a signal handler; not at all where it
 * returns before. */
void breakpoint_stop_behind(uintptr_t function, size_t instructions, struct points *points,
                            void (*pause)(void));

/* Where the last call was stopped, or 0. */
uintptr_t breakpoint_where(void);

/* The call is over: nothing stops any more. */
void breakpoint_clear(void);

/* "libmine.so+0x1139", as addr2line takes it.  Good until the next calls of text(). */
const char *breakpoint_name(uintptr_t point);

#endif
