/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prints a list of calls as a C file that needs nothing of conform.
 */
#ifndef CONFORM_REPRODUCER_H
#define CONFORM_REPRODUCER_H

#include <stdio.h>

#include "base/step.h"

struct reproducer {
    const char *id, *clause, *seen; /* of the failure; a line each */
    const char *path, *entry;       /* of the handler */
    bool is_getter;
    const struct call_list *list; /* tidied */
    size_t alignment;             /* that the handler claims, or 0 */
    bool checks_errno;            /* that free keeps it */
};

/* Prints all of it; ferror(file) is set if that fails. */
void reproducer_print(FILE *file, const struct reproducer *reproducer);

#endif
