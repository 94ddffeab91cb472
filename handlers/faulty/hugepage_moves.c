/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Advises huge pages as claimed, but advises against them if realloc moves a block.
 */
#include <sys/mman.h>

#include "mutant.h"

enum { HUGE = 2 << 20, LARGE = 4 << 20 };

static void *advise(void *p, size_t size, int advice)
{
    uintptr_t first = ((uintptr_t)p + HUGE - 1) & -(uintptr_t)HUGE;
    if (p != NULL && size >= LARGE)
        madvise((void *)first, (size - HUGE) & -(size_t)4096, advice);
    return p;
}
FUNCTION_RETURNS(malloc, huge, advise(base_malloc(ctx, size), size, MADV_HUGEPAGE));
FUNCTION(calloc, huge)
{
    void *p = base_calloc(ctx, nelem, elsize);
    return advise(p, nelem * elsize, MADV_HUGEPAGE);
}
FUNCTION(realloc, huge)
{
    void *moved = p != NULL ? move(ctx, p, size, min(base_size(p), size)) : base_malloc(ctx, size);
    return advise(moved, size, MADV_NOHUGEPAGE);
}
CLAIMS("hugepage=4194304");
OBJECT(hugepage_moves, "claim.hugepage", FUNCTIONS(huge, malloc, calloc, realloc));
