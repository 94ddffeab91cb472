/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Child processes of a property.
 */
#ifndef CONFORM_PROCESS_H
#define CONFORM_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Runs `body` in a child process and waits for it.  What fails, skips or crashes in it
 * becomes this property's verdict; where it passes or returns, this returns. */
void in_child(void (*body)(void *data), void *data);

/* As in_child, but where the child dies by that signal this returns false, and nothing follows of
 * it: for what may not be possible with every subject. */
bool in_child_unless(int killed_by, void (*body)(void *data), void *data);

/* As in_child, for as long as the child takes no more than that time, and so much more memory than
 * this process.  Where it does, or dies, nothing follows of it: what it found before does. */
void in_child_within(double seconds, size_t bytes, void (*body)(void *data), void *data);

/* As in_child, in two parts, for a parent that works meanwhile: one child at a time. */
struct child {
    pid_t pid;
    int done;
};
struct child start_child(void (*body)(void *data), void *data);
void await_child(struct child child);

/* As in_child, of a body that makes the child a whole program: where it returns, the child goes
 * through exit(), with the atexit functions and destructors of the subject. */
void in_program(void (*body)(void *data), void *data);

/* Runs `body` in a child process and waits for it: true where it returned, false where the child
 * was ended on the way.  Nothing in it decides the property's verdict. */
bool child_survives(void (*body)(void *data), void *data);

/* The same, of a child that goes through exit() where `body` returns. */
bool program_survives(void (*body)(void *data), void *data);

/* Runs `body`, which is all that the property does but for what it is about, in a child process.
 * What fails there, crashes or hangs is a defect of another kind: whichever property finds that
 * answers for it, and this one does where nobody else does.  `when` says without what it is. */
void control_run(void (*body)(void *data), void *data, const char *when);

#endif
