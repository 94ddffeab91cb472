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

/* Replaces this process by the same command under valgrind's memcheck, its
 * reports going to a file for each process in `folder`.  Returns only where that fails, with one
 * line on why. */
const char *memcheck_start(char **argv, const char *folder);

/* Called by the program that memcheck_start started: valgrind has let it begin.  Puts its
 * environment back as it was. */
void memcheck_note_begun(const char *folder);

/* Why valgrind, as process `pid`, ended without letting the program begin: the first line that it
 * said, "" where it has said nothing to its report; NULL where the program has begun.  The text
 * lives until the next call. */
const char *memcheck_refusal(const char *folder, pid_t pid);

#endif
