/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs the Python package conform_report, which makes everything from JSON that is neither the text
 * report nor JSON itself.
 */
#ifndef CONFORM_PRESENT_H
#define CONFORM_PRESENT_H

#include <jansson.h>
#include <stdbool.h>

/* Sets the interpreter for present(): a path, which the caller keeps.  Without one it is the
 * python3 next to conform in a virtual environment, or else the first on PATH. */
void present_with(const char *python);

/* Runs "python3 conform_report ARGUMENT ...", a list that NULL ends, with `input` as JSON on its
 * stdin, or with the stdin of this process if `input` is NULL.  It inherits descriptors that are
 * not close-on-exec.  An interrupt ends it only if it is `interruptible`: a report of a run that
 * has ended is completed.  Returns its exit status, or -1 if an interrupt ended it; leaves with one
 * line if it cannot be started or dies of another signal. */
int present(const char *const *arguments, const json_t *input, bool interruptible);

/* The same with --answer, interruptible only without input: returns the JSON that the package
 * answers with, the caller's to free. Leaves if the package does, which has printed why. */
json_t *present_answer(const char *const *arguments, const json_t *input);

/* Returns what is in a file in memory, with a NUL after it, and closes it; the caller's to free. */
char *present_read(int fd, size_t *length);

/* Returns the descriptor of a file in memory that present() hands on, as /dev/fd/N. */
int present_memory(void);

#endif
