/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that interleave as they claim: one until realloc makes a large block of a small one, one
 * until memory is used again.
 */
#include <linux/mempolicy.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"

NEP49_EXPORT const char kills_numa_forgets[] = "claim.numa";
NEP49_EXPORT const char nep49_claims[] = "numa=interleave:0@65536";

enum { PAGE = 4096, FROM = 65536 };

static void set_policy(void *block, size_t size, int mode)
{
    unsigned long node0 = 1;
    uintptr_t first = (uintptr_t)block & -(uintptr_t)PAGE;

    syscall(SYS_mbind, first, (uintptr_t)block + size - first, mode,
            mode == MPOL_DEFAULT ? NULL : &node0, mode == MPOL_DEFAULT ? 0ul : 64ul, 0);
}

static void *interleaved(void *block, size_t size)
{
    if (block != NULL && size >= FROM)
        set_policy(block, size, MPOL_INTERLEAVE);
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

/* The latest large block freed, its policy undone. */
static void *_Atomic kept;

static void *forgetful_malloc(void *ctx, size_t size)
{
    void *block = size >= FROM ? atomic_exchange(&kept, NULL) : NULL;
    if (block != NULL && base_size(block) == size)
        return block;
    base_free(ctx, block, 0);
    return careful_malloc(ctx, size);
}

static void *careful_realloc(void *ctx, void *ptr, size_t size)
{
    return interleaved(base_realloc(ctx, ptr, size), size);
}

static void keeping_free(void *ctx, void *ptr, size_t size)
{
    if (ptr != NULL && base_size(ptr) >= FROM) {
        set_policy(ptr, base_size(ptr), MPOL_DEFAULT);
        ptr = atomic_exchange(&kept, ptr);
    }
    base_free(ctx, ptr, size);
}

MUTANT(numa_forgets_when_it_keeps, "claim.numa", .malloc = forgetful_malloc,
       .calloc = careful_calloc, .realloc = careful_realloc, .free = keeping_free);
