/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How all child processes are forked, waited for and ended, and how a load in one is reported.
 */
#ifndef CONFORM_CHILD_H
#define CONFORM_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "model/record.h"

/* Call once in each process that has children, before the first: SIGCHLD reports their ends. */
void child_prepare(void);

/* Like fork(), with stdio flushed.  The child dies with this process, gets no signal handlers of
 * supervise/, and leads a process group if `own_group`.  No signal to this process is lost. */
pid_t child_fork(bool own_group);

/* In a process whose parent has ended: true if it is now a child of `parent`, with which it dies.
 */
bool child_is_adopted(pid_t parent);

/* Waits for the child and stores its status.  Asks `give_up`, if not NULL, twenty times a second;
 * if it returns true, kills the child and its group.  Returns 1 if killed, 0 if the child ended by
 * itself, -1 with errno set if it cannot be waited for. */
int child_wait(pid_t pid, bool (*give_up)(void *data), void *data, int *status);

/* "SIGSEGV", or "signal 40" if it has no name. */
const char *child_signal_name(int number);

/* Coordinator and workers adopt and end processes that a handler leaves in other groups or
 * sessions. children_adopt() turns that on or off. */
void children_adopt(bool adopt);

/* Kills all children of this process except the `count` at `keep`, and waits for them.  Does
 * nothing on a kernel that does not list children. */
void children_end(const pid_t *keep, size_t count);

/* What a child that loads a handler shares with its parent. */
struct loaded {
    enum load_state state; /* LOAD_UNKNOWN until loading is over */
    char why[512];         /* a text that the handler can overwrite */
};

/* Prints one line and exits with the code for it if there is no handler to check.  `argument` is
 * the value of --handler. */
void loaded_or_leave(const char *argument, int state, const char *why);

#endif
