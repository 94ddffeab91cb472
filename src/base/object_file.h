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
 * why it cannot be loaded and what to do (good until the next calls of fmt()).  It does not
 * repeat the path. */
const char *object_file_wrong(const char *path);

/* What a compiler's -fsanitize= puts into an object, and the library that has to be in the program
 * for it. */
struct sanitizer {
    const char *name, *flag;
    const char *symbol;      /* how what the object calls there begins, or NULL */
    const char *has;         /* what the library has */
    const char *gcc, *clang; /* how the library is called, its beginning; NULL: none helps */
};
struct object_sanitizer {
    const struct sanitizer *sanitizer; /* or NULL */
    char library[OBJECT_NAME];         /* as the object names it, or "" */
    int clang;                         /* the version that has made the object; 0: another has */
};

/* False where the file was compiled without any. */
bool object_file_sanitizer(const char *path, struct object_sanitizer *found);

/* Gives see() each name that the loader may need: of symbols and libraries, and the folders that
 * libraries are looked for in.  None where the file is no ELF file of this machine's kind. */
void object_file_each_name(const char *path, void (*see)(const char *name, void *data), void *data);

/* Whether it asks for anything of Python's. */
bool object_file_wants_python(const char *path);

/* The SHA-256 of the file, in hexadecimal; 0, or -1 with errno set. */
int object_file_sha256(const char *path, char hex[SHA256_HEX]);

#endif
