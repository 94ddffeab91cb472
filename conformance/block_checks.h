/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks of blocks that several properties of malloc, calloc and realloc share.
 */
#ifndef CONFORM_BLOCK_CHECKS_H
#define CONFORM_BLOCK_CHECKS_H

#include "harness/harness.h"

/* A new block by malloc, calloc or realloc: way % 3 says which. */
static inline void *must_make(size_t way, size_t size)
{
    return way % 3 == 0   ? must_malloc(size)
           : way % 3 == 1 ? must_calloc(size, 1)
                          : must_realloc(must_malloc(1), size);
}

/* A new block of malloc's, full of that pattern. */
static inline unsigned char *filled(size_t size, uint64_t number)
{
    unsigned char *p = must_malloc(size);
    pattern_fill(p, size, number);
    return p;
}

/* Writes the block's pattern to its first and last bytes, at most ENDS of each. */
enum { ENDS = 128 };
static inline void fill_ends(const struct block *b)
{
    step("writing the ends of a block of %zu bytes", b->size);
    pattern_fill_range(b->p, 0, MIN(b->size, ENDS), b->number);
    pattern_fill_range(b->p, b->size - MIN(b->size, ENDS), b->size, b->number);
}

/* Fails if what fill_ends() has written changed; `when` follows in the message. */
static inline void expect_ends(const struct block *b, const char *when)
{
    size_t part = MIN(b->size, ENDS), at = pattern_mismatch_range(b->p, 0, part, b->number);
    if (at == part)
        at = pattern_mismatch_range(b->p, b->size - part, b->size, b->number);
    if (at != b->size)
        pattern_fail_at(__LINE__, b->p, at, b->size, b->number, when);
}

/* Resizes the block at p, which has `old` bytes of pattern `number`.  Fails if realloc does not
 * keep the smaller of both sizes. */
static inline unsigned char *resized(unsigned char *p, size_t old, size_t new, uint64_t number)
{
    unsigned char *q = must_realloc(p, new);
    expect_pattern(q, MIN(old, new), number, "after realloc from %zu to %zu", old, new);
    return q;
}

/* Fails if a block of a gibibyte that is freed with the size of NumPy's first buffer is lost in
 * part or stays counted against a limit (huge.c). */
void check_huge_best_guess(void);

#endif
