/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A plain handler that lets each block end at a page without access, for mutants that claim
 * a guard and fall short of it.  Freed addresses are never used again.
 */
#ifndef CONFORM_FAULTY_GUARDED_H
#define CONFORM_FAULTY_GUARDED_H

#include <sys/mman.h>

#include "base.h"

enum { PAGE = 4096 };

struct guarded {
    char *map;
    size_t length, size, unused;
};

static struct guarded *guarded_header(void *block)
{
    return (struct guarded *)block - 1;
}

/* `gap` bytes stay between the block and the page. */
UNUSED static void *guarded_new(size_t size, size_t gap)
{
    if (size > PTRDIFF_MAX - 4 * PAGE)
        return NULL;
    size_t rounded = (size + 15) / 16 * 16 + gap;
    size_t body = (rounded + sizeof(struct guarded) + PAGE - 1) / PAGE * PAGE;
    char *map = mmap(NULL, body + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    if (mprotect(map + body, PAGE, PROT_NONE) != 0) {
        munmap(map, body + PAGE);
        return NULL;
    }
    char *block = map + body - rounded;
    *guarded_header(block) = (struct guarded){.map = map, .length = body + PAGE, .size = size};
    return block;
}

UNUSED static void *guarded_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return guarded_new(size, 0);
}

UNUSED static void guarded_free(void *ctx, void *block, size_t size)
{
    (void)ctx, (void)size;
    int saved = errno;
    if (block != NULL) {
        struct guarded header = *guarded_header(block);
        if (mmap(header.map, header.length, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
            munmap(header.map, header.length);
    }
    errno = saved;
}

/* calloc and realloc in terms of a mutant's own malloc and free. */
#define GUARDED_REST(own_malloc, own_free, claim)                                                  \
    static void *own_calloc(void *ctx, size_t nelem, size_t elsize)                                \
    {                                                                                              \
        size_t size;                                                                               \
        return __builtin_mul_overflow(nelem, elsize, &size) ? NULL : own_malloc(ctx, size);        \
    }                                                                                              \
    static void *own_realloc(void *ctx, void *block, size_t size)                                  \
    {                                                                                              \
        void *moved = own_malloc(ctx, size);                                                       \
        if (block == NULL || moved == NULL)                                                        \
            return moved;                                                                          \
        size_t old = guarded_header(block)->size;                                                  \
        memcpy(moved, block, old < size ? old : size);                                             \
        own_free(ctx, block, 0);                                                                   \
        return moved;                                                                              \
    }                                                                                              \
    NEP49_EXPORT const char nep49_claims[] = claim;                                                \
    NEP49_EXPORT PyDataMem_Handler nep49_handler = {                                               \
        .name = "guarded",                                                                         \
        .version = 1,                                                                              \
        .allocator = {NULL, own_malloc, own_calloc, own_realloc, own_free}}

#endif
