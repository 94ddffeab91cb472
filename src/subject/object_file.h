/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A look at a file that is said to be a shared object, without loading it: its
 * constructors would run, and the coordinator lets nothing of the subject run.
 */
#ifndef CONFORM_OBJECT_FILE_H
#define CONFORM_OBJECT_FILE_H

#include <stdbool.h>

enum { SHA256_HEX = 65, OBJECT_NAME = 128 };

/* NULL where the file at `path` is a shared object for this machine, else one line on
 * why it cannot be loaded and what to do (good until the next calls of text()).  It does not
 * repeat the path.  Where `tsan_comes` it may want the runtime of ThreadSanitizer, which is not in
 * this process yet. */
const char *object_file_wrong(const char *path, bool tsan_comes);

/* False where the file was not compiled for ThreadSanitizer.  `library` receives the name of the
 * file that it says has that, or "". */
bool object_file_wants_tsan(const char *path, char library[OBJECT_NAME]);

/* Whether it asks for anything of Python's. */
bool object_file_wants_python(const char *path);

/* The SHA-256 of the file, in hexadecimal; 0, or -1 with errno set. */
int object_file_sha256(const char *path, char hex[SHA256_HEX]);

#endif
