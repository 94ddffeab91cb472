/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mutant that interleaves as it claims, until realloc makes a large block of a small one.
 */
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"

NEP49_EXPORT const char kills_numa_forgets[] = "claim.numa";
NEP49_EXPORT const char nep49_claims[] = "numa=interleave:0@65536";

enum { PAGE = 4096, FROM = 65536 };

static void *interleaved(void *block, size_t size)
{
    unsigned long node0 = 1;
    uintptr_t first = (uintptr_t)block & -(uintptr_t)PAGE;

    if (block != NULL && size >= FROM)
        syscall(SYS_mbind, first, (uintptr_t)block + size - first, MPOL_INTERLEAVE, &node0, 64ul,
                0);
    return block;
}

static void *careful_malloc(void *ctx, size_t size)
{
    return interleaved(base_malloc(ctx, size), size);
}

static void *careful_calloc(void *ctx, size_t nelem, size_t elsize)
{
    void *block = base_calloc(ctx, nelem, elsize);
    return interleaved(block, nelem * elsize);
}

static void *forgetful_realloc(void *ctx, void *ptr, size_t size)
{
    bool large = ptr == NULL || base_size(ptr) >= FROM;
    void *moved = base_realloc(ctx, ptr, size);
    return large ? interleaved(moved, size) : moved;
}

NEP49_EXPORT PyDataMem_Handler nep49_handler = {
    .name = "numa_forgets",
    .version = 1,
    .allocator = {NULL, careful_malloc, careful_calloc, forgetful_realloc, base_free},
};
