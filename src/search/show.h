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

#endif
