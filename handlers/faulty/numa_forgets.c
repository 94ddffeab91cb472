/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that claim to interleave large blocks over memory nodes.
 */
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mutant.h"

CLAIMS("numa=interleave:0@65536");

enum { PAGE = 4096, FROM = 65536 };

static void *set_policy(void *p, size_t size, int mode)
{
    unsigned long node0 = 1;
    uintptr_t first = (uintptr_t)p & -(uintptr_t)PAGE;
    if (p != NULL && size >= FROM)
        syscall(SYS_mbind, first, (uintptr_t)p + size - first, mode,
                mode == MPOL_DEFAULT ? NULL : &node0, mode == MPOL_DEFAULT ? 0ul : 64ul, 0);
    return p;
}
FUNCTION_RETURNS(malloc, interleaving, set_policy(base_malloc(ctx, size), size, MPOL_INTERLEAVE));
FUNCTION_RETURNS(calloc, interleaving,
                 set_policy(base_calloc(ctx, nelem, elsize), nelem *elsize, MPOL_INTERLEAVE));
FUNCTION_RETURNS(realloc, interleaving,
                 set_policy(base_realloc(ctx, p, size), size, MPOL_INTERLEAVE));

/* Does not interleave a large block that realloc makes from a small one. */
FUNCTION_RETURNS(realloc, growing,
                 p == NULL || base_size(p) >= FROM ? interleaving_realloc(ctx, p, size)
                                                   : base_realloc(ctx, p, size));
MUTANT(numa_forgets, "claim.numa", FUNCTIONS(interleaving, malloc, calloc),
       FUNCTIONS(growing, realloc));

/* Does not interleave a large block that it uses again. */
static void *kept;
FUNCTION(malloc, keeping)
{
    void *p = size >= FROM ? swap(&kept, NULL) : NULL;
    if (p != NULL && base_size(p) == size)
        return p;
    base_free(ctx, p, 0);
    return interleaving_malloc(ctx, size);
}
HOOK_BEFORE(free, keeping, p != NULL && base_size(p) >= FROM,
            p = swap(&kept, set_policy(p, base_size(p), MPOL_DEFAULT)));
MUTANT(numa_forgets_when_it_keeps, "claim.numa", FUNCTIONS(interleaving, calloc, realloc),
       FUNCTIONS(keeping, malloc, free));
