/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mutant that claims huge pages and gives small ones: of whatever kind the machine's policy is,
 * it tells the kernel after the fact that it wants none.
 */
#include <sys/mman.h>

#include "base.h"

NEP49_EXPORT const char kills_hugepage_small[] = "claim.hugepage";
NEP49_EXPORT const char nep49_claims[] = "hugepage=4194304";

enum { PAGE = 4096 };

static void *small_pages(void *block, size_t size)
{
    uintptr_t first = ((uintptr_t)block + PAGE - 1) & -(uintptr_t)PAGE;

    if (block != NULL && size >= 4 << 20)
        madvise((void *)first, (size - PAGE) & -(size_t)PAGE, MADV_NOHUGEPAGE);
    return block;
}

static void *small_malloc(void *ctx, size_t size)
{
    return small_pages(base_malloc(ctx, size), size);
}

static void *small_calloc(void *ctx, size_t nelem, size_t elsize)
{
    void *block = base_calloc(ctx, nelem, elsize);
    return small_pages(block, nelem * elsize);
}

static void *small_realloc(void *ctx, void *ptr, size_t size)
{
    return small_pages(base_realloc(ctx, ptr, size), size);
}

NEP49_EXPORT PyDataMem_Handler nep49_handler = {
    .name = "hugepage_small",
    .version = 1,
    .allocator = {NULL, small_malloc, small_calloc, small_realloc, base_free},
};
