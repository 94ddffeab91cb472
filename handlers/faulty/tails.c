/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants in which calloc returns memory that realloc cut off from a block, and does not clear it.
 */
#include "mapped.h"

/* ---- the top of a region --------------------------------------------------------------------- */

/* Blocks are cut from a region one after another; free takes back the last one only.  Memory up to
 * `dirty` was in use before, the rest is zero. */
enum { REGION = 64 * MIB };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *region, *next, *dirty;

static bool is_in_region(const void *p)
{
    return region != NULL && (size_t)((const char *)p - region) < REGION;
}
static char *end_of(const void *p)
{
    return (char *)p + (base_size(p) + 15) / 16 * 16;
}

/* Stores in *zero how many of the block's last bytes were never in use. */
static void *cut(size_t size, size_t *zero)
{
    *zero = 0;
    LOCK(lock);
    if (region == NULL)
        region = next = dirty = map_pool(REGION);
    if (region == NULL || size > REGION || size + 32 > (size_t)(region + REGION - next))
        return base_malloc(NULL, size);
    char *p = base_finish(next, size);
    next = end_of(p);
    *zero = p + size > dirty ? min((size_t)(p + size - dirty), size) : 0;
    dirty = next > dirty ? next : dirty;
    return p;
}
FUNCTION_RETURNS(malloc, cut, cut(size, &(size_t){0}));
FUNCTION(calloc, cut)
{
    size_t size = product(nelem, elsize), zero;
    void *p = cut(size, &zero);
    return p != NULL ? memset(p, 0, size - zero) : NULL;
}
FUNCTION(free, cut)
{
    LOCK(lock);
    if (!is_in_region(p))
        base_free(ctx, p, size);
    else if (end_of(p) == next)
        next = mapping_of(p);
}

/* If the last block shrinks to a tenth or less, the memory after it counts as never used. */
FUNCTION(realloc, cut)
{
    if (!is_in_region(p) || size > base_size(p))
        return move_by(cut_malloc, cut_free, p, size);
    LOCK(lock);
    bool is_last = end_of(p) == next, shrinks_a_lot = size <= base_size(p) / 10;
    base_resize(p, size);
    if (is_last)
        next = end_of(p);
    if (is_last && shrinks_a_lot)
        dirty = next;
    return p;
}
MUTANT(shrink_forgets_how_far_it_is_dirty, "calloc.zeroed", FUNCTIONS(cut));
WHEN(shrink_forgets_how_far_it_is_dirty, "calloc.zeroed", "memory before = rest of a shrink");

/* ---- pages of a mapping ---------------------------------------------------------------------- */

/* calloc returns the pages that a large block loses, because mappings are zero. */
static void *rest;
static void *split(void *p, size_t size)
{
    if (!is_mapped(p) || !is_for_mapping(size) || size > base_size(p) / 2)
        return mapped_realloc(NULL, p, size);
    size_t length = mapped_length(p), count = pages_for(size);
    void *end = mapped_finish(mapping_of(p) + count, length - count, MAPPED_FROM);
    mapped_free(NULL, swap(&rest, end), 0);
    return mapped_finish(mapping_of(p), count, size);
}
FUNCTION(calloc, split)
{
    size_t size = product(nelem, elsize);
    void *p = is_for_mapping(size) ? swap(&rest, NULL) : NULL;
    if (p != NULL && mapped_length(p) >= pages_for(size))
        return base_resize(p, size);
    mapped_free(ctx, p, 0);
    return mapped_calloc(ctx, nelem, elsize);
}
FUNCTION_RETURNS(realloc, split, split(p, size));
FUNCTION_RETURNS(realloc, split_large,
                 is_mapped(p) && base_size(p) >= 20 << 20 ? split(p, size)
                                                          : mapped_realloc(ctx, p, size));
MUTANT(shrink_leaves_pages_to_calloc, "calloc.zeroed", FUNCTIONS(mapped),
       FUNCTIONS(split, calloc, realloc));
MUTANT(large_shrink_leaves_pages_to_calloc, "calloc.zeroed", FUNCTIONS(mapped),
       FUNCTIONS(split, calloc), FUNCTIONS(split_large, realloc));

/* malloc returns such pages as a block of little more than a mebibyte, and the block still grows
 * over them in place.  The lowest bit of its length marks that they are in use. */
static void *tail;
FUNCTION(malloc, tail)
{
    void *p = size >= MAPPED_FROM && size < 3 << 19 ? swap(&tail, NULL) : NULL;
    return p != NULL ? base_resize(p, size) : mapped_malloc(ctx, size);
}
FUNCTION(free, tail)
{
    size_t length = is_mapped(p) ? mapped_length(p) : 0;
    if (is_mapped(p) && length % 2 != 0)
        munmap((char *)p - BASE_HEADER, pages_for(base_size(p)));
    else if (!is_mapped(p) || length != 0) /* the length of a tail is 0, and it stays mapped */
        mapped_free(ctx, p, size);
}
FUNCTION(realloc, tail)
{
    size_t length = is_mapped(p) && is_for_mapping(size) ? mapped_length(p) : 0;
    if (length < pages_for(size))
        return move_by(tail_malloc, tail_free, p, size);
    if (base_size(p) >= size + (2 << 20) && length % 2 == 0) {
        char *rest_of_it = (char *)p - BASE_HEADER + pages_for(size);
        swap(&tail, (char *)memset(rest_of_it, 0, BASE_HEADER) + BASE_HEADER);
        base_set_note(p, length + 1);
    }
    return base_resize(p, size);
}
MUTANT(shrink_leaves_pages_that_it_takes_back, "realloc.grown-part-usable", FUNCTIONS(mapped),
       FUNCTIONS(tail, malloc, realloc, free));

/* ---- cells of a block ------------------------------------------------------------------------ */

/* A block of some kilobytes that shrinks to a few bytes stays.  calloc returns cells of 500 bytes
 * from its second half.  The note of both is such that free leaves them alone. */
enum { CELL = 512 + BASE_HEADER, CELLS = 1024, FROM = 4096 };
static char *free_cells[CELLS];
static size_t free_count;

NOTES(whole, 0);
FUNCTION_FREES(whole, p != NULL && base_note(p) != SIZE_MAX);
FUNCTION(calloc, cell)
{
    size_t size = product(nelem, elsize);
    LOCK(lock);
    if (size < 256 || size > CELL - BASE_HEADER || free_count == 0)
        return whole_calloc(ctx, nelem, elsize);
    return base_set_note(base_finish(free_cells[--free_count], size), SIZE_MAX);
}
FUNCTION(realloc, cell)
{
    if (p == NULL || base_note(p) == SIZE_MAX)
        return move_by(whole_malloc, whole_free, p, size);
    if (size > 256 || base_size(p) < FROM || base_size(p) >= MAPPED_FROM)
        return base_realloc(ctx, p, size);
    LOCK(lock);
    char *at = (char *)p + base_size(p) / 2 / 16 * 16, *end = (char *)p + base_size(p);
    for (; at + CELL <= end && free_count < CELLS; at += CELL)
        free_cells[free_count++] = at;
    return base_set_note(base_resize(p, size), SIZE_MAX);
}
MUTANT(shrink_leaves_cells_to_calloc, "calloc.zeroed", FUNCTIONS(whole, malloc, free),
       FUNCTIONS(cell, calloc, realloc));

/* ---- an order of calls that no property makes ------------------------------------------------ */

/* The note of a block is the number of times that it was resized.  The block that was freed last is
 * kept for the next one; calloc takes it for zero if it was resized twice. */
static void *kept;
static void *take(size_t size)
{
    LOCK(lock);
    void *p = kept;
    if (p == NULL || base_size(p) < size || base_size(p) / 2 > size)
        return base_set_note(base_malloc(NULL, size), 0);
    kept = NULL;
    return p;
}
FUNCTION_RETURNS(malloc, resized, take(size));
FUNCTION(calloc, resized)
{
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : take(size);
    return p == NULL || base_note(p) >= 2 ? p : memset(p, 0, size);
}
FUNCTION(free, resized)
{
    if (p == NULL)
        return;
    LOCK(lock);
    base_free(ctx, kept, 0);
    kept = p;
}
FUNCTION(realloc, resized)
{
    void *moved = base_set_note(base_malloc(ctx, size), p != NULL ? base_note(p) + 1 : 0);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(moved, p, min(base_size(p), size));
    resized_free(ctx, p, 0);
    return moved;
}
MUTANT(search_takes_the_resized_for_clean, "scenarios.blocks", FUNCTIONS(resized));
