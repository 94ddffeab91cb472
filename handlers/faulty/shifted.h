/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The pool `aligned`: its functions place each block at a chosen shift from the address that libc
 * returned, BASE_HEADER by default, and store the shift before the block.
 */
#ifndef CONFORM_FAULTY_SHIFTED_H
#define CONFORM_FAULTY_SHIFTED_H

#include "mutant.h"

enum { MOST_SHIFT = 64 };

struct shifted {
    size_t size, shift;
};

/* A copy, because p may be unaligned. */
UNUSED static inline struct shifted shifted_header(const void *p)
{
    struct shifted header;
    memcpy(&header, (const char *)p - sizeof header, sizeof header);
    return header;
}
#define shifted_size(p) (shifted_header(p).size)

/* The block at that shift from `raw`, which has MOST_SHIFT bytes more; NULL if that is NULL. */
UNUSED static inline void *shifted_finish(char *raw, size_t size, size_t shift)
{
    struct shifted header = {size, shift};
    if (raw != NULL)
        memcpy(raw + shift - sizeof header, &header, sizeof header);
    return raw != NULL ? raw + shift : NULL;
}
UNUSED static inline void *shifted_malloc(size_t size, size_t shift)
{
    bool fits = size <= PTRDIFF_MAX - MOST_SHIFT;
    return shifted_finish(fits ? malloc(size + MOST_SHIFT) : NULL, size, shift);
}
UNUSED static inline void *shifted_calloc(size_t size, size_t shift)
{
    bool fits = size <= PTRDIFF_MAX - MOST_SHIFT;
    return shifted_finish(fits ? calloc(1, size + MOST_SHIFT) : NULL, size, shift);
}
FUNCTION_RETURNS(malloc, aligned, shifted_malloc(size, BASE_HEADER));
FUNCTION(free, aligned)
{
    if (p != NULL)
        free((char *)p - shifted_header(p).shift);
}
FUNCTION_RETURNS(calloc, aligned, shifted_calloc(product(nelem, elsize), BASE_HEADER));
DERIVE_REALLOC(aligned, shifted_size);

UNUSED static inline void *shifted_realloc_to(void *p, size_t size, size_t shift)
{
    size_t old = p != NULL ? shifted_size(p) : 0;
    return move_to(shifted_malloc(size, shift), p, min(old, size), aligned_free);
}

#endif
