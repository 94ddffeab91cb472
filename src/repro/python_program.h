/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a property does in Python as a program that needs nothing of ours but NumPy.
 */
#ifndef CONFORM_PYTHON_PROGRAM_H
#define CONFORM_PYTHON_PROGRAM_H

#include <stdio.h>

#include "repro/attempt.h"
#include "repro/call_log.h"

struct python_program {
    const char *id, *clause, *seen;    /* said at its beginning */
    const char *python;                /* the interpreter that it is tried in */
    const struct call_log *log;        /* with the functions that the property called */
    const struct subject_place *place; /* or NULL: it is about NumPy */
    const char *entry;                 /* of an object */
    bool is_getter;
    uint64_t seed;
};

/* Prints all of it.  NULL, or in words why there is none (good until the next calls of text()). */
const char *python_program_print(FILE *file, const struct python_program *program);

/* Prints the file, which shows the failure, without what it shows it without, as far as that is
 * found in so many seconds.  NULL, or in words why not. */
const char *python_program_shorten(FILE *file, const struct python_program *program,
                                   const char *path, double seconds);

/* Runs the file; with `plain`, on nothing but libc's functions. */
struct attempt python_program_try(const struct python_program *program, const char *path,
                                  bool plain);

#endif
