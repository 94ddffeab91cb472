/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/free_memory.c find.
 */
#include "mutant.h"

/* Small blocks are on a stack: free frees all blocks above as well. */
static _Alignas(16) char stack[1 << 20];
static size_t stack_top;
FUNCTION(malloc, stack)
{
    size_t room = (size + BASE_HEADER + 15) / 16 * 16;
    if (size > 512 || room > sizeof stack - stack_top)
        return base_malloc(ctx, size);
    stack_top += room;
    return base_finish(stack + stack_top - room, size);
}
static bool is_on_stack(const void *p)
{
    return (const char *)p > stack && (const char *)p < stack + sizeof stack;
}
FUNCTION(free, stack)
{
    if (is_on_stack(p))
        stack_top = (size_t)((char *)p - stack) - BASE_HEADER;
    else
        base_free(ctx, p, size);
}
FUNCTION(realloc, stack)
{
    void *moved = stack_malloc(ctx, size);
    if (moved == NULL || p == NULL)
        return moved;
    memmove(moved, p, min(base_size(p), size));
    if (!is_on_stack(p))
        base_free(ctx, p, 0);
    return moved;
}
MUTANT(free_wants_last_first, "malloc.disjoint free.any-order",
       FUNCTIONS(stack, malloc, realloc, free));

/* Cells of 64 bytes in pairs.  Two free cells merge into a block of 128 bytes.  A cell stays marked
 * free if malloc takes it again, so that it merges while it is live. */
enum { CELL = 64 + BASE_HEADER, PAIRS = 2048 };
static _Alignas(16) char cells[PAIRS][2][CELL];
static char is_marked[PAIRS][2];
static void *singles[2 * PAIRS], *doubles[PAIRS];
static size_t single_count, double_count, pairs_used;
FUNCTION(malloc, pair)
{
    if (size > 128)
        return base_malloc(ctx, size);
    if (size <= 64 && single_count > 0)
        return base_finish(singles[--single_count], size);
    char *pair = double_count > 0     ? doubles[--double_count]
                 : pairs_used < PAIRS ? (char *)cells[pairs_used++]
                                      : NULL;
    if (pair == NULL)
        return base_malloc(ctx, size);
    if (size <= 64)
        singles[single_count++] = pair + CELL;
    return base_finish(pair, size);
}
FUNCTION(free, pair)
{
    size_t at = (size_t)((char *)p - BASE_HEADER - (char *)cells);
    if (at >= sizeof cells)
        return base_free(ctx, p, size);
    size_t pair = at / (2 * CELL), half = at / CELL % 2;
    if (base_size(p) <= 64 && !is_marked[pair][1 - half]) {
        is_marked[pair][half] = 1;
        singles[single_count++] = cells[pair][half];
        return;
    }
    for (size_t i = 0; i < single_count; i++) {
        if (singles[i] == cells[pair][1 - half])
            singles[i--] = singles[--single_count];
    }
    memset(is_marked[pair], 0, 2);
    doubles[double_count++] = cells[pair];
}
MUTANT_DERIVED(free_merges_with_live, "malloc.disjoint free.any-order", pair);

FREES(free_leaks_large, "free.reclaims", p == NULL || base_size(p) < 200000);
FREES(free_leaks_one_in_64, "free.reclaims", !EVERY(64));

/* Leaks blocks that calloc made, which their notes say. */
enum { BY_CALLOC = 0x5ca110c5 };
FUNCTION_RETURNS(malloc, marked, base_set_note(base_malloc(ctx, size), 0));
FUNCTION_RETURNS(calloc, marked, base_set_note(base_calloc(ctx, nelem, elsize), BY_CALLOC));
FUNCTION_RETURNS(realloc, marked,
                 p != NULL ? base_realloc(ctx, p, size) : marked_malloc(ctx, size));
FUNCTION_FREES(marked, p != NULL && base_note(p) != BY_CALLOC);
MUTANT(free_leaks_callocs, "free.reclaims", FUNCTIONS(marked));

MUTEX(lock);

/* A list of freed blocks for each multiple of 512 bytes from 4 KiB to 32 MiB.  No list is ever
 * emptied, and no block of a list serves another size. */
enum { BIN_STEP = 512, BINS = 1 << 16 };
static void *bins[BINS];
static size_t bin_of(size_t size)
{
    return size >= 4 * KIB && size < 32 * MIB - KIB ? (size + BASE_HEADER + BIN_STEP - 1) / BIN_STEP
                                                    : 0;
}
FUNCTION(malloc, binned)
{
    size_t bin = bin_of(size);
    if (bin == 0)
        return base_malloc(ctx, size);
    LOCK(lock);
    void *p = bins[bin];
    if (p == NULL)
        return base_finish(nep49_advise(malloc(bin * BIN_STEP), size), size);
    memcpy(&bins[bin], p, sizeof p);
    return base_resize(p, size);
}
FUNCTION(free, binned)
{
    size_t bin = p != NULL ? bin_of(base_size(p)) : 0;
    if (bin == 0)
        return base_free(ctx, p, size);
    LOCK(lock);
    memcpy(p, &bins[bin], sizeof p);
    bins[bin] = p;
}
MUTANT_DERIVED(free_keeps_each_size_for_itself, "free.reclaims-other-sizes", binned);

/* A quarantine of 256 freed blocks, of any size. */
#define quarantined_malloc base_malloc
FUNCTION(free, quarantined)
{
    static void *quarantine[256];
    static _Atomic uint8_t last;
    if (p != NULL)
        base_free(ctx, swap(&quarantine[last++], p), size);
}
MUTANT_DERIVED(free_bounds_its_quarantine_by_count, "free.reclaims-other-sizes", quarantined);

/* A cache of freed blocks of up to a kibibyte.  If it is full, half of it is freed, and one block
 * more is lost. */
enum { MAGAZINE = 16 };
static void *magazine[MAGAZINE];
static size_t magazine_count;
static bool fits_magazine(size_t size)
{
    return size <= KIB && size > KIB / 4;
}
FUNCTION(malloc, magazine)
{
    if (!fits_magazine(size))
        return base_malloc(ctx, size);
    LOCK(lock);
    void *p = magazine_count > 0 ? magazine[--magazine_count] : base_malloc(ctx, KIB);
    return p != NULL ? base_resize(p, size) : NULL;
}
FUNCTION(free, magazine)
{
    if (p == NULL || !fits_magazine(base_size(p)))
        return base_free(ctx, p, size);
    LOCK(lock);
    if (magazine_count == MAGAZINE) {
        for (size_t i = 0; i < MAGAZINE / 2; i++)
            base_free(ctx, magazine[--magazine_count], 0);
        magazine_count--;
    }
    magazine[magazine_count++] = p;
}
MUTANT_DERIVED(full_magazine_loses_one, "free.reclaims-bursts", magazine);
