/* SPDX-License-Identifier: BSD-3-Clause
 *
 * This program: its version, its file, and the files that are installed with it.
 */
#ifndef CONFORM_INSTALL_PATH_H
#define CONFORM_INSTALL_PATH_H

#include <limits.h>
#include <stdbool.h>

/* "0.2.0" for a release, "0.2.0+g1234abc" for another commit, with ".dirty" after changes; see
 * program_version.sh. */
extern const char program_version[];

/* The file of this program.  A process that runs it inside another executable sets it; `path` has
 * to stay valid. */
bool place_program(char path[PATH_MAX]);
void place_program_is(const char *path);

/* The folder of this program, without a slash at the end; false if it is not known. */
bool place_of_program(char folder[PATH_MAX]);

/* Where `configured`, a path of the installation with programs in `bindir`, is after all of it was
 * moved (DESTDIR or another prefix) so that the programs are in `folder`.  False if `folder` cannot
 * be such a place. */
bool relocated_path(const char *folder, const char *bindir, const char *configured,
                    char path[PATH_MAX]);

/* The same for the folder of this program; false if nothing is there. */
bool installed_path(const char *configured, char path[PATH_MAX]);

/* Finds a file or folder next to this program as installed, in the source tree, or at `configured`.
 * False if there is none; `path` is then the last of these. */
bool place_find(const char *source, const char *configured, char path[PATH_MAX]);

#endif
