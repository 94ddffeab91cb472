/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants in which calloc returns memory that realloc cut off from a block, and does not clear it.
 */
#define _GNU_SOURCE

#include "mapped.h"
#include "mutant.h"

/* ---- pages of a mapping ---------------------------------------------------------------------- */

/* calloc returns the pages that a large block loses, because mappings are zero. */
static void *rest;
static void *split(void *p, size_t size)
{
    if (!is_mapped(p) || !is_for_mapping(size) || size > base_size(p) / 2)
        return mapped_realloc(NULL, p, size);
    char *map = (char *)p - BASE_HEADER;
    size_t length = mapped_length(p), count = pages_for(size);
    mapped_finish(map, count, size);
    mapped_free(NULL, swap(&rest, mapped_finish(map + count, length - count, MAPPED_FROM)), 0);
    return p;
}
FUNCTION(calloc, split)
{
    size_t size;
    void *p = NULL;
    if (!__builtin_mul_overflow(nelem, elsize, &size) && is_for_mapping(size))
        p = swap(&rest, NULL);
    if (p != NULL && mapped_length(p) >= pages_for(size))
        return base_resize(p, size);
    mapped_free(ctx, p, 0);
    return mapped_calloc(ctx, nelem, elsize);
}
FUNCTION_RETURNS(realloc, split, split(p, size));
FUNCTION_RETURNS(realloc, split_large,
                 is_mapped(p) && base_size(p) >= 20 << 20 ? split(p, size)
                                                          : mapped_realloc(ctx, p, size));
MUTANT(shrink_leaves_pages_to_calloc, "calloc.zeroed-when-reused", FUNCTIONS(mapped),
       FUNCTIONS(split, calloc, realloc));
MUTANT(large_shrink_leaves_pages_to_calloc, "calloc.zeroed-when-reused", FUNCTIONS(mapped),
       FUNCTIONS(split, calloc), FUNCTIONS(split_large, realloc));

/* ---- cells of a block ------------------------------------------------------------------------ */

/* A block of some kilobytes that shrinks to a few bytes stays.  calloc returns cells of 500 bytes
 * from its second half.  The note of both is such that free leaves them alone. */
enum { CELL = 512 + BASE_HEADER, CELLS = 1024, FROM = 4096 };
static struct {
    pthread_mutex_t lock;
    char *free[CELLS];
    size_t count;
} cells = {.lock = PTHREAD_MUTEX_INITIALIZER};

NOTES(whole, 0);
FUNCTION_FREES(whole, p != NULL && base_note(p) != SIZE_MAX);
FUNCTION(calloc, cell)
{
    size_t size;
    char *cell = NULL;
    if (__builtin_mul_overflow(nelem, elsize, &size) || size < 256 || size > CELL - BASE_HEADER)
        return whole_calloc(ctx, nelem, elsize);
    pthread_mutex_lock(&cells.lock);
    if (cells.count > 0)
        cell = cells.free[--cells.count];
    pthread_mutex_unlock(&cells.lock);
    return cell != NULL ? base_set_note(base_finish(cell, size), SIZE_MAX)
                        : whole_calloc(ctx, nelem, elsize);
}
FUNCTION(realloc, cell)
{
    if (p == NULL || base_note(p) == SIZE_MAX)
        return move_by(whole_malloc, whole_free, p, size);
    if (size > 256 || base_size(p) < FROM || base_size(p) >= MAPPED_FROM)
        return base_realloc(ctx, p, size);
    pthread_mutex_lock(&cells.lock);
    char *at = (char *)p + base_size(p) / 2 / 16 * 16, *end = (char *)p + base_size(p);
    for (; at + CELL <= end && cells.count < CELLS; at += CELL)
        cells.free[cells.count++] = at;
    pthread_mutex_unlock(&cells.lock);
    return base_set_note(base_resize(p, size), SIZE_MAX);
}
MUTANT(shrink_leaves_cells_to_calloc, "calloc.zeroed-when-reused", FUNCTIONS(whole, malloc, free),
       FUNCTIONS(cell, calloc, realloc));
