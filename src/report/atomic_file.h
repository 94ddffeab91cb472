/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A file that appears as a whole or not at all: it is written next to its place and renamed.
 */
#ifndef CONFORM_ATOMIC_FILE_H
#define CONFORM_ATOMIC_FILE_H

#include <stdbool.h>
#include <stdio.h>

struct atomic_file {
    FILE *file;
    char *target, *temporary; /* NULL if the file is written to directly */
};

/* Begins the file that is to be at `path`, with the access rights that it has there or would get.
 * Follows links.  A device, a pipe and "-", which is stdout, are written to directly.  Returns 0,
 * or -1 with errno set. */
int atomic_file_open(struct atomic_file *file, const char *path);

/* Closes the file.  It then is at its place with `keep`; else, and on an error, what was there
 * before is.  Returns 0, or -1 with errno set. */
int atomic_file_close(struct atomic_file *file, bool keep);

#endif
