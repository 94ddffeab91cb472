/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that miscount the live blocks or what they handed out.
 */
#include "mutant.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A small block that begins with the mark is taken to be free already. */
#define MARKS(defect, mark)                                                                        \
    FREES(defect, "free.reclaims",                                                                 \
          p == NULL || base_size(p) < sizeof(size_t) || base_size(p) > KIB ||                      \
              memcmp(p, &(size_t){mark}, sizeof(size_t)) != 0)
MARKS(free_takes_zeros_for_freed, 0);
MARKS(free_takes_ones_for_freed, SIZE_MAX);

/* Blocks of up to a page are in an arena, which starts again when no counted block lives.  The note
 * of a block in it is true if the block is counted. */
enum { ARENA = 4 << 20, ARENA_MOST = 4096 };
static _Alignas(16) char arena[ARENA];
static size_t arena_used, arena_live;
static void *arena_take(size_t size, bool is_counted)
{
    size_t taken = BASE_HEADER + (size + 15) / 16 * 16;
    LOCK(lock);
    if (size > ARENA_MOST || taken > ARENA - arena_used)
        return base_malloc(NULL, size);
    char *raw = arena + arena_used;
    arena_used += taken;
    arena_live += is_counted;
    return base_set_note(base_finish(raw, size), is_counted);
}
FUNCTION(free, arena)
{
    if ((char *)p < arena || (char *)p >= arena + ARENA)
        return base_free(ctx, p, size);
    LOCK(lock);
    arena_live -= base_note(p);
    if (base_note(p) != 0 && arena_live == 0)
        arena_used = 0;
}
FUNCTION_RETURNS(malloc, arena, arena_take(size, true));
DERIVE(arena);

RETURNS_IN(arena, malloc, malloc_does_not_count_the_first, "malloc.disjoint",
           arena_take(size, arena_used != 0));
RETURNS_IN(arena, realloc, realloc_of_null_is_not_counted, "realloc.null-allocates",
           p == NULL ? arena_take(size, false) : arena_realloc(ctx, p, size));
FUNCTION_RETURNS(malloc, uncounted, arena_take(size, false));
#define uncounted_free arena_free
DERIVE(uncounted);
RETURNS_IN(arena, calloc, calloc_is_not_counted, "malloc.disjoint",
           uncounted_calloc(ctx, nelem, elsize));
RETURNS_IN(arena, realloc, realloc_that_moves_is_not_counted, "malloc.neighbours",
           p == NULL ? arena_malloc(ctx, size) : uncounted_realloc(ctx, p, size));

/* The ctx is another one after each 64 MiB. */
NEP49_EXPORT extern PyDataMem_Handler struct_has_the_arena_in_use;
DEFECT(malloc, struct_has_the_arena_in_use, "abi.struct-constant")
{
    static char arenas[64];
    static _Atomic size_t handed_out;
    size_t before = handed_out, after = size < MIB ? before + size : before;
    handed_out = after;
    if (before >> 26 != after >> 26)
        struct_has_the_arena_in_use.allocator.ctx = &arenas[(after >> 26) % 64];
    return base_malloc(ctx, size);
}

/* One small request in 4001 is sampled: it gets one of sixteen slots in turn, which calloc does not
 * clear. */
enum { SAMPLED = 4001, SAMPLE_SLOTS = 16, SAMPLE_MOST = 1024 };
static _Alignas(16) char samples[SAMPLE_SLOTS][BASE_HEADER + SAMPLE_MOST];
static _Atomic bool is_sample[SAMPLE_SLOTS];
static void *sample(size_t size)
{
    size_t number = NTH, slot = number / SAMPLED % SAMPLE_SLOTS;
    if (size > SAMPLE_MOST || number % SAMPLED != 0 || is_sample[slot])
        return NULL;
    is_sample[slot] = true;
    return base_finish(samples[slot], size);
}
FUNCTION(malloc, sampling)
{
    void *p = sample(size);
    return p != NULL ? p : base_malloc(ctx, size);
}
FUNCTION(calloc, sampling)
{
    void *p = sample(product(nelem, elsize));
    return p != NULL ? p : base_calloc(ctx, nelem, elsize);
}
FUNCTION(free, sampling)
{
    uintptr_t at = (uintptr_t)p - (uintptr_t)samples;
    if (at < sizeof samples)
        is_sample[at / sizeof *samples] = false;
    else
        base_free(ctx, p, size);
}
DERIVE_REALLOC(sampling, base_size);
MUTANT(calloc_samples_are_dirty, "calloc.zeroed", FUNCTIONS(sampling));

/* free knows the address of empty blocks, and realloc does not. */
static _Alignas(16) char header_of_empty[BASE_HEADER + 16];
static void *const empty = header_of_empty + BASE_HEADER;
FUNCTION_RETURNS(malloc, known, size == 0 ? empty : base_malloc(ctx, size));
FUNCTION_RETURNS(calloc, known,
                 nelem == 0 || elsize == 0 ? empty : base_calloc(ctx, nelem, elsize));
FUNCTION_FREES(known, p != empty);
MUTANT(empty_is_unknown_to_realloc, "realloc.keeps-contents", FUNCTIONS(known, malloc, free));
MUTANT(no_elements_are_unknown_to_realloc, "realloc.keeps-contents",
       FUNCTIONS(known, calloc, free));

/* free computes the index of a cell of 1040 bytes by a reciprocal, which is exact in the first part
 * of the slab only. */
enum { CELL = 1040, SLAB = 4 << 20, CELLS = SLAB / CELL };
static _Alignas(16) char slab[SLAB];
static bool cell_is_live[CELLS + 1];
FUNCTION(malloc, cell)
{
    if (size + BASE_HEADER > CELL || size + BASE_HEADER <= CELL - 64)
        return base_malloc(ctx, size);
    LOCK(lock);
    size_t i = 0;
    while (i < CELLS && cell_is_live[i])
        i++;
    if (i == CELLS)
        return base_malloc(ctx, size);
    cell_is_live[i] = true;
    return base_finish(slab + i * CELL, size);
}
FUNCTION(free, cell)
{
    enum { RECIPROCAL = ((1 << 20) + CELL - 1) / CELL };
    uint64_t offset = (uintptr_t)p - BASE_HEADER - (uintptr_t)slab;
    if (p == NULL || offset >= SLAB)
        return base_free(ctx, p, size);
    LOCK(lock);
    cell_is_live[offset * RECIPROCAL >> 20] = false;
}
MUTANT_DERIVED(slab_index_by_a_short_reciprocal, "malloc.disjoint", cell);
