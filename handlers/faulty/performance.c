/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/performance.c catch.
 */
#include <sys/mman.h>

#include "base.h"

enum { HERE = BASE_HEADER };

/* malloc's memory as it is: what most handlers do. */
static void *plain_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return size > PTRDIFF_MAX - HERE ? NULL : base_finish(malloc(size + HERE), size);
}

static void *plain_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    (void)ctx;
    if (__builtin_mul_overflow(nelem, elsize, &size) || size > PTRDIFF_MAX - HERE)
        return NULL;
    return base_finish(calloc(1, size + HERE), size);
}
MUTANT(never_advises, "performance.large-blocks-advised", .malloc = plain_malloc,
       .calloc = plain_calloc);

/* As NumPy's default did before 2.2. */
MUTANT(calloc_never_advises, "performance.large-blocks-advised", .calloc = plain_calloc);

/* The length in pages, where madvise wants bytes. */
static void *short_malloc(void *ctx, size_t size)
{
    char *p = plain_malloc(ctx, size);
    if (p != NULL && size >= 4 << 20)
        madvise((char *)((uintptr_t)p & ~(uintptr_t)4095), size / 4096, MADV_HUGEPAGE);
    return p;
}
MUTANT(advises_too_little, "performance.large-blocks-advised", .malloc = short_malloc);

/* The block's own address, which begins no page: the kernel refuses, and nobody looks. */
static void *unaligned_malloc(void *ctx, size_t size)
{
    void *p = plain_malloc(ctx, size);
    if (p != NULL && size >= 4 << 20)
        madvise(p, size, MADV_HUGEPAGE);
    return p;
}
MUTANT(advises_unaligned, "performance.large-blocks-advised", .malloc = unaligned_malloc);
