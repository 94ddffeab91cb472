/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants whose statistics are wrong.  They are an object of their own, because an object has one
 * nep49_get_statistics.
 */
#include <stdatomic.h>

#include "mutant.h"

static _Atomic size_t live_blocks, live_bytes, peak_bytes, made_blocks;

NEP49_EXPORT void nep49_get_statistics(nep49_statistics *figures)
{
    *figures = (nep49_statistics){live_blocks, live_bytes, peak_bytes, made_blocks};
}

static void *count(void *p, size_t size)
{
    if (p == NULL)
        return NULL;
    live_blocks++;
    made_blocks++;
    size_t now = atomic_fetch_add(&live_bytes, size) + size, peak = atomic_load(&peak_bytes);
    while (now > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, now))
        continue;
    return p;
}
static void take_off(void *p, size_t size)
{
    live_blocks -= p != NULL;
    live_bytes -= p != NULL ? size : 0;
}
static size_t size_of(const void *p)
{
    return p != NULL ? base_size(p) : 0;
}

FUNCTION_RETURNS(malloc, counted, count(base_malloc(ctx, size), size));
FUNCTION_RETURNS(calloc, counted, count(base_calloc(ctx, nelem, elsize), nelem *elsize));
FUNCTION(realloc, counted)
{
    size_t old = size_of(p);
    void *moved = base_realloc(ctx, p, size);
    if (moved != NULL)
        take_off(p, old);
    return count(moved, size);
}
HOOK_BEFORE(free, counted, true, take_off(p, size_of(p)));

RETURNS_IN(counted, calloc, statistics_count_elements, "claim.statistics",
           count(base_calloc(ctx, nelem, elsize), nelem));
AFTER_IN(counted, malloc, statistics_count_refusals, "claim.statistics", made == NULL,
         made_blocks++);
/* The old block is taken off before the request that may fail. */
DEFECT_IN(counted, realloc, statistics_lose_what_cannot_grow, "claim.statistics")
{
    take_off(p, size_of(p));
    return count(base_realloc(ctx, p, size), size);
}
/* A block that shrinks counts with its old size. */
BEFORE_IN(counted, realloc, statistics_never_shrink, "claim.statistics", size < size_of(p),
          live_bytes += size_of(p) - size);
/* Only one free in 16 is counted. */
static _Thread_local size_t waiting;
RETURNS_IN(counted, free, statistics_come_in_batches, "claim.statistics",
           p != NULL && ++waiting % 16 != 0 ? base_free(ctx, p, size) : counted_free(ctx, p, size));
AFTER_IN(counted, free, statistics_forget_the_peak, "claim.statistics", true,
         peak_bytes = live_bytes);
AFTER_IN(counted, malloc, statistics_have_32_bits, ON_64_BITS("claim.statistics"), made != NULL,
         live_bytes = (uint32_t)live_bytes);
