/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Running under valgrind's memcheck, and reading what it reports.
 */
#ifndef CONFORM_MEMCHECK_H
#define CONFORM_MEMCHECK_H

#include <stddef.h>
#include <sys/types.h>

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

#endif
