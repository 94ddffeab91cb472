/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that claim huge pages.
 */
#include <sys/mman.h>

#include "mutant.h"

CLAIMS("hugepage=4194304");

enum { HUGE = 2 * MIB, LARGE = 4 * MIB };

static void *advise(void *p, size_t size, int advice)
{
    uintptr_t first = ((uintptr_t)p + HUGE - 1) & -(uintptr_t)HUGE;
    if (p != NULL && size >= LARGE)
        madvise((void *)first, (size - HUGE) & -(size_t)4096, advice);
    return p;
}
#define ADVISES(pool, advice)                                                                      \
    FUNCTION_RETURNS(malloc, pool, advise(base_malloc(ctx, size), size, advice));                  \
    FUNCTION_RETURNS(calloc, pool, advise(base_calloc(ctx, nelem, elsize), nelem *elsize, advice))
ADVISES(huge, MADV_HUGEPAGE);
ADVISES(small, MADV_NOHUGEPAGE);
FUNCTION_RETURNS(realloc, small,
                 advise(p != NULL ? move(ctx, p, size, min(base_size(p), size))
                                  : base_malloc(ctx, size),
                        size, MADV_NOHUGEPAGE));

/* Advises against huge pages if realloc moves a block, or for each large block. */
MUTANT(hugepage_moves, "claim.hugepage", FUNCTIONS(huge, malloc, calloc),
       FUNCTIONS(small, realloc));
MUTANT(hugepage_small, "claim.hugepage", FUNCTIONS(small, malloc, calloc, realloc));
