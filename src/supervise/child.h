/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One way for every child process: how it is forked, waited for, looked at meanwhile, and ended.
 */
#ifndef CONFORM_CHILD_H
#define CONFORM_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "model/record.h"

/* Once in each process that has children, before the first: whatever it inherited, SIGCHLD tells it
 * of their ends. */
void child_prepare(void);

/* Like fork(), with nothing left in stdio's buffers.  The child leads a process group of its own
 * where `own_group` says so, dies with this process, and neither blocks nor catches a signal that
 * this process does for its own sake; what interrupts this process in the meantime is not lost. */
pid_t child_fork(bool own_group);

/* In a process whose parent has ended: true where that made it a child of `parent`, with which it
 * dies from now on. */
bool child_is_adopted(pid_t parent);

/* Waits for the child, whose end goes to *status as waitpid tells it.  Every now and then, some
 * twenty times a second, asks `give_up`, if there is one; where that says so, kills the child and
 * its group.  1 where it came to that, 0 where the child ended by itself, -1 with errno set where
 * it cannot be waited for. */
int child_wait(pid_t pid, bool (*give_up)(void *data), void *data, int *status);

/* "SIGSEGV", or "signal 40" where it has no name. */
const char *child_signal_name(int number);

/* A handler can leave a process running in a group or session of its own.  Coordinator and workers
 * adopt such processes and end them. */

/* From now on a descendant whose parent has ended becomes a child of this process, or no more. */
void children_adopt(bool adopt);

/* Kills every child of this process and waits for it, and goes on until there are none but the
 * `count` at `keep`.  Does nothing on a kernel that does not tell a process its children. */
void children_end(const pid_t *keep, size_t count);

/* What a child that loads a handler shares with its parent. */
struct loaded {
    enum load_state state; /* LOAD_UNKNOWN until loading is over */
    char why[512];         /* a text that the handler can overwrite */
};

/* Prints one line and exits with the code for it if there is no handler to check.  `argument` is
 * what --handler was given. */
void loaded_or_leave(const char *argument, int state, const char *why);

#endif
