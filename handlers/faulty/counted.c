/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that count what they have made, and miscount: an object of their own, as the function
 * that tells is the object's.
 */
#include "base.h"

#include <stdatomic.h>
#include <stdint.h>

static _Atomic size_t live_blocks, live_bytes, peak_bytes, made;

NEP49_EXPORT void nep49_get_statistics(nep49_statistics *figures)
{
    *figures = (nep49_statistics){live_blocks, live_bytes, peak_bytes, made};
}

static void *count(void *p, size_t size)
{
    if (p == NULL)
        return NULL;
    live_blocks++;
    made++;
    size_t now = atomic_fetch_add(&live_bytes, size) + size, peak = atomic_load(&peak_bytes);
    while (now > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, now))
        continue;
    return p;
}
static void take_off(void *p)
{
    if (p == NULL)
        return;
    live_blocks--;
    live_bytes -= base_size(p);
}

static void *counted_malloc(void *ctx, size_t size)
{
    return count(base_malloc(ctx, size), size);
}
static void *counted_calloc(void *ctx, size_t nelem, size_t elsize)
{
    return count(base_calloc(ctx, nelem, elsize), nelem * elsize);
}
static void counted_free(void *ctx, void *p, size_t size)
{
    take_off(p);
    base_free(ctx, p, size);
}
static void *counted_realloc(void *ctx, void *p, size_t size)
{
    size_t old = p != NULL ? base_size(p) : 0;
    void *moved = base_realloc(ctx, p, size);
    if (moved != NULL && p != NULL) {
        live_blocks--;
        live_bytes -= old;
    }
    return count(moved, size);
}
#define COUNTED_FUNCTIONS                                                                          \
    .malloc = counted_malloc, .calloc = counted_calloc, .realloc = counted_realloc,                \
    .free = counted_free

/* The bytes of a calloc are so many elements. */
static void *element_calloc(void *ctx, size_t nelem, size_t elsize)
{
    return count(base_calloc(ctx, nelem, elsize), nelem);
}
MUTANT(statistics_count_elements, "claim.statistics", COUNTED_FUNCTIONS, .calloc = element_calloc);

/* What is refused was asked for, and is counted. */
static void *asked_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    made += p == NULL;
    return count(p, size);
}
MUTANT(statistics_count_refusals, "claim.statistics", COUNTED_FUNCTIONS, .malloc = asked_malloc);

/* The old block is taken off before it is known that there is a new one. */
static void *hasty_realloc(void *ctx, void *p, size_t size)
{
    take_off(p);
    return count(base_realloc(ctx, p, size), size);
}
MUTANT(statistics_lose_what_cannot_grow, "claim.statistics", COUNTED_FUNCTIONS,
       .realloc = hasty_realloc);

/* What shrinks where it is stays as long in the table. */
static void *growing_realloc(void *ctx, void *p, size_t size)
{
    size_t old = p != NULL ? base_size(p) : 0;
    void *moved = base_realloc(ctx, p, size);
    if (moved == NULL || p == NULL)
        return count(moved, size);
    live_blocks--;
    live_bytes -= old < size ? old : size;
    return count(moved, size);
}
MUTANT(statistics_never_shrink, "claim.statistics", COUNTED_FUNCTIONS, .realloc = growing_realloc);

/* A thread tells of its frees at the next one but 15, and the last ones are forgotten. */
static void batched_free(void *ctx, void *p, size_t size)
{
    static _Thread_local size_t waiting;
    if (p != NULL && ++waiting % 16 != 0) {
        live_blocks++;
        live_bytes += base_size(p);
    }
    counted_free(ctx, p, size);
}
MUTANT(statistics_come_in_batches, "claim.statistics", COUNTED_FUNCTIONS, .free = batched_free);

/* The peak is that of the blocks that are live. */
static void sinking_free(void *ctx, void *p, size_t size)
{
    counted_free(ctx, p, size);
    peak_bytes = live_bytes;
}
MUTANT(statistics_forget_the_peak, "claim.statistics", COUNTED_FUNCTIONS, .free = sinking_free);

/* The bytes that are live have 32 bits. */
static void *narrow_malloc(void *ctx, size_t size)
{
    void *p = counted_malloc(ctx, size);
    if (p != NULL)
        live_bytes = (uint32_t)live_bytes;
    return p;
}
MUTANT_OF_64_BITS(statistics_have_32_bits, "claim.statistics", COUNTED_FUNCTIONS,
                  .malloc = narrow_malloc);
