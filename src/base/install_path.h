/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where the files are that belong to this program.
 */
#ifndef CONFORM_INSTALL_PATH_H
#define CONFORM_INSTALL_PATH_H

#include <limits.h>
#include <stdbool.h>

/* The file of this program, which a process that runs it inside another's executable has to say. */
bool place_program(char path[PATH_MAX]);
void place_program_is(const char *path); /* which stays */

/* The folder of this program, without the slash at its end; false where it cannot be told. */
bool place_of_program(char folder[PATH_MAX]);

/* Where `configured` is, a path of the installation whose programs are in `bindir`, when all of it
 * was moved so that they are in `folder`: DESTDIR, or a prefix that was copied elsewhere.  False
 * where `folder` is no such place. */
bool place_moved(const char *folder, const char *bindir, const char *configured,
                 char path[PATH_MAX]);

/* The same for the folder that this program is in, if there is something. */
bool place_beside(const char *configured, char path[PATH_MAX]);

/* A file or folder that is beside this program where it is installed, or else where it is in the
 * source tree that this was built from, or else where it is `configured` to be.  False where there
 * is none, and `path` is the last of these. */
bool place_find(const char *source, const char *configured, char path[PATH_MAX]);

extern const char program_version[];

#endif
