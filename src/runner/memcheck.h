/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Running under valgrind's memcheck, and reading what it reports.
 */
#ifndef CONFORM_MEMCHECK_H
#define CONFORM_MEMCHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "model/record.h"

/* A new folder for the reports of memcheck, which goes to `folder`.  0, or -1 with errno set. */
int memcheck_make_folder(char *folder, size_t room);

/* Takes it away with all that is in it. */
void memcheck_remove_folder(const char *folder);

enum { MEMCHECK_WORDS = 10 };

/* Fills in the words of a command line for valgrind, up to a NULL, by which its reports go to a
 * file for each process in `folder`.  They are good until the next call.  NULL, or why there is no
 * memcheck. */
const char *memcheck_command(const char *command[MEMCHECK_WORDS], const char *folder);

/* Called in the process under valgrind: valgrind has let the program begin. */
void memcheck_note_begun(const char *folder);

/* Why valgrind, as process `pid`, ended without letting the program begin: the first line that it
 * said, "" where it has said nothing to its report; NULL where the program has begun.  The text
 * lives until the next call. */
const char *memcheck_refusal(const char *folder, pid_t pid);

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

struct memcheck_case {
    const char *folder; /* where the logs are */

    /* Runs the property again, on libc's allocator, and returns its record, which is valid until
     * the next call, or NULL if that fails. */
    const struct record *(*run_control)(const void *data);
    const void *data;
};

/* The errors fail a property that passes otherwise, and explain one that crashed: the verdict, with
 * what goes with it in the record. */
enum verdict memcheck_judge(const struct memcheck_case *property, struct record *record,
                            enum verdict verdict);

#endif
