/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that fail if a slab, a run of pages or the cache of a class is full.
 */
#include "mapped.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_in(const char *pool, size_t length, const void *p)
{
    return pool != NULL && (size_t)((const char *)p - pool) < length;
}

/* ---- slabs ----------------------------------------------------------------------------------- */

/* A slab has 48 slots, and the search goes on to the 64th. */
enum { SLAB = 1 << 16, SLABS = 512, SLAB_SLOT = 1344 + BASE_HEADER };
static char *slabs;
static uint64_t used_slots[SLABS];
FUNCTION(malloc, slab)
{
    LOCK(lock);
    if (slabs == NULL)
        slabs = map_pool((SLABS + 1) * (size_t)SLAB);
    for (size_t i = 0; slabs != NULL && size > 1280 && size <= 1344 && i < SLABS; i++) {
        if (used_slots[i] == UINT64_MAX)
            continue;
        size_t slot = (size_t)__builtin_ctzll(~used_slots[i]);
        used_slots[i] |= (uint64_t)1 << slot;
        return base_set_note(base_finish(slabs + i * SLAB + slot * SLAB_SLOT, size), i * 64 + slot);
    }
    return base_malloc(ctx, size);
}
FUNCTION(free, slab)
{
    if (!is_in(slabs, (SLABS + 1) * (size_t)SLAB, p))
        return base_free(ctx, p, size);
    LOCK(lock);
    used_slots[base_note(p) / 64 % SLABS] &= ~((uint64_t)1 << base_note(p) % 64);
}
DERIVE_REALLOC(slab, base_size);
MUTANT(slab_search_passes_its_end, "malloc.disjoint", FUNCTIONS(slab, malloc, realloc, free));

/* ---- runs of pages --------------------------------------------------------------------------- */

/* The bits of a run of 64 pages are (1 << 64) - 1, which is 0 on x86. */
enum { RUN_WORDS = 256, RUN_PAGES = RUN_WORDS * 64, RUN_FROM = 1 << 15 };
static char *runs;
static uint64_t used_pages[RUN_WORDS];
static uint64_t run_bits(size_t pages)
{
    return ((uint64_t)1 << pages % 64) - 1;
}
FUNCTION(malloc, run)
{
    size_t pages = size <= 1 << 20 ? pages_for(size) / MAPPED_PAGE : 0;
    if (size < RUN_FROM || pages == 0 || pages > 64)
        return base_malloc(ctx, size);
    LOCK(lock);
    if (runs == NULL)
        runs = map_pool((size_t)RUN_PAGES * MAPPED_PAGE);
    for (size_t at = 0; runs != NULL && at < RUN_PAGES; at++) {
        uint64_t bits = run_bits(pages) << at % 64;
        if (at % 64 + pages > 64 || (used_pages[at / 64] & bits) != 0)
            continue;
        used_pages[at / 64] |= bits;
        return base_set_note(base_finish(runs + at * MAPPED_PAGE, size), at);
    }
    return base_malloc(ctx, size);
}
FUNCTION(free, run)
{
    if (!is_in(runs, (size_t)RUN_PAGES * MAPPED_PAGE, p))
        return base_free(ctx, p, size);
    size_t at = base_note(p) % RUN_PAGES, pages = pages_for(base_size(p)) / MAPPED_PAGE;
    LOCK(lock);
    used_pages[at / 64] &= ~(run_bits(pages) << at % 64);
}
DERIVE_REALLOC(run, base_size);
MUTANT(run_of_64_pages_takes_none, "malloc.disjoint", FUNCTIONS(run, malloc, realloc, free));

/* ---- caches of a class ----------------------------------------------------------------------- */

/* Eight blocks of each class between 38 and 64 KiB are kept after their count, and a ninth one,
 * whose place is the count of the next class. */
enum { ROW = 64, FIRST_ROW = 600, ROWS = 1024, PLACES = 8 };
static uintptr_t rows[(ROWS + 1) * (PLACES + 1)];
static uintptr_t *row_for(size_t size)
{
    size_t row = size < (size_t)ROWS * ROW ? (size + ROW - 1) / ROW : 0;
    return row >= FIRST_ROW && row < ROWS ? &rows[row * (PLACES + 1)] : NULL;
}
FUNCTION(malloc, row)
{
    uintptr_t *row = row_for(size);
    if (row == NULL)
        return base_malloc(ctx, size);
    LOCK(lock);
    char *p = row[0] > 0 ? (char *)row[row[0]--] : base_malloc(ctx, (size + ROW - 1) / ROW * ROW);
    return p != NULL ? base_resize(p, size) : NULL;
}
FUNCTION(free, row)
{
    uintptr_t *row = p != NULL ? row_for(base_size(p)) : NULL;
    LOCK(lock);
    if (row != NULL && row[0] <= PLACES)
        row[++row[0]] = (uintptr_t)p;
    else
        base_free(ctx, p, size);
}
MUTANT_DERIVED(cache_row_takes_one_too_many, "free.any-order", row);
