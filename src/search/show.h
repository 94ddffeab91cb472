/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A list of calls as one would write it down, and as a trace.
 */
#ifndef CONFORM_SHOW_H
#define CONFORM_SHOW_H

#include <stdio.h>

#include "search/trial.h"

/* A line for each step, behind so many blanks: "p = malloc(5120)".  The list is tidied. */
void show_calls(FILE *file, int indent, const struct call_list *list);

/* All steps as show_calls has them, each behind what `before` prints of it. */
void show_steps(FILE *file, const struct call_list *list,
                void (*before)(FILE *file, const struct step *step), const char *end);

/* "memory that is not aligned: call 3, malloc(24): ..."; good until the next calls of fmt(). */
const char *show_found(const struct call_list *list, const struct found *found);

/* One step, without a block's name: "malloc(5120)".  Good until the next calls of fmt(). */
const char *show_step(const struct step *step);

/* False with one line in `why`, which does not name the file.  What is no call is not in a trace.
 */
bool show_as_trace(const char *path, const struct call_list *list, char *why, size_t room);

/* ---- reproducer.c: a list of calls as a C file that needs nothing of conform ---------------- */

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
