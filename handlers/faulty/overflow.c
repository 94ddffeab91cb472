/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants in which a size wraps, because of what is added to it.
 */
#include "base.h"

/* An eighth of room to grow. */
static size_t with_an_eighth(size_t size)
{
    return size + size / 8;
}

static void *growing_malloc(void *ctx, size_t size)
{
    return base_malloc(ctx, with_an_eighth(size));
}
MUTANT(overflow_by_room_in_malloc, "malloc.too-large", .malloc = growing_malloc);

static void *growing_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    return __builtin_mul_overflow(nelem, elsize, &size) ? NULL
                                                        : base_calloc(ctx, 1, with_an_eighth(size));
}
MUTANT(overflow_by_room_in_calloc, "calloc.overflow", .calloc = growing_calloc);

/* Large arrays have elements of a power of two, which is seen to once their product was. */
static void *padding_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size, padded = 1;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    while (padded < elsize && padded < 64)
        padded *= 2;
    return base_calloc(ctx, 1, size > 1 << 20 && padded > elsize ? nelem * padded : size);
}
MUTANT(overflow_by_padding_in_calloc, "calloc.overflow", .calloc = padding_calloc);
