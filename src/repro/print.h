/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A list of calls as a C file that needs nothing of ours.
 */
#ifndef CONFORM_PRINT_H
#define CONFORM_PRINT_H

#include <stdio.h>

#include "repro/attempt.h"

/* What is said at its beginning; text in one line each. */
struct reproducer {
    const char *id, *clause, *seen;
    const char *path, *entry;
    bool is_getter;
    const struct call_list *list; /* tidied */
};

/* Prints all of it; whether that worked is in ferror(file). */
void print_reproducer(FILE *file, const struct reproducer *reproducer);

#endif
