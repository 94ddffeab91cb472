/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What live blocks were asked for with, and which calls made the latest blocks of no bytes.  Kept
 * as far as there is room, by any number of threads at once and without a lock, because a fork may
 * come at any moment.
 */
#ifndef CONFORM_ASKED_H
#define CONFORM_ASKED_H

#include <stdbool.h>
#include <stddef.h>

#include "model/record.h"

/* The block p was made with that size; NULL is none. */
void asked_note(const void *p, size_t size);

/* It is about to end. */
void asked_forget(const void *p);

/* Whether it is known what p was made with; *size then receives it. */
bool asked_size(const void *p, size_t *size);

/* `by` returned p for no bytes. */
void asked_note_empty(const void *p, const struct call *by);

/* The call that made p for no bytes, lately; its function is OUTSIDE where none did. */
struct call asked_maker_of_empty(const void *p);

#endif
