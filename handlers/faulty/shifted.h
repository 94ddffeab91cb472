/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A sound handler for mutants to spoil: every block begins at a chosen distance from what libc
 * gave, from 16 bytes on, and remembers it.
 */
#ifndef CONFORM_FAULTY_SHIFTED_H
#define CONFORM_FAULTY_SHIFTED_H

#include "base.h"

enum { MOST_SHIFT = 64 };

struct shifted {
    size_t size, shift;
};

/* May be unaligned: the header is copied. */
UNUSED static inline struct shifted shifted_header(const void *p)
{
    struct shifted header;
    memcpy(&header, (const char *)p - sizeof header, sizeof header);
    return header;
}

UNUSED static inline void *shifted_malloc(size_t size, size_t shift)
{
    struct shifted header = {size, shift};
    char *raw = size <= PTRDIFF_MAX - MOST_SHIFT ? malloc(size + MOST_SHIFT) : NULL;
    return raw != NULL
               ? (char *)memcpy(raw + shift - sizeof header, &header, sizeof header) + sizeof header
               : NULL;
}

UNUSED static void shifted_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    if (p != NULL)
        free((char *)p - shifted_header(p).shift);
}

UNUSED static inline void *shifted_realloc_to(void *p, size_t size, size_t shift)
{
    void *moved = shifted_malloc(size, shift);
    if (p == NULL || moved == NULL)
        return moved;
    size_t old = shifted_header(p).size;
    memcpy(moved, p, old < size ? old : size);
    shifted_free(NULL, p, old);
    return moved;
}

/* Aligned as libc's blocks are: where a mutant's defect is elsewhere. */
UNUSED static void *shifted_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return shifted_realloc_to(p, size, BASE_HEADER);
}

UNUSED static inline void *shifted_calloc_at(size_t nelem, size_t elsize, size_t shift)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    void *p = shifted_malloc(size, shift);
    return p != NULL ? memset(p, 0, size) : NULL;
}

UNUSED static void *shifted_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    return shifted_calloc_at(nelem, elsize, BASE_HEADER);
}

#endif
