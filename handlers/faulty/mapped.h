/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A sound handler for mutants to spoil: each block of a mebibyte or more is a mapping of its own,
 * which realloc resizes by mremap.
 */
#ifndef CONFORM_FAULTY_MAPPED_H
#define CONFORM_FAULTY_MAPPED_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* mremap */
#endif
#include <pthread.h>
#include <sys/mman.h>

#include "base.h"

enum { MAPPED_FROM = 1 << 20, MAPPED_PAGE = 4096 };

UNUSED static inline bool is_mapped(const void *p)
{
    return p != NULL && base_size(p) >= MAPPED_FROM;
}

/* What is beyond is for libc to refuse. */
#define MAPPED_MOST ((size_t)PTRDIFF_MAX - (1 << 20))

UNUSED static inline bool is_for_mapping(size_t size)
{
    return size >= MAPPED_FROM && size <= MAPPED_MOST;
}

/* The second word of the header is the length of the mapping. */
UNUSED static inline size_t mapped_length(const void *p)
{
    size_t length;
    memcpy(&length, (const char *)p - 8, sizeof length);
    return length;
}

UNUSED static inline void *mapped_finish(char *map, size_t length, size_t size)
{
    if (map == MAP_FAILED)
        return NULL;
    memcpy(map + 8, &length, sizeof length);
    return base_finish(map, size);
}

UNUSED static inline size_t pages_for(size_t size)
{
    return (size + BASE_HEADER + MAPPED_PAGE - 1) / MAPPED_PAGE * MAPPED_PAGE;
}

UNUSED static void *map_new(size_t size)
{
    size_t length = pages_for(size);
    char *map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mapped_finish(map, length, size);
}

UNUSED static void *mapped_malloc(void *ctx, size_t size)
{
    return is_for_mapping(size) ? map_new(size) : base_malloc(ctx, size);
}

UNUSED static void *mapped_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    return is_for_mapping(size) ? map_new(size) : base_calloc(ctx, nelem, elsize);
}

UNUSED static void mapped_free(void *ctx, void *p, size_t size)
{
    int saved = errno;
    if (is_mapped(p))
        munmap((char *)p - BASE_HEADER, mapped_length(p));
    else
        base_free(ctx, p, size);
    errno = saved;
}

/* Says that of a mapping of `old` bytes so much is there. */
UNUSED static void *mapped_resize(void *p, size_t old, size_t size)
{
    return mapped_finish(mremap((char *)p - BASE_HEADER, old, pages_for(size), MREMAP_MAYMOVE),
                         pages_for(size), size);
}

/* A new block by `make`, the first bytes of the old one, and the old one freed by `drop`. */
UNUSED static void *move_by(void *(*make)(void *, size_t), void (*drop)(void *, void *, size_t),
                            void *p, size_t size)
{
    void *moved = make(NULL, size);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    drop(NULL, p, 0);
    return moved;
}

UNUSED static void *mapped_realloc(void *ctx, void *p, size_t size)
{
    if (is_mapped(p) && is_for_mapping(size))
        return mapped_resize(p, mapped_length(p), size);
    return is_mapped(p) || is_for_mapping(size) ? move_by(mapped_malloc, mapped_free, p, size)
                                                : base_realloc(ctx, p, size);
}

#define MAPPED_FUNCTIONS                                                                           \
    .malloc = mapped_malloc, .calloc = mapped_calloc, .realloc = mapped_realloc, .free = mapped_free

/* One mapping that was freed, for whoever wants a large block next. */
struct kept_mapping {
    pthread_mutex_t lock;
    char *block;
};

/* Puts p there, NULL too, and returns what was there. */
UNUSED static void *exchange_kept(struct kept_mapping *kept, void *p)
{
    pthread_mutex_lock(&kept->lock);
    void *before = kept->block;
    kept->block = p;
    pthread_mutex_unlock(&kept->lock);
    return before;
}

/* The one that is kept, where it is large enough, with its header, or NULL. */
UNUSED static void *take_kept(struct kept_mapping *kept, size_t size)
{
    char *p = is_for_mapping(size) ? exchange_kept(kept, NULL) : NULL;
    if (p != NULL && mapped_length(p) >= pages_for(size))
        return base_finish(p - BASE_HEADER, size);
    mapped_free(NULL, p, 0);
    return NULL;
}

#endif
