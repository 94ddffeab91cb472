/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/numpy_routes.c find: they are wrong for the sizes and
 * the order of calls of one NumPy function, or if memory runs out in it.
 */
#include "mutant.h"
#include "python.h"

/* Returns a large freed block up to twice.  The sizes of blocks are rounded up to whole KiB. */
static struct {
    void *block;
    size_t room;
    int uses;
} spare;
static size_t in_kib(size_t size)
{
    return (size + 1023) / 1024 * 1024;
}
FUNCTION(malloc, spare)
{
    if (size < 256 || size > MIB)
        return base_malloc(NULL, size);
    if (spare.block != NULL && spare.room == in_kib(size) && spare.uses++ < 2)
        return base_resize(spare.block, size);
    void *p = base_malloc(NULL, in_kib(size));
    return p != NULL ? base_resize(p, size) : NULL;
}
FUNCTION(free, spare)
{
    if (p == NULL || base_size(p) < 256 || base_size(p) > MIB)
        return base_free(ctx, p, size);
    spare.block = p;
    spare.room = in_kib(base_size(p));
    spare.uses = 0;
}
MUTANT_DERIVED(lends_its_spare, "malloc.disjoint numpy.route-create numpy.route-setstate", spare);

/* All blocks of one byte are the same one. */
FUNCTION(malloc, one_byte)
{
    static _Alignas(16) char shared[BASE_HEADER + 16];
    return size == 1 ? base_finish(shared, 1) : base_malloc(ctx, size);
}
FUNCTION_FREES(one_byte, p != NULL && base_size(p) != 1);
MUTANT(shares_one_byte, "malloc.disjoint numpy.route-create", FUNCTIONS(one_byte, malloc, free));

/* Does not clear the first 16 bytes of small blocks, where a list of free ones has its links. */
DEFECT(calloc, leaves_links, "numpy.dtypes numpy.route-zeros numpy.route-string-dtype")
{
    size_t size = product(nelem, elsize);
    if (size < 17 || size > 1024)
        return base_calloc(ctx, nelem, elsize);
    char *p = base_malloc(ctx, size);
    return p != NULL ? (char *)memset(p + 16, 0, size - 16) - 16 : NULL;
}

BEFORE(realloc, forgets_when_it_shrinks_a_lot,
       "realloc.keeps-contents numpy.route-resize numpy.route-text",
       p != NULL && base_size(p) >= 32768 && size <= 64, memset(p, 0, size));

/* The header keeps the size of birth after a growth. */
DEFECT(realloc, remembers_first_size,
       "realloc.keeps-contents numpy.route-fromiter numpy.route-resize")
{
    if (p == NULL)
        return base_malloc(ctx, size);
    size_t old = base_size(p);
    void *moved = move(ctx, p, size, min(old, size));
    return moved != NULL && old < size ? base_resize(moved, old) : moved;
}
WHEN(remembers_first_size, "realloc.keeps-contents", "made by = grown step by step");

KEEPS(shrinks_by_vectors, "realloc.keeps-contents numpy.route-fromfile",
      size < old ? size & ~(size_t)15 : old);

RETURNS(realloc, needs_gil_to_realloc, "threads.no-gil-needed numpy.route-text",
        has_gil() ? base_realloc(ctx, p, size) : NULL);

/* A pool of cells, of which a block takes one or more.  malloc takes any freed block for any size.
 */
enum { CELL = 32, CELLS = 16384, MOST_OF_POOL = 96 };
static _Alignas(16) char cells[CELLS][CELL];
static size_t used_cells;
static void *freed; /* the first cell; each begins with the address of the next */
FUNCTION(malloc, pool)
{
    size_t count = (size + BASE_HEADER + CELL - 1) / CELL;
    void *raw = freed;
    if (size > MOST_OF_POOL || (raw == NULL && used_cells + count > CELLS))
        return base_malloc(ctx, size);
    if (raw != NULL) {
        memcpy(&freed, raw, sizeof raw);
        return base_finish(raw, size);
    }
    used_cells += count;
    return base_finish(cells[used_cells - count], size);
}
FUNCTION(free, pool)
{
    if ((uintptr_t)p - (uintptr_t)cells >= sizeof cells)
        return base_free(ctx, p, size);
    freed = memcpy((char *)p - BASE_HEADER, &freed, sizeof freed);
}
MUTANT_DERIVED(takes_any_freed, "malloc.extent numpy.route-pickle numpy.route-create", pool);

/* Has one scratch block, which any call of free marks as unused. */
static _Alignas(16) char scratch[4096 + BASE_HEADER];
static bool scratch_in_use;
FUNCTION(malloc, scratch)
{
    if (size < 320 || size > 4096 || scratch_in_use)
        return base_malloc(ctx, size);
    scratch_in_use = true;
    return base_finish(scratch, size);
}
FUNCTION(free, scratch)
{
    scratch_in_use = false;
    if (p != scratch + BASE_HEADER)
        base_free(ctx, p, size);
}
FUNCTION(realloc, scratch)
{
    if (p != scratch + BASE_HEADER)
        return base_realloc(ctx, p, size);
    void *moved = base_malloc(ctx, size);
    scratch_in_use = scratch_in_use && moved == NULL;
    return moved != NULL ? memcpy(moved, p, min(base_size(p), size)) : NULL;
}
MUTANT(has_one_scratch, "numpy.route-sort numpy.route-argsort numpy.route-makers",
       FUNCTIONS(scratch, malloc, realloc, free));

/* free(NULL, n) frees the newest block if its size is n. */
static void *newest;
FUNCTION_RETURNS(malloc, newest, newest = base_malloc(ctx, size));
HOOK_BEFORE(realloc, newest, p == newest, newest = NULL);
FUNCTION(free, newest)
{
    if (p == NULL && newest != NULL && size > 0 && base_size(newest) == size)
        p = newest;
    if (p == newest)
        newest = NULL;
    base_free(ctx, p, size);
}
MUTANT(null_means_newest, "free.null-with-size numpy.route-argsort",
       FUNCTIONS(newest, malloc, realloc, free));

/* Refuses the 31st of 32 small requests in a row. */
DEFECT(malloc, tires_of_small_blocks, "malloc.lasts numpy.route-structured-sort")
{
    static size_t in_a_row;
    in_a_row = size <= 16 ? in_a_row + 1 : 0;
    return in_a_row % 32 == 31 ? NULL : base_malloc(ctx, size);
}
WHEN(tires_of_small_blocks, "malloc.lasts", "size <= 16");

/* Frees the block that it cannot resize, or only those that it cannot shrink. */
AFTER(realloc, frees_what_it_cannot_resize,
      "realloc.failure-keeps-block numpy.out-of-memory-resize numpy.out-of-memory-fromiter "
      "numpy.out-of-memory-fromfile numpy.out-of-memory-text",
      made == NULL, base_free(ctx, p, 0));
AFTER(realloc, loses_what_it_cannot_cut,
      "exhaustion.nth-request numpy.out-of-memory-fromfile numpy.out-of-memory-text",
      made == NULL && p != NULL && size < base_size(p), base_free(ctx, p, 0));

/* Clears what a shrink will cut off before it requests memory. */
DEFECT(realloc, counts_on_it, "realloc.failure-keeps-block numpy.out-of-memory-resize")
{
    if (p == NULL)
        return base_malloc(ctx, size);
    size_t old = base_size(p), kept = min(old, size);
    memset((char *)p + kept, 0, old - kept);
    return move_to(base_finish(malloc(size + BASE_HEADER), size), p, kept, base_free);
}

/* Writes the header before it checks for NULL. */
static void *finish_unchecked(void *raw, size_t size)
{
    memcpy(raw, &size, sizeof size);
    return (char *)raw + BASE_HEADER;
}
RETURNS(malloc, heads_nothing,
        "numpy.out-of-memory-create numpy.out-of-memory-pickle numpy.out-of-memory-setstate "
        "numpy.out-of-memory-sort numpy.out-of-memory-argsort "
        "numpy.out-of-memory-structured-sort numpy.out-of-memory-makers",
        size > PTRDIFF_MAX - BASE_HEADER ? NULL
                                         : finish_unchecked(malloc(size + BASE_HEADER), size));
DEFECT(calloc, heads_zeros_of_nothing, "numpy.out-of-memory-zeros numpy.out-of-memory-string-dtype")
{
    size_t size = product(nelem, elsize);
    return size > PTRDIFF_MAX - BASE_HEADER ? NULL
                                            : finish_unchecked(calloc(1, size + BASE_HEADER), size);
}

AFTER(malloc, offsets_nothing,
      "malloc.failure-is-null numpy.out-of-memory-create numpy.out-of-memory-sort",
      made == NULL && size <= 1 << 20, made = (char *)made + BASE_HEADER);

/* free(NULL, n) clears the oldest block. */
static void *oldest;
HOOK_AFTER(malloc, oldest, true, oldest = oldest != NULL ? oldest : made);
HOOK_BEFORE(realloc, oldest, true, oldest = p == oldest ? NULL : oldest);
FUNCTION(free, oldest)
{
    if (p == NULL && oldest != NULL)
        memset(oldest, 0, min(size, base_size(oldest)));
    oldest = p == oldest ? NULL : oldest;
    base_free(ctx, p, size);
}
MUTANT(wipes_for_null, "free.null-with-size numpy.out-of-memory-sort numpy.out-of-memory-argsort",
       FUNCTIONS(oldest, malloc, realloc, free));

/* Clears the oldest block if a small request fails. */
FUNCTION(malloc, short)
{
    void *p = base_malloc(ctx, size);
    if (p == NULL && size <= 16 && oldest != NULL)
        memset(oldest, 0, base_size(oldest));
    oldest = oldest != NULL ? oldest : p;
    return p;
}
HOOK_BEFORE(free, short, true, oldest = p == oldest ? NULL : oldest);
MUTANT(drops_a_block_when_short, "malloc.failure-is-null numpy.out-of-memory-structured-sort",
       FUNCTIONS(short, malloc, free), FUNCTIONS(oldest, realloc));

/* Fails once more after a failure. */
DEFECT(calloc, gives_up, "numpy.out-of-memory-zeros")
{
    static bool gives_up_next;
    void *p = gives_up_next ? NULL : base_calloc(ctx, nelem, elsize);
    gives_up_next = p == NULL && elsize == 1 && nelem < 1 << 30;
    return p;
}
