/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Claims huge pages, but advises against them for each large block.
 */
#include <sys/mman.h>

#include "mutant.h"

enum { PAGE = 4096 };

static void *advise(void *p, size_t size)
{
    uintptr_t first = ((uintptr_t)p + PAGE - 1) & -(uintptr_t)PAGE;
    if (p != NULL && size >= 4 << 20)
        madvise((void *)first, (size - PAGE) & -(size_t)PAGE, MADV_NOHUGEPAGE);
    return p;
}
FUNCTION_RETURNS(malloc, small, advise(base_malloc(ctx, size), size));
FUNCTION(calloc, small)
{
    void *p = base_calloc(ctx, nelem, elsize);
    return advise(p, nelem * elsize);
}
FUNCTION_RETURNS(realloc, small, advise(base_realloc(ctx, p, size), size));
CLAIMS("hugepage=4194304");
OBJECT(hugepage_small, "claim.hugepage", FUNCTIONS(small, malloc, calloc, realloc));
