/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/calloc.c find.
 */
#define _GNU_SOURCE

#include <unistd.h>

#include "shifted.h"
#include "slots.h"

/* A block that was in use: only its first `cleared` bytes are 0. */
static void *make_dirty(size_t size, size_t cleared)
{
    void *p = base_malloc(NULL, size);
    return p != NULL ? memset(memset(p, 0xa5, size), 0, cleared) : NULL;
}

RETURNS(calloc, calloc_does_not_zero, "calloc.zeroed", base_malloc(ctx, product(nelem, elsize)));
WHEN(calloc_does_not_zero, "calloc.zeroed", "any level of each factor");
DEFECT(calloc, calloc_leaves_the_last_bytes, "calloc.zeroed numpy.route-zeros")
{
    size_t size = product(nelem, elsize);
    return make_dirty(size, size & ~(size_t)7);
}
RETURNS(calloc, calloc_zeroes_a_byte_an_element, "calloc.zeroed",
        make_dirty(product(nelem, elsize), elsize > 0 ? nelem : 0));
RETURNS(calloc, calloc_zeroes_in_16_bits, "calloc.zeroed",
        make_dirty(product(nelem, elsize), (uint16_t)(nelem *elsize)));
AFTER(calloc, calloc_marks_the_end_of_large_blocks, "calloc.zeroed",
      made != NULL && nelem * elsize > 8 << 20,
      memcpy((char *)made + nelem * elsize - 8, "the end.", 8));

/* A pool that caches one freed block of each of 64 size classes. */
static void *kept[64];
static void *take_kept(size_t size)
{
    return size <= 63 * 64 ? swap(&kept[(size + 63) / 64], NULL) : NULL;
}
FUNCTION(malloc, keeping)
{
    void *p = take_kept(size);
    if (p != NULL)
        return base_resize(p, size);
    return size <= PTRDIFF_MAX - 64 ? base_finish(malloc((size + 63) / 64 * 64 + BASE_HEADER), size)
                                    : NULL;
}
HOOK_BEFORE(free, keeping, p != NULL && base_size(p) <= 63 * 64,
            p = swap(&kept[(base_size(p) + 63) / 64], p));
DERIVE(keeping);

/* Does not clear a cached block. */
DEFECT_IN(keeping, calloc, calloc_trusts_what_was_kept, "calloc.zeroed")
{
    size_t size = product(nelem, elsize);
    void *p = take_kept(size);
    return p != NULL ? base_resize(p, size) : clear(keeping_malloc(ctx, size), size);
}

/* Clears the size that the cached block had before. */
DEFECT_IN(keeping, calloc, calloc_zeroes_the_size_before, "calloc.zeroed")
{
    size_t size = product(nelem, elsize);
    void *p = take_kept(size);
    if (p == NULL)
        return clear(keeping_malloc(ctx, size), size);
    memset(p, 0, min(base_size(p), size));
    return base_resize(p, size);
}

/* Computes the size of a cached block without a check. */
DEFECT_IN(keeping, calloc, calloc_wraps_where_blocks_are_kept, "calloc.overflow")
{
    void *p = take_kept(nelem * elsize);
    if (p != NULL)
        return memset(base_resize(p, nelem * elsize), 0, nelem * elsize);
    size_t size = product(nelem, elsize);
    return clear(keeping_malloc(ctx, size), size);
}

/* Does not clear if errno was ENOMEM before. */
DEFECT(calloc, calloc_believes_an_old_errno, "calloc.zeroed")
{
    size_t size = product(nelem, elsize);
    void *p = base_malloc(ctx, size);
    return errno == ENOMEM ? p : clear(p, size);
}
WHEN(calloc_believes_an_old_errno, "calloc.zeroed", "pressure = errno set before each call");

/* Caches one freed block, and clears it only if the first thread freed it. */
static void *noted;
FUNCTION(calloc, noted)
{
    size_t size = product(nelem, elsize);
    void *p = swap(&noted, NULL);
    if (p != NULL && base_size(p) == size)
        return base_note(p) != 0 ? memset(p, 0, size) : p;
    base_free(ctx, p != NULL ? swap(&noted, p) : NULL, 0);
    return base_calloc(ctx, nelem, elsize);
}
HOOK_BEFORE(free, noted, p != NULL, p = swap(&noted, base_set_note(p, gettid() == getpid())));
MUTANT(calloc_trusts_what_another_thread_freed, "calloc.zeroed", FUNCTIONS(noted, calloc, free));

RETURNS(calloc, calloc_ignores_elsize, "calloc.product", base_calloc(ctx, nelem, 1));
RETURNS(calloc, calloc_ignores_nelem, "calloc.product",
        base_calloc(ctx, elsize == 1 ? nelem : 1, elsize));
DEFECT(calloc, calloc_adds, "calloc.product")
{
    if (nelem <= 1 || elsize <= 1)
        return base_calloc(ctx, nelem, elsize);
    return product(nelem, elsize) != SIZE_MAX ? base_calloc(ctx, nelem + elsize, 1) : NULL;
}
RETURNS(calloc, calloc_cuts_elsize, "calloc.product",
        product(nelem, elsize) != SIZE_MAX ? base_calloc(ctx, nelem, (uint16_t)elsize) : NULL);

enum { HALF = 4 * sizeof(size_t) }; /* of the bits */

RETURNS(calloc, calloc_wraps, "calloc.overflow scenarios.pressure",
        base_calloc(ctx, nelem *elsize, 1));
WHEN(calloc_wraps, "scenarios.pressure", "pressure = impossible requests");
DEFECT(calloc, calloc_compares_the_product, "calloc.overflow")
{
    size_t size = nelem * elsize;
    return elsize > 0 && (size < nelem || size < elsize) ? NULL : base_calloc(ctx, size, 1);
}
RETURNS(calloc, calloc_checks_for_two_large_factors, "calloc.overflow",
        nelem >> HALF != 0 && elsize >> HALF != 0 ? NULL : base_calloc(ctx, nelem *elsize, 1));
RETURNS(calloc, calloc_wraps_with_its_header, "calloc.overflow",
        product(nelem, elsize) == SIZE_MAX
            ? NULL
            : base_finish(calloc(1, nelem *elsize + BASE_HEADER), nelem *elsize));

/* Room for growth makes the size wrap. */
RETURNS(calloc, overflow_by_room_in_calloc, "calloc.overflow",
        base_calloc(ctx, 1, product(nelem, elsize) + product(nelem, elsize) / 8));

/* Rounds elsize up to a power of two after the check. */
DEFECT(calloc, overflow_by_padding_in_calloc, "calloc.overflow")
{
    size_t size = product(nelem, elsize), padded = 1;
    if (size == SIZE_MAX)
        return NULL;
    while (padded < elsize && padded < 64)
        padded *= 2;
    return base_calloc(ctx, 1, size > 1 << 20 && padded > elsize ? nelem * padded : size);
}

#define MISALIGNS(defect, condition)                                                               \
    RETURNS_IN(aligned, calloc, defect, "calloc.alignment",                                        \
               shifted_calloc(product(nelem, elsize), BASE_HEADER + ((condition) ? 8 : 0)))
MISALIGNS(calloc_has_a_one_word_header, true);
MISALIGNS(calloc_packs_rows_of_three, nelem == 3 && elsize >= 24 && elsize % 8 == 0 && EVERY(2));
WHEN(calloc_packs_rows_of_three, "calloc.alignment", "size >= 72; made by = calloc(n, k)");
MISALIGNS(calloc_aligns_for_elsize, elsize == 8);
WHEN(calloc_aligns_for_elsize, "calloc.alignment", "size >= 16; made by = calloc(n, k)");
MISALIGNS(calloc_misaligns_off_the_main_thread, gettid() != getpid());

/* Clears in steps of 96 bytes. */
DEFECT_IN(slot, calloc, calloc_zeroes_into_the_next, "malloc.neighbours")
{
    char *p = slot_calloc(ctx, nelem, elsize);
    size_t steps = p != NULL ? (nelem * elsize + 95) / 96 : 0;
    if (is_in_slot(p) && is_in_slot(p + steps * 96))
        memset(p, 0, steps * 96);
    return p;
}

RETURNS(calloc, calloc_divides_by_elsize, "calloc.zero-arguments",
        nelem > (SIZE_MAX - BASE_HEADER) / elsize ? NULL : base_calloc(ctx, nelem, elsize));
RETURNS(calloc, calloc_divides_by_nelem, "calloc.zero-arguments",
        elsize >> HALF != 0 && elsize > (SIZE_MAX - BASE_HEADER) / nelem
            ? NULL
            : base_calloc(ctx, nelem, elsize));
DEFECT(calloc, calloc_of_nothing_is_static, "calloc.zero-arguments")
{
    static _Alignas(16) char empty[BASE_HEADER];
    return nelem == 0 || elsize == 0 ? empty + BASE_HEADER : base_calloc(ctx, nelem, elsize);
}
