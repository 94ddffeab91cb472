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

UNUSED static inline void *shifted_malloc(size_t size, size_t shift)
{
    struct shifted header = {size, shift};
    char *raw = size <= PTRDIFF_MAX - MOST_SHIFT ? malloc(size + MOST_SHIFT) : NULL;
    if (raw == NULL)
        return NULL;
    memcpy(raw + shift - sizeof header, &header, sizeof header);
    return raw + shift;
}

FUNCTION_RETURNS(malloc, aligned, shifted_malloc(size, BASE_HEADER));
FUNCTION(free, aligned)
{
    if (p != NULL)
        free((char *)p - shifted_header(p).shift);
}
DERIVE_CALLOC(aligned);
DERIVE_REALLOC(aligned, shifted_size);

UNUSED static inline void *shifted_realloc_to(void *p, size_t size, size_t shift)
{
    void *moved = shifted_malloc(size, shift);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(moved, p, min(shifted_size(p), size));
    aligned_free(NULL, p, 0);
    return moved;
}

UNUSED static inline void *shifted_calloc_at(size_t nelem, size_t elsize, size_t shift)
{
    void *p = shifted_malloc(product(nelem, elsize), shift);
    return p != NULL ? memset(p, 0, nelem * elsize) : NULL;
}

#endif
