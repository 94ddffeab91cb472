/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Arrays across the border between C and Python, and the proof that none was copied.
 *
 * Whoever includes this has included Python.h.
 */
#ifndef EMBED_DEMO_EXCHANGE_H
#define EMBED_DEMO_EXCHANGE_H

#include <stdbool.h>

#include "books.h"

/* Lends 1000 numbers of C's to function(object), where the object is an array, whose numbers it
 * doubles, or with `by_dlpack` something for from_dlpack(), which NumPy makes a read-only array of.
 * It returns an array or a tensor over the same memory.  Claims, under `name`, that this is so,
 * that the result kept the memory alive, and that it let go once when it went.  0, or -1 with an
 * exception set. */
int exchange_lend(const char *name, PyObject *function, bool by_dlpack);

/* Takes the array of floats that function() returns, as it is, or with `by_dlpack` by its
 * __dlpack__ method; uses its data while Python does other things; and lets go.  Claims, under
 * `name`, that the data was a block of `books`, alive while C used it and no longer than that. */
int exchange_borrow(const char *name, PyObject *function, bool by_dlpack, struct books *books);

#endif
