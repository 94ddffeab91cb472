/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Resizing a block, for the properties of realloc.
 */
#include "resizing.h"

#include "harness/harness.h"

unsigned char *filled(size_t size, uint64_t number)
{
    unsigned char *p = must_malloc(size);
    pattern_fill(p, size, number);
    return p;
}

unsigned char *resized(unsigned char *p, size_t old, size_t new, uint64_t number)
{
    unsigned char *q = must_realloc(p, new);
    expect_pattern(q, MIN(old, new), number, "after realloc from %zu to %zu", old, new);
    return q;
}
