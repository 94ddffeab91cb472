/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The size that each live block was requested with, and the call that made a zero-size block.  The
 * table forgets blocks when it is full.  It takes no lock, because a fork may come at any moment.
 */
#ifndef CONFORM_REQUESTED_SIZE_H
#define CONFORM_REQUESTED_SIZE_H

#include <stdbool.h>
#include <stddef.h>

#include "model/record.h"

/* Notes that p was requested with that size, and the call that made it if it has size zero; else
 * `maker` is NULL, or a call that is OUTSIDE.  Does nothing if p is NULL. */
void requested_note(const void *p, size_t size, const struct step *maker);

/* Forgets the size of p, which is about to be freed, but not which call made it with size zero:
 * several such blocks can have one address. */
void requested_forget(const void *p);

/* True if the size of p is known. */
bool requested_size(const void *p, size_t *size);

/* Returns the call that made p with size zero; else `function` is OUTSIDE. */
struct step requested_maker(const void *p);

#endif
