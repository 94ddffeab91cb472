/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Calls into the subject, which leave a trace of what was under way.
 */
#ifndef CONFORM_CALLS_H
#define CONFORM_CALLS_H

#include <stdbool.h>
#include <stddef.h>

#include "nep49.h"

/* The four functions, called as NumPy calls them.  They return what the subject returns. */
void *subject_malloc(size_t size);
void *subject_calloc(size_t nelem, size_t elsize);
void *subject_realloc(void *p, size_t size);
void subject_free(void *p, size_t size);

/* The same, of a handler that is not the subject's own (a twin of it). */
void *handler_malloc(PyDataMem_Handler *handler, size_t size);
void *handler_calloc(PyDataMem_Handler *handler, size_t nelem, size_t elsize);
void *handler_realloc(PyDataMem_Handler *handler, void *p, size_t size);
void handler_free(PyDataMem_Handler *handler, void *p, size_t size);

/* Likewise, where NULL would leave nothing to test: a refusal of up to 1 MiB with little
 * else live fails; a refusal of more is the subject's right, and SKIPs with that reason. */
void *must_malloc(size_t size);
void *must_calloc(size_t nelem, size_t elsize);
void *must_realloc(void *p, size_t size);

/* Frees the block unless it is NULL. */
static inline void give_back(void *p, size_t size)
{
    if (p != NULL)
        subject_free(p, size);
}

/* What the latest calloc returned is not zero: whatever else was to be seen may come of it. */
void suspect_not_zero(size_t nelem, size_t elsize);

/* Calls by the hundred thousand, which leave one trace between them, so that they cost little. They
 * end early where it takes a moment too long, or takes too much memory; how many were made is
 * returned.
 *
 * malloc or calloc, and free, again and again.  What calloc gives is full of ones when it is freed;
 * where it is not zero, *dirty receives it, live. */
size_t subject_malloc_and_free(size_t size, size_t pairs);
size_t subject_calloc_and_free(size_t size, size_t pairs, void **dirty);
/* Live blocks, and the end of those that are not NULL. */
size_t subject_malloc_many(void **blocks, size_t count, size_t size);
void subject_free_many(void **blocks, size_t count, size_t size);

/* The subject as a handler whose functions are those above: what NumPy and shims are given, so
 * that a crash behind them is attributed to the call it happened in.  Name and version show
 * through. */
PyDataMem_Handler *subject_traced(void);

/* True where the subject takes its time over a block of 64 MiB that nobody has written to, because
 * it fills what it makes or frees: gigabytes would take it seconds. */
bool subject_fills_blocks(void);

#endif
