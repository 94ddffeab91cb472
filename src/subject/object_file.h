/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A look at a file that is said to be a shared object, without loading it: its
 * constructors would run, and the coordinator lets nothing of the subject run.
 */
#ifndef CONFORM_OBJECT_FILE_H
#define CONFORM_OBJECT_FILE_H

enum { SHA256_HEX = 65 };

/* NULL where the file at `path` is a shared object for this machine, else one line on
 * why it cannot be loaded and what to do (good until the next calls of text()).  It does not
 * repeat the path. */
const char *object_file_wrong(const char *path);

/* The SHA-256 of the file, in hexadecimal; 0, or -1 with errno set. */
int object_file_sha256(const char *path, char hex[SHA256_HEX]);

#endif
