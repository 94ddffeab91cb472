/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that miscount the live blocks or what they handed out.
 */
#include "mutant.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- detection of double frees --------------------------------------------------------------- */

/* A list of free blocks, as libc's.  The first word of the last one is `mark`; a block that begins
 * with it is taken to be free already if the list is empty. */
enum { LIST_MOST = 1024, LIST_KEEPS = 16 };
static void *listed;
static int listed_count;
FUNCTION(malloc, list)
{
    if (size > LIST_MOST)
        return base_malloc(ctx, size);
    LOCK(lock);
    void *p = listed_count > 0 ? listed : base_malloc(ctx, LIST_MOST);
    if (listed_count > 0) {
        memcpy(&listed, p, sizeof listed);
        listed_count--;
    }
    return p != NULL ? base_finish((char *)p - BASE_HEADER, LIST_MOST) : NULL;
}
DERIVE_CALLOC(list);
FUNCTION(realloc, list)
{
    if (p == NULL)
        return list_malloc(ctx, size);
    return size > PTRDIFF_MAX / 2 ? NULL : base_realloc(ctx, p, size + (size == LIST_MOST));
}
static void give(void *p, size_t mark)
{
    LOCK(lock);
    if (p == NULL || base_size(p) != LIST_MOST || listed_count == LIST_KEEPS)
        return base_free(NULL, p, 0);
    if (listed_count == 0 && memcmp(p, &mark, sizeof mark) == 0)
        return;
    memcpy(p, listed_count > 0 ? (void *)&listed : (void *)&mark, sizeof mark);
    listed = p;
    listed_count++;
}
#define MARKS(defect, mark)                                                                        \
    FUNCTION(free, defect)                                                                         \
    {                                                                                              \
        give(p, mark);                                                                             \
    }                                                                                              \
    MUTANT(defect, "free.reclaims", FUNCTIONS(list, malloc, calloc, realloc),                      \
           FUNCTIONS(defect, free))
MARKS(free_takes_zeros_for_freed, 0);
MARKS(free_takes_ones_for_freed, SIZE_MAX);

/* ---- an arena that starts again when it is empty --------------------------------------------- */

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
DEFECT_IN(arena, calloc, calloc_is_not_counted, "calloc.disjoint")
{
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : arena_take(size, false);
    return p != NULL ? memset(p, 0, size) : NULL;
}
RETURNS_IN(arena, realloc, realloc_of_null_is_not_counted, "realloc.null-allocates",
           p == NULL ? arena_take(size, false) : arena_realloc(ctx, p, size));
FUNCTION_RETURNS(malloc, uncounted, arena_take(size, false));
#define uncounted_free arena_free
DERIVE_REALLOC(uncounted, base_size);
RETURNS_IN(arena, realloc, realloc_that_moves_is_not_counted, "realloc.neighbours",
           p == NULL ? arena_malloc(ctx, size) : uncounted_realloc(ctx, p, size));

/* ---- a struct that changes ------------------------------------------------------------------- */

/* The ctx is another one after each 64 MiB. */
NEP49_EXPORT extern PyDataMem_Handler struct_has_the_arena_in_use;
DEFECT(malloc, struct_has_the_arena_in_use, "abi.struct-constant")
{
    static char arenas[64];
    static _Atomic size_t handed_out;
    size_t before = handed_out, after = size < 1 << 20 ? before + size : before;
    handed_out = after;
    if (before >> 26 != after >> 26)
        struct_has_the_arena_in_use.allocator.ctx = &arenas[(after >> 26) % 64];
    return base_malloc(ctx, size);
}

/* ---- one calloc in 4001 ---------------------------------------------------------------------- */

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
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : sample(size);
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
MUTANT(calloc_samples_are_dirty, "calloc.zeroed-when-reused", FUNCTIONS(sampling));

/* ---- a block without an owner ---------------------------------------------------------------- */

/* free knows the address of empty blocks, and realloc does not. */
static _Alignas(16) char header_of_empty[BASE_HEADER + 16];
static void *const empty = header_of_empty + BASE_HEADER;
FUNCTION_RETURNS(malloc, known, size == 0 ? empty : base_malloc(ctx, size));
FUNCTION_RETURNS(calloc, known,
                 nelem == 0 || elsize == 0 ? empty : base_calloc(ctx, nelem, elsize));
FUNCTION_FREES(known, p != empty);
MUTANT(empty_is_unknown_to_realloc, "realloc.of-empty", FUNCTIONS(known, malloc, free));
MUTANT(no_elements_are_unknown_to_realloc, "realloc.of-empty", FUNCTIONS(known, calloc, free));

/* If another thread frees a large block, it is freed in the owner's next malloc. */
struct owner {
    pthread_mutex_t lock;
    void *returned; /* linked by their first words */
};
static _Thread_local struct owner *this_owner;
static void *owned(void *p)
{
    if (this_owner == NULL && (this_owner = calloc(1, sizeof *this_owner)) != NULL)
        pthread_mutex_init(&this_owner->lock, NULL);
    return base_set_note(p, (size_t)this_owner);
}
FUNCTION(malloc, owned)
{
    owned(NULL);
    if (this_owner != NULL) {
        LOCK(this_owner->lock);
        for (void *p = this_owner->returned, *next; p != NULL; p = next) {
            memcpy(&next, p, sizeof next);
            base_free(NULL, p, 0);
        }
        this_owner->returned = NULL;
    }
    return owned(base_malloc(ctx, size));
}
FUNCTION_RETURNS(calloc, owned, owned(base_calloc(ctx, nelem, elsize)));
FUNCTION_RETURNS(realloc, owned,
                 p == NULL ? owned(base_realloc(ctx, p, size)) : base_realloc(ctx, p, size));
FUNCTION(free, owned)
{
    struct owner *owner = p != NULL ? (struct owner *)base_note(p) : NULL;
    if (owner == NULL || owner == this_owner || base_size(p) < 1 << 16)
        return base_free(ctx, p, size);
    LOCK(owner->lock);
    memcpy(p, &owner->returned, sizeof owner->returned);
    owner->returned = p;
}
MUTANT(free_waits_for_the_owner, "free.in-another-thread", FUNCTIONS(owned));

/* ---- the index of a cell --------------------------------------------------------------------- */

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
