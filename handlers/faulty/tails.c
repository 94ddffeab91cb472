/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants in which calloc returns memory that realloc cut off from a block, and does not clear it.
 */
#define _GNU_SOURCE

#include "mapped.h"
#include "mutant.h"

/* ---- the top of a region --------------------------------------------------------------------- */

/* Blocks are cut from a region one after another; free takes back the last one only.  Memory up to
 * `dirty` was in use before, the rest is zero. */
enum { REGION = 64 << 20 };
static struct {
    pthread_mutex_t lock;
    char *begin, *next, *dirty;
} region = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_in_region(const void *p)
{
    return region.begin != NULL && (const char *)p > region.begin &&
           (const char *)p < region.begin + REGION;
}
static char *end_of(const void *p)
{
    return (char *)p + (base_size(p) + 15) / 16 * 16;
}

/* Stores in *zero how many of the block's last bytes were never in use. */
static void *cut(size_t size, size_t *zero)
{
    *zero = 0;
    if (size > REGION)
        return base_malloc(NULL, size);
    pthread_mutex_lock(&region.lock);
    if (region.begin == NULL) {
        region.begin = mmap(NULL, REGION, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        region.begin = region.begin != MAP_FAILED ? region.begin : NULL;
        region.next = region.dirty = region.begin;
    }
    char *p = NULL;
    if (region.begin != NULL && size + 32 <= (size_t)(region.begin + REGION - region.next)) {
        p = base_finish(region.next, size);
        region.next = end_of(p);
        *zero = p + size > region.dirty ? min((size_t)(p + size - region.dirty), size) : 0;
        region.dirty = region.next > region.dirty ? region.next : region.dirty;
    }
    pthread_mutex_unlock(&region.lock);
    return p != NULL ? p : base_malloc(NULL, size);
}
FUNCTION(malloc, cut)
{
    size_t zero;
    return cut(size, &zero);
}
FUNCTION(calloc, cut)
{
    size_t size, zero;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : cut(size, &zero);
    return p != NULL ? memset(p, 0, size - zero) : NULL;
}
FUNCTION(free, cut)
{
    if (!is_in_region(p)) {
        base_free(ctx, p, size);
        return;
    }
    pthread_mutex_lock(&region.lock);
    if (end_of(p) == region.next)
        region.next = (char *)p - BASE_HEADER;
    pthread_mutex_unlock(&region.lock);
}

/* If the last block shrinks to a tenth or less, the memory after it counts as never used. */
FUNCTION(realloc, cut)
{
    if (!is_in_region(p) || size > base_size(p))
        return move_by(cut_malloc, cut_free, p, size);
    pthread_mutex_lock(&region.lock);
    bool is_last = end_of(p) == region.next, shrinks_a_lot = size <= base_size(p) / 10;
    base_resize(p, size);
    if (is_last)
        region.next = end_of(p);
    if (is_last && shrinks_a_lot)
        region.dirty = region.next;
    pthread_mutex_unlock(&region.lock);
    return p;
}
MUTANT(shrink_forgets_how_far_it_is_dirty, "calloc.zeroed-when-reused", FUNCTIONS(cut));

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
