/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mutant that gives huge pages as claimed, and loses them when a block is grown.
 */
#include <sys/mman.h>

#include "base.h"

NEP49_EXPORT const char kills_hugepage_moves[] = "claim.hugepage";
NEP49_EXPORT const char nep49_claims[] = "hugepage=4194304";

enum { HUGE = 2 << 20, LARGE = 4 << 20 };

static void *huge_pages(void *block, size_t size, int advice)
{
    uintptr_t first = ((uintptr_t)block + HUGE - 1) & -(uintptr_t)HUGE;

    if (block != NULL && size >= LARGE)
        madvise((void *)first, (size - HUGE) & -(size_t)4096, advice);
    return block;
}

static void *huge_malloc(void *ctx, size_t size)
{
    return huge_pages(base_malloc(ctx, size), size, MADV_HUGEPAGE);
}

static void *huge_calloc(void *ctx, size_t nelem, size_t elsize)
{
    void *block = base_calloc(ctx, nelem, elsize);
    return huge_pages(block, nelem * elsize, MADV_HUGEPAGE);
}

static void *moving_realloc(void *ctx, void *ptr, size_t size)
{
    void *moved = huge_pages(base_malloc(ctx, size), size, MADV_NOHUGEPAGE);
    if (ptr == NULL || moved == NULL)
        return moved;
    size_t old = base_size(ptr);
    memcpy(moved, ptr, old < size ? old : size);
    base_free(ctx, ptr, 0);
    return moved;
}

NEP49_EXPORT PyDataMem_Handler nep49_handler = {
    .name = "hugepage_moves",
    .version = 1,
    .allocator = {NULL, huge_malloc, huge_calloc, moving_realloc, base_free},
};
