/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Child processes of a property.
 */
#ifndef CONFORM_PROCESS_H
#define CONFORM_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Runs `body` in a child process and waits for it.  If it fails, skips or crashes, that is this
 * property's verdict; if it passes or returns, this returns. */
void in_child(void (*body)(void *data), void *data);

/* Like in_child, but returns false if the child dies of that signal. */
bool in_child_unless(int killed_by, void (*body)(void *data), void *data);

/* Like in_child, but ends a child that takes longer or uses more memory than this process by more
 * than `bytes`.  That, or a crash, has no consequence; a failure before it has. */
void in_child_within(double seconds, size_t bytes, void (*body)(void *data), void *data);

/* in_child in two parts, for a parent that works meanwhile: one child at a time. */
struct child {
    pid_t pid;
    int done;
};
struct child start_child(void (*body)(void *data), void *data);
void await_child(struct child child);

/* Like in_child, but the child ends by exit(), with the handler's atexit functions and
 * destructors. */
void in_program(void (*body)(void *data), void *data);

/* Runs `body` in a child process and returns true if it returned.  Nothing in it decides the
 * verdict.  The child of program_survives() ends by exit(). */
bool child_survives(void (*body)(void *data), void *data);
bool program_survives(void (*body)(void *data), void *data);

/* Runs `body` in a child process as a control: it does what the property does, except what the
 * property is about (`when` names it).  A failure there counts for the property that is about it,
 * and for this one if no other fails. */
void control_run(void (*body)(void *data), void *data, const char *when);

#endif
