/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What Python's tracemalloc knows of arrays, beside what the books know.
 *
 * Whoever includes this has included Python.h.
 */
#ifndef EMBED_DEMO_TRACE_H
#define EMBED_DEMO_TRACE_H

#include "books.h"

/* Claims, under `name`, that `sizes` (any iterable of numbers) are the sizes of the blocks that are
 * alive in the books, in whatever order.  0, or -1 with an exception set.  Needs the GIL. */
int trace_compare(const char *name, PyObject *sizes, struct books *books);

#endif
