/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The pool `mapped`: each block of a mebibyte or more is a mapping of its own, which realloc
 * resizes by mremap.
 */
#ifndef CONFORM_FAULTY_MAPPED_H
#define CONFORM_FAULTY_MAPPED_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* mremap */
#endif
#include <sys/mman.h>

#include "mutant.h"

enum { MAPPED_FROM = MIB, MAPPED_PAGE = 4096 };

/* Larger requests are left to libc, which refuses them. */
#define MAPPED_MOST ((size_t)PTRDIFF_MAX - MIB)

/* The note of a mapped block is the length of its mapping. */
#define mapped_length base_note

UNUSED static inline bool is_mapped(const void *p)
{
    return p != NULL && base_size(p) >= MAPPED_FROM;
}
UNUSED static inline bool is_for_mapping(size_t size)
{
    return size >= MAPPED_FROM && size <= MAPPED_MOST;
}
UNUSED static inline char *mapping_of(const void *p)
{
    return (char *)p - BASE_HEADER;
}
UNUSED static inline size_t pages_for(size_t size)
{
    return (size + BASE_HEADER + MAPPED_PAGE - 1) / MAPPED_PAGE * MAPPED_PAGE;
}

/* The block at the beginning of a mapping; NULL if the mapping failed. */
UNUSED static inline void *mapped_finish(char *map, size_t length, size_t size)
{
    return map != MAP_FAILED ? base_set_note(base_finish(map, size), length) : NULL;
}

/* MAP_FAILED on failure. */
UNUSED static inline char *map_pages(size_t length)
{
    return mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Addresses for a pool, or NULL. */
UNUSED static inline char *map_pool(size_t length)
{
    void *map = mmap(NULL, length, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return map != MAP_FAILED ? map : NULL;
}

UNUSED static void *map_new(size_t size)
{
    return mapped_finish(map_pages(pages_for(size)), pages_for(size), size);
}

FUNCTION_RETURNS(malloc, mapped, is_for_mapping(size) ? map_new(size) : base_malloc(ctx, size));
FUNCTION_RETURNS(calloc, mapped,
                 is_for_mapping(product(nelem, elsize)) ? map_new(nelem *elsize)
                                                        : base_calloc(ctx, nelem, elsize));
FUNCTION(free, mapped)
{
    int saved = errno;
    if (is_mapped(p))
        munmap(mapping_of(p), mapped_length(p));
    else
        base_free(ctx, p, size);
    errno = saved;
}

/* Resizes a mapping of which `old` bytes are kept. */
UNUSED static void *mapped_resize(void *p, size_t old, size_t size)
{
    return mapped_finish(mremap(mapping_of(p), old, pages_for(size), MREMAP_MAYMOVE),
                         pages_for(size), size);
}

/* A new block by `make` with the first bytes of p, which `drop` frees. */
#define move_by(make, drop, p, size)                                                               \
    move_to(make(NULL, size), p, (p) != NULL ? min(base_size(p), size) : 0, drop)

FUNCTION(realloc, mapped)
{
    if (is_mapped(p) && is_for_mapping(size))
        return mapped_resize(p, mapped_length(p), size);
    return is_mapped(p) || is_for_mapping(size) ? move_by(mapped_malloc, mapped_free, p, size)
                                                : base_realloc(ctx, p, size);
}

/* A cache of one freed mapping. */
UNUSED static void *kept_mapping;

/* The kept mapping if it is large enough, or NULL. */
UNUSED static void *take_kept(size_t size)
{
    char *p = is_for_mapping(size) ? swap(&kept_mapping, NULL) : NULL;
    if (p != NULL && mapped_length(p) >= pages_for(size))
        return base_resize(p, size);
    mapped_free(NULL, p, 0);
    return NULL;
}

/* The pool `kept`: mapped, and the last mapping that was freed is used for the next malloc. */
FUNCTION(malloc, kept)
{
    void *p = take_kept(size);
    return p != NULL ? p : mapped_malloc(ctx, size);
}
#define kept_calloc mapped_calloc
#define kept_realloc mapped_realloc
FUNCTION_RETURNS(free, kept, mapped_free(ctx, is_mapped(p) ? swap(&kept_mapping, p) : p, size));

/* KEEPS_FROM(prefix, least): a free that keeps mappings of blocks of `least` bytes or more. */
#define KEEPS_FROM(prefix, least)                                                                  \
    FUNCTION_RETURNS(free, prefix,                                                                 \
                     is_mapped(p) && base_size(p) >= (least) ? kept_free(ctx, p, size)             \
                                                             : mapped_free(ctx, p, size))

#endif
