/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs the program under valgrind's memcheck, and decides which of its errors are the handler's.
 */
#ifndef CONFORM_MEMCHECK_H
#define CONFORM_MEMCHECK_H

#include <stddef.h>
#include <sys/types.h>

#include "model/record.h"

/* Makes a new folder for memcheck's logs; scratch_remove() removes it.  Returns 0, or -1 with errno
 * set. */
int memcheck_make_folder(char *folder, size_t room);

enum { MEMCHECK_WORDS = 10 };

/* Fills in the words of valgrind's command line, up to a NULL, which are valid until the next call.
 * Each process gets a log in `folder`.  Returns NULL, or why memcheck is not available. */
const char *memcheck_command(const char *command[MEMCHECK_WORDS], const char *folder);

/* Records, in the process under valgrind, that valgrind has started the program. */
void memcheck_note_begun(const char *folder);

/* Returns NULL if valgrind, as process `pid`, has started the program; else the first line of its
 * log, or "", valid until the next call. */
const char *memcheck_refusal(const char *folder, pid_t pid);

/* Two errors are the same if memcheck itself takes them for one: the same kind at the same place,
 * called from the same three.  Errors about a block of the handler also differ by the place in the
 * block. */
struct memcheck_error {
    char *sameness; /* equal for the same errors */
    char *message;  /* what, and where */
};

struct memcheck_errors {
    size_t count, room;
    struct memcheck_error *all;
};

/* Adds the errors in the log of process `pid`, if there is one, each of them once. */
void memcheck_read_log(struct memcheck_errors *errors, const char *folder, pid_t pid);

/* Removes those that `known` has. */
void memcheck_subtract(struct memcheck_errors *errors, const struct memcheck_errors *known);

void memcheck_errors_free(struct memcheck_errors *errors);

/* Returns the verdict of a property that ended with `verdict`, by the logs in `folder`; only the
 * worker's members of its record change.  Errors fail a property that passes otherwise, and are
 * added to a crash.  Errors and failures that libc's allocator has too are not the handler's:
 * `run_control` runs the property on it and returns its record, or NULL. */
enum verdict memcheck_judge(struct record *record, enum verdict verdict, const char *folder,
                            const struct record *run_control(const void *data), const void *data);

#endif
