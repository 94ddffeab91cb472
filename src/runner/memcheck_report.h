/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What memcheck reports: the errors in the logs of processes, and which of them are the same.
 */
#ifndef CONFORM_MEMCHECK_REPORT_H
#define CONFORM_MEMCHECK_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Two errors are the same where memcheck itself takes them for one: the same kind at the same
 * place, called from the same three.  One about a block of the handler differs from one that is
 * not, and by where in the block it is. */
struct memcheck_error {
    char *sameness; /* one line that the same errors have in common */
    char *told;     /* one line for people: what, and where */
};

struct memcheck_errors {
    size_t count, room;
    struct memcheck_error *all;
};

/* Adds the errors in the log of process `pid`, as far as there is one. */
void memcheck_read_log(struct memcheck_errors *errors, const char *folder, pid_t pid);

/* Adds an error, both lines of which it copies; `told` may be NULL.  One that is there already, or
 * that there is no memory for, is left out. */
void memcheck_add(struct memcheck_errors *errors, const char *sameness, const char *told);

/* Takes out those that `known` has, too. */
void memcheck_subtract(struct memcheck_errors *errors, const struct memcheck_errors *known);

void memcheck_errors_free(struct memcheck_errors *errors);

/* Calls `take` with the words of each line in the log of process `pid`, as far as there is one. */
void memcheck_read_lines(const char *folder, pid_t pid, void (*take)(void *, const char *words),
                         void *data);

/* The text of a line of a log behind "==PID== ", its end cut off, or NULL. */
char *memcheck_words(char *line);

#endif
