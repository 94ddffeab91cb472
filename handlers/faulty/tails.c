/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants in which a block shrinks, and calloc is given what was cut off as if nobody had ever had
 * it.
 */
#define _GNU_SOURCE

#include "mapped.h"

/* ---- the top of a region --------------------------------------------------------------------- */

/* Blocks are cut from a region one behind the other, and nothing is taken back but the last one.
 * Up to `dirty` the region was in use before, and what lies behind is zero. */
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

/* *zero receives how many of its bytes, the last ones, nobody has had before. */
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
        *zero = p + size > region.dirty ? (size_t)(p + size - region.dirty) : 0;
        *zero = *zero < size ? *zero : size;
        region.dirty = region.next > region.dirty ? region.next : region.dirty;
    }
    pthread_mutex_unlock(&region.lock);
    return p != NULL ? p : base_malloc(NULL, size);
}

static void *cut_malloc(void *ctx, size_t size)
{
    size_t zero;
    (void)ctx;
    return cut(size, &zero);
}

static void *cut_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size, zero;
    (void)ctx;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    void *p = cut(size, &zero);
    return p != NULL ? memset(p, 0, size - zero) : NULL;
}

static void cut_free(void *ctx, void *p, size_t size)
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

/* The last block shrinks to a tenth or less, and what was behind it is taken for fresh, as if it
 * had gone back to the kernel. */
static void *forgetting_realloc(void *ctx, void *p, size_t size)
{
    if (!is_in_region(p) || size > base_size(p))
        return move_by(cut_malloc, cut_free, p, size);
    pthread_mutex_lock(&region.lock);
    bool last = end_of(p) == region.next, little = size <= base_size(p) / 10;
    base_finish((char *)p - BASE_HEADER, size);
    if (last)
        region.next = end_of(p);
    if (last && little)
        region.dirty = region.next;
    pthread_mutex_unlock(&region.lock);
    (void)ctx;
    return p;
}
MUTANT(shrink_forgets_how_far_it_is_dirty, "calloc.zeroed-when-reused", .malloc = cut_malloc,
       .calloc = cut_calloc, .realloc = forgetting_realloc, .free = cut_free);

/* ---- pages of a mapping ---------------------------------------------------------------------- */

/* The pages that a large block loses become the next block of calloc's: mappings are zero. */
static struct kept_mapping rest = {.lock = PTHREAD_MUTEX_INITIALIZER};
static void *splitting_realloc(void *ctx, void *p, size_t size)
{
    if (!is_mapped(p) || !is_for_mapping(size) || size > base_size(p) / 2)
        return mapped_realloc(ctx, p, size);
    char *map = (char *)p - BASE_HEADER;
    size_t length = mapped_length(p), keep = pages_for(size);
    mapped_finish(map, keep, size);
    mapped_free(ctx, exchange_kept(&rest, mapped_finish(map + keep, length - keep, MAPPED_FROM)),
                0);
    return p;
}
static void *rest_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : take_kept(&rest, size);
    return p != NULL ? p : mapped_calloc(ctx, nelem, elsize);
}
MUTANT(shrink_leaves_pages_to_calloc, "calloc.zeroed-when-reused", MAPPED_FUNCTIONS,
       .calloc = rest_calloc, .realloc = splitting_realloc);

/* Only where it is worth it. */
static void *splitting_large_realloc(void *ctx, void *p, size_t size)
{
    enum { FROM = 20 << 20 };
    return is_mapped(p) && base_size(p) >= FROM ? splitting_realloc(ctx, p, size)
                                                : mapped_realloc(ctx, p, size);
}
MUTANT(large_shrink_leaves_pages_to_calloc, "calloc.zeroed-when-reused", MAPPED_FUNCTIONS,
       .calloc = rest_calloc, .realloc = splitting_large_realloc);

/* Those become the next block of malloc's of little more than a mebibyte, and yet the block grows
 * over them again, in place.  The lowest bit of its length says that they are gone. */
static struct kept_mapping tail = {.lock = PTHREAD_MUTEX_INITIALIZER};
static void *tail_malloc(void *ctx, size_t size)
{
    enum { MOST = 3 << 19 };
    char *p = size >= MAPPED_FROM && size < MOST ? exchange_kept(&tail, NULL) : NULL;
    return p != NULL ? base_finish(p - BASE_HEADER, size) : mapped_malloc(ctx, size);
}
static void tail_free(void *ctx, void *p, size_t size)
{
    size_t length = is_mapped(p) ? mapped_length(p) : 0;
    if (is_mapped(p) && length % 2 != 0)
        munmap((char *)p - BASE_HEADER, pages_for(base_size(p)));
    else if (!is_mapped(p) || length != 0) /* a tail has none, and stays mapped */
        mapped_free(ctx, p, size);
}
static void *tail_realloc(void *ctx, void *p, size_t size)
{
    enum { MUCH = 2 << 20 };
    size_t length = is_mapped(p) && is_for_mapping(size) ? mapped_length(p) : 0;
    (void)ctx;
    if (length < pages_for(size))
        return move_by(tail_malloc, tail_free, p, size);
    char *map = (char *)p - BASE_HEADER;
    if (base_size(p) >= size + MUCH && length % 2 == 0) {
        char *cut = map + pages_for(size);
        exchange_kept(&tail, (char *)memset(cut, 0, BASE_HEADER) + BASE_HEADER);
        length++;
        memcpy(map + 8, &length, sizeof length);
    }
    return base_finish(map, size);
}
MUTANT(shrink_leaves_pages_that_it_takes_back, "realloc.grown-part-usable", MAPPED_FUNCTIONS,
       .malloc = tail_malloc, .realloc = tail_realloc, .free = tail_free);

/* ---- cells of a slot ------------------------------------------------------------------------- */

/* A block of some kilobytes that shrinks to a few bytes stays, and its second half is for the next
 * callocs of 500 bytes, which take it for new. */
enum { CELL = 512 + BASE_HEADER, CELLS = 1024, FROM = 4096 };
static struct {
    pthread_mutex_t lock;
    char *free[CELLS];
    size_t count;
} cells = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *celled_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL || size > 256 || base_size(p) < FROM || base_size(p) >= MAPPED_FROM)
        return base_realloc(ctx, p, size);
    pthread_mutex_lock(&cells.lock);
    char *at = (char *)p + base_size(p) / 2 / 16 * 16, *end = (char *)p + base_size(p);
    for (; at + CELL <= end && cells.count < CELLS; at += CELL)
        cells.free[cells.count++] = at;
    pthread_mutex_unlock(&cells.lock);
    base_finish((char *)p - BASE_HEADER, size);
    memset((char *)p - 8, 0xff, 8); /* so that free leaves it alone */
    return p;
}
static void *celled_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    char *cell = NULL;
    if (__builtin_mul_overflow(nelem, elsize, &size) || size < 256 || size > CELL - BASE_HEADER)
        return base_calloc(ctx, nelem, elsize);
    pthread_mutex_lock(&cells.lock);
    if (cells.count > 0)
        cell = cells.free[--cells.count];
    pthread_mutex_unlock(&cells.lock);
    if (cell == NULL)
        return base_calloc(ctx, nelem, elsize);
    memset(cell + 8, 0xff, 8);
    return base_finish(cell, size);
}
static void *unmarked(char *p)
{
    if (p != NULL)
        memset(p - 8, 0, 8);
    return p;
}
static void *celled_malloc(void *ctx, size_t size)
{
    return unmarked(base_malloc(ctx, size));
}
static void celled_free(void *ctx, void *p, size_t size)
{
    uint64_t mark = 0;
    if (p != NULL)
        memcpy(&mark, (char *)p - 8, sizeof mark);
    if (mark != UINT64_MAX)
        base_free(ctx, p, size);
}
static void *cell_realloc(void *ctx, void *p, size_t size)
{
    uint64_t mark = 0;
    if (p != NULL)
        memcpy(&mark, (char *)p - 8, sizeof mark);
    if (mark == UINT64_MAX)
        return move_by(celled_malloc, celled_free, p, size);
    return p == NULL ? celled_malloc(ctx, size) : celled_realloc(ctx, p, size);
}
static void *cell_calloc(void *ctx, size_t nelem, size_t elsize)
{
    char *p = celled_calloc(ctx, nelem, elsize);
    uint64_t mark = 0;
    if (p != NULL)
        memcpy(&mark, p - 8, sizeof mark);
    return mark == UINT64_MAX ? p : unmarked(p);
}
MUTANT(shrink_leaves_cells_to_calloc, "calloc.zeroed-when-reused", .malloc = celled_malloc,
       .calloc = cell_calloc, .realloc = cell_realloc, .free = celled_free);
