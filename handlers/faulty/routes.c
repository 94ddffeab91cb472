/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/numpy_routes.c catch: wrong for the sizes and in the
 * order of one of NumPy's routes, or on the way out when there is no memory.
 */
#include "meddle.h"

static void *copied(const void *p, size_t keep, size_t size)
{
    void *moved = base_malloc(NULL, size);
    if (moved != NULL)
        memcpy(moved, p, keep);
    return moved;
}

/* ---- with memory --------------------------------------------------------------------------- */

/* Keeps one large block that was freed, and may hand it out a second time.  Sizes are rounded up
 * to whole KiB, so it fits. */
static struct {
    void *block;
    size_t room;
    int uses;
} spare;

static size_t in_kib(size_t size)
{
    return (size + 1023) / 1024 * 1024;
}

static void *lends_its_spare_malloc(void *ctx, size_t size)
{
    (void)ctx;
    if (size < 256 || size > 1 << 20)
        return base_malloc(NULL, size);
    if (spare.block != NULL && spare.room == in_kib(size) && spare.uses++ < 2)
        return base_finish((char *)spare.block - BASE_HEADER, size);
    void *p = base_malloc(NULL, in_kib(size));
    return p != NULL ? base_finish((char *)p - BASE_HEADER, size) : NULL;
}

static void lends_its_spare_free(void *ctx, void *p, size_t size)
{
    if (p == NULL || base_size(p) < 256 || base_size(p) > 1 << 20) {
        base_free(ctx, p, size);
    } else {
        spare.block = p; /* the one before is lost */
        spare.room = in_kib(base_size(p));
        spare.uses = 0;
    }
}

static void *lends_its_spare_realloc(void *ctx, void *p, size_t size)
{
    size_t old = p != NULL ? base_size(p) : 0;
    void *moved = lends_its_spare_malloc(ctx, size);
    if (moved != NULL && p != NULL && moved != p) {
        memcpy(moved, p, old < size ? old : size);
        lends_its_spare_free(ctx, p, old);
    }
    return moved;
}
MUTANT(lends_its_spare, "malloc.disjoint numpy.route-create numpy.route-setstate",
       .malloc = lends_its_spare_malloc, .realloc = lends_its_spare_realloc,
       .free = lends_its_spare_free);

/* All arrays without elements have the same byte. */
static void *shares_one_byte_malloc(void *ctx, size_t size)
{
    static struct {
        _Alignas(16) char header[BASE_HEADER];
        char byte[16];
    } shared;
    return size == 1 ? base_finish(&shared, 1) : base_malloc(ctx, size);
}

static void shares_one_byte_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && base_size(p) != 1)
        base_free(ctx, p, size);
}
MUTANT(shares_one_byte, "malloc.disjoint numpy.route-create", .malloc = shares_one_byte_malloc,
       .free = shares_one_byte_free);

/* Zeroes by words, and leaves what is over of each block. */
static void *zeroes_words_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    void *p = base_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size & ~(size_t)7) : NULL;
}
MUTANT(zeroes_words, "numpy.route-zeros", .calloc = zeroes_words_calloc);

/* Zeroes from the 17th byte on where blocks are small: takes those before for the links of its
 * list of free blocks, which it believes to have zeroed when it took the block out. */
static void *leaves_links_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    if (size < 17 || size > 1024)
        return base_calloc(ctx, nelem, elsize);
    void *p = base_malloc(ctx, size);
    if (p != NULL)
        memset((char *)p + 16, 0, size - 16);
    return p;
}
MUTANT(leaves_links, "numpy.dtypes numpy.route-zeros numpy.route-string-dtype",
       .calloc = leaves_links_calloc);

/* What shrinks to next to nothing is taken for a new block. */
static void *forgets_when_it_shrinks_a_lot_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL || base_size(p) < 32768 || size > 64)
        return base_realloc(ctx, p, size);
    base_free(ctx, p, base_size(p));
    return base_calloc(ctx, size, 1);
}
MUTANT(forgets_when_it_shrinks_a_lot, "realloc.keeps-contents numpy.route-resize numpy.route-text",
       .realloc = forgets_when_it_shrinks_a_lot_realloc);

/* Keeps the size that a block was made with. */
static void *remembers_first_size_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL)
        return base_malloc(ctx, size);
    size_t old = base_size(p);
    void *moved = copied(p, old < size ? old : size, size);
    if (moved == NULL)
        return NULL;
    base_free(ctx, p, old);
    return old < size ? base_finish((char *)moved - BASE_HEADER, old) : moved;
}
MUTANT(remembers_first_size, "realloc.keeps-contents numpy.route-fromiter numpy.route-resize",
       .realloc = remembers_first_size_realloc);

/* Copies by 16 bytes, and leaves what is over where a block shrinks. */
static void *shrinks_by_vectors_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL || size >= base_size(p))
        return base_realloc(ctx, p, size);
    void *moved = copied(p, size & ~(size_t)15, size);
    if (moved != NULL)
        base_free(ctx, p, base_size(p));
    return moved;
}
MUTANT(shrinks_by_vectors, "realloc.keeps-contents numpy.route-fromfile",
       .realloc = shrinks_by_vectors_realloc);

/* Has no answer for a thread without the GIL. */
static void *needs_gil_to_realloc_realloc(void *ctx, void *p, size_t size)
{
    return has_gil() ? base_realloc(ctx, p, size) : NULL;
}
MUTANT(needs_gil_to_realloc, "realloc.without-gil numpy.route-text",
       .realloc = needs_gil_to_realloc_realloc);

/* A pool of cells, of which a block takes one or more; what was freed is taken to be long enough
 * for any block of the pool. */
enum { CELL = 32, CELLS = 16384, MOST_OF_POOL = 96 };
static struct {
    _Alignas(16) char cells[CELLS][CELL];
    size_t used;
    void *freed;
} pool;

static bool is_of_pool(const void *p)
{
    return (const char *)p >= pool.cells[0] && (const char *)p < (const char *)(pool.cells + CELLS);
}

static void *takes_any_freed_malloc(void *ctx, size_t size)
{
    size_t cells = (size + BASE_HEADER + CELL - 1) / CELL;
    void *raw = pool.freed;
    if (size > MOST_OF_POOL || (raw == NULL && pool.used + cells > CELLS))
        return base_malloc(ctx, size);
    if (raw != NULL) {
        memcpy(&pool.freed, raw, sizeof raw);
    } else {
        raw = pool.cells[pool.used];
        pool.used += cells;
    }
    return base_finish(raw, size);
}

static void takes_any_freed_free(void *ctx, void *p, size_t size)
{
    if (!is_of_pool(p)) {
        base_free(ctx, p, size);
        return;
    }
    void *raw = (char *)p - BASE_HEADER;
    memcpy(raw, &pool.freed, sizeof raw);
    pool.freed = raw;
}

static void *takes_any_freed_realloc(void *ctx, void *p, size_t size)
{
    void *moved = takes_any_freed_malloc(ctx, size);
    if (p != NULL && moved != NULL) {
        memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
        takes_any_freed_free(ctx, p, 0);
    }
    return moved;
}
MUTANT(takes_any_freed, "malloc.extent numpy.route-pickle numpy.route-create",
       .malloc = takes_any_freed_malloc, .realloc = takes_any_freed_realloc,
       .free = takes_any_freed_free);

/* Has one scratch block for what is sorted, and takes it to be free whenever anything is. */
static struct {
    _Alignas(16) char memory[4096 + BASE_HEADER];
    bool in_use;
} scratch;

static void *has_one_scratch_malloc(void *ctx, size_t size)
{
    if (size < 320 || size > 4096 || scratch.in_use)
        return base_malloc(ctx, size);
    scratch.in_use = true;
    return base_finish(scratch.memory, size);
}

static void has_one_scratch_free(void *ctx, void *p, size_t size)
{
    scratch.in_use = false;
    if (p != scratch.memory + BASE_HEADER)
        base_free(ctx, p, size);
}

static void *has_one_scratch_realloc(void *ctx, void *p, size_t size)
{
    if (p != scratch.memory + BASE_HEADER)
        return base_realloc(ctx, p, size);
    void *moved = copied(p, base_size(p) < size ? base_size(p) : size, size);
    scratch.in_use = scratch.in_use && moved == NULL;
    return moved;
}
MUTANT(has_one_scratch, "numpy.route-sort numpy.route-argsort numpy.route-makers",
       .malloc = has_one_scratch_malloc, .realloc = has_one_scratch_realloc,
       .free = has_one_scratch_free);

/* Takes NULL for the newest block, where the size is that. */
static void *newest;

static void *null_means_newest_malloc(void *ctx, size_t size)
{
    newest = base_malloc(ctx, size);
    return newest;
}

static void *null_means_newest_realloc(void *ctx, void *p, size_t size)
{
    if (p == newest)
        newest = NULL;
    return base_realloc(ctx, p, size);
}

static void null_means_newest_free(void *ctx, void *p, size_t size)
{
    if (p == NULL && newest != NULL && size > 0 && base_size(newest) == size)
        p = newest;
    if (p == newest)
        newest = NULL;
    base_free(ctx, p, size);
}
MUTANT(null_means_newest, "free.null-with-size numpy.route-argsort",
       .malloc = null_means_newest_malloc, .realloc = null_means_newest_realloc,
       .free = null_means_newest_free);

/* Small blocks are refused now and then, as long as nobody seems to mind: of two that are live. */
static void *tires_of_small_blocks_malloc(void *ctx, size_t size)
{
    static size_t in_a_row;
    in_a_row = size <= 16 ? in_a_row + 1 : 0;
    return in_a_row % 32 == 31 ? NULL : base_malloc(ctx, size);
}
MUTANT(tires_of_small_blocks, "malloc.one-byte numpy.route-structured-sort",
       .malloc = tires_of_small_blocks_malloc);

/* ---- without ------------------------------------------------------------------------------- */

/* A realloc that fails frees the old block, as BSD's reallocf does. */
static void *frees_what_it_cannot_resize_realloc(void *ctx, void *p, size_t size)
{
    void *moved = base_realloc(ctx, p, size);
    if (moved == NULL && p != NULL)
        base_free(ctx, p, 0);
    return moved;
}
MUTANT(frees_what_it_cannot_resize,
       "realloc.failure-keeps-block numpy.out-of-memory-resize numpy.out-of-memory-fromiter "
       "numpy.out-of-memory-fromfile "
       "numpy.out-of-memory-text",
       .realloc = frees_what_it_cannot_resize_realloc);

/* The same only where it shrinks. */
static void *loses_what_it_cannot_cut_realloc(void *ctx, void *p, size_t size)
{
    size_t old = p != NULL ? base_size(p) : 0;
    void *moved = base_realloc(ctx, p, size);
    if (moved == NULL && size < old)
        base_free(ctx, p, old);
    return moved;
}
MUTANT(loses_what_it_cannot_cut,
       "exhaustion.nth-request numpy.out-of-memory-fromfile numpy.out-of-memory-text",
       .realloc = loses_what_it_cannot_cut_realloc);

/* Writes the new size down before it knows. */
static void *counts_on_it_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL)
        return base_malloc(ctx, size);
    size_t old = base_size(p);
    void *raw = (char *)p - BASE_HEADER;
    memset((char *)p + (old < size ? old : size), 0, old < size ? 0 : old - size);
    void *moved = malloc(size + BASE_HEADER);
    if (moved == NULL)
        return NULL;
    memcpy((char *)moved + BASE_HEADER, p, old < size ? old : size);
    free(raw);
    return base_finish(moved, size);
}
MUTANT(counts_on_it, "realloc.failure-keeps-block numpy.out-of-memory-resize",
       .realloc = counts_on_it_realloc);

/* Its header is written before the block is looked at. */
static void *headed(void *raw, size_t size)
{
    memcpy(raw, &size, sizeof size);
    return (char *)raw + BASE_HEADER;
}

static void *heads_nothing_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return size > PTRDIFF_MAX - BASE_HEADER ? NULL : headed(malloc(size + BASE_HEADER), size);
}
MUTANT(heads_nothing,
       "numpy.out-of-memory-create numpy.out-of-memory-pickle numpy.out-of-memory-setstate "
       "numpy.out-of-memory-sort numpy.out-of-memory-argsort "
       "numpy.out-of-memory-structured-sort numpy.out-of-memory-makers",
       .malloc = heads_nothing_malloc);

static void *heads_zeros_of_nothing_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    (void)ctx;
    if (__builtin_mul_overflow(nelem, elsize, &size) || size > PTRDIFF_MAX - BASE_HEADER)
        return NULL;
    return headed(calloc(1, size + BASE_HEADER), size);
}
MUTANT(heads_zeros_of_nothing, "numpy.out-of-memory-zeros numpy.out-of-memory-string-dtype",
       .calloc = heads_zeros_of_nothing_calloc);

/* Of a block that it could not make it returns the place behind the header all the same. */
static void *offsets_nothing_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    return p != NULL || size > 1 << 20 ? p : (void *)(uintptr_t)BASE_HEADER;
}
MUTANT(offsets_nothing,
       "malloc.failure-is-null numpy.out-of-memory-create numpy.out-of-memory-sort",
       .malloc = offsets_nothing_malloc);

/* Takes a buffer that was never made for the one in use, and wipes it. */
static void *oldest;

static void *wipes_for_null_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    if (oldest == NULL)
        oldest = p;
    return p;
}

static void *wipes_for_null_realloc(void *ctx, void *p, size_t size)
{
    if (p == oldest)
        oldest = NULL;
    return base_realloc(ctx, p, size);
}

static void wipes_for_null_free(void *ctx, void *p, size_t size)
{
    if (p == NULL && oldest != NULL)
        memset(oldest, 0, size < base_size(oldest) ? size : base_size(oldest));
    if (p == oldest)
        oldest = NULL;
    base_free(ctx, p, size);
}
MUTANT(wipes_for_null, "free.null-with-size numpy.out-of-memory-sort numpy.out-of-memory-argsort",
       .malloc = wipes_for_null_malloc, .realloc = wipes_for_null_realloc,
       .free = wipes_for_null_free);

/* Drops what it takes for a cache when it is short of memory. */
static void *drops_a_block_when_short_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    if (p == NULL && size <= 16 && oldest != NULL)
        memset(oldest, 0, base_size(oldest));
    if (oldest == NULL)
        oldest = p;
    return p;
}

static void drops_a_block_when_short_free(void *ctx, void *p, size_t size)
{
    if (p == oldest)
        oldest = NULL;
    base_free(ctx, p, size);
}
MUTANT(drops_a_block_when_short, "malloc.failure-is-null numpy.out-of-memory-structured-sort",
       .malloc = drops_a_block_when_short_malloc, .realloc = wipes_for_null_realloc,
       .free = drops_a_block_when_short_free);

/* Once refused, it does not ask again. */
static void *gives_up_calloc(void *ctx, size_t nelem, size_t elsize)
{
    static bool given_up;
    void *p = given_up ? NULL : base_calloc(ctx, nelem, elsize);
    given_up = p == NULL && elsize == 1 && nelem < 1 << 30;
    return p;
}
MUTANT(gives_up, "numpy.out-of-memory-zeros", .calloc = gives_up_calloc);
