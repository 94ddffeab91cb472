/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Calls into the handler under test ("subject"), recorded for the report of a crash or hang.
 */
#ifndef CONFORM_CALLS_H
#define CONFORM_CALLS_H

#include <stdbool.h>
#include <stddef.h>

#include "nep49.h"

/* Call the four functions as NumPy does, and return what they return. */
void *subject_malloc(size_t size);
void *subject_calloc(size_t nelem, size_t elsize);
void *subject_realloc(void *p, size_t size);
void subject_free(void *p, size_t size);

/* The same for another handler, such as a second instance of the subject. */
void *handler_malloc(PyDataMem_Handler *handler, size_t size);
void *handler_calloc(PyDataMem_Handler *handler, size_t nelem, size_t elsize);
void *handler_realloc(PyDataMem_Handler *handler, void *p, size_t size);
void handler_free(PyDataMem_Handler *handler, void *p, size_t size);

/* The same if NULL would leave nothing to test: NULL for up to 1 MiB with little else live is a
 * FAIL, for more a SKIP. */
void *must_malloc(size_t size);
void *must_calloc(size_t nelem, size_t elsize);
void *must_realloc(void *p, size_t size);

/* Frees the block unless it is NULL. */
static inline void give_back(void *p, size_t size)
{
    if (p != NULL)
        subject_free(p, size);
}

/* Records that the latest calloc returned memory that is not zero, which later failures may be due
 * to. */
void suspect_not_zero(size_t nelem, size_t elsize);

/* Many calls at low cost, recorded as one.  They end early after 0.3 s or 64 MiB more memory, and
 * return the number of calls or pairs. */
size_t subject_malloc_and_free(size_t size, size_t pairs);
size_t subject_malloc_many(void **blocks, size_t count, size_t size);
void subject_free_many(void **blocks, size_t count, size_t size); /* skips NULL */

/* From now on the property fails if a call changes one of these parts of the state (enum
 * state_part) of the process or of the thread that makes it.  The first calls of each thread and
 * those for 1 MiB and more are checked one by one, and of the others each 1024th.  0: no longer. */
void calls_watch(unsigned parts);

/* The subject as a handler whose functions are those above, with its name and version: for NumPy
 * and shims, so that a crash in it is attributed to the call. */
PyDataMem_Handler *subject_traced(void);

/* True if it fills blocks that it makes or frees, so that gigabytes would take seconds. */
bool subject_fills_blocks(void);

#endif
