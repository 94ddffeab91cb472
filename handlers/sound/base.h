/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A plain sound handler: a header of 16 bytes before each block keeps its size.  The handlers of
 * this folder are correct ones of unusual build, for which every verdict has to be PASS or a
 * reasoned SKIP (or a WARN that large blocks are not advised, which unusual ones may leave); the
 * mutants in ../faulty are this one with a defect each.
 *
 * A sound handler is one SOUND block.  All of them end up in one object:
 *
 *     ./conform --handler handlers/sound/.libs/sound.so:always_moves
 */
#ifndef CONFORM_SOUND_BASE_H
#define CONFORM_SOUND_BASE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "nep49.h"
#include "nep49_advise.h"

/* Naming a function twice is how one of the base's is replaced. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Winitializer-overrides"
#else
#pragma GCC diagnostic ignored "-Woverride-init"
#endif

#define BASE_FUNCTIONS                                                                             \
    .malloc = base_malloc, .calloc = base_calloc, .realloc = base_realloc, .free = base_free

/* SOUND(name, .malloc = its_malloc, ...): a handler that is the base's but for the allocator
 * members named, under that symbol. */
#define SOUND(symbol, ...)                                                                         \
    NEP49_EXPORT PyDataMem_Handler symbol = {                                                      \
        .name = #symbol, .version = 1, .allocator = {BASE_FUNCTIONS, __VA_ARGS__}}

#define UNUSED __attribute__((unused))

enum { BASE_HEADER = 16 };

/* The size that a live block of the base was last given. */
UNUSED static inline size_t base_size(const void *p)
{
    size_t size;
    memcpy(&size, (const char *)p - BASE_HEADER, sizeof size);
    return size;
}

UNUSED static inline void *base_finish(void *raw, size_t size)
{
    if (raw == NULL)
        return NULL;
    memcpy(raw, &size, sizeof size);
    return (char *)raw + BASE_HEADER;
}

UNUSED static void *base_malloc(void *ctx, size_t size)
{
    (void)ctx;
    if (size > PTRDIFF_MAX - BASE_HEADER)
        return NULL;
    return base_finish(nep49_advise(malloc(size + BASE_HEADER), size), size);
}

UNUSED static void *base_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    (void)ctx;
    if (__builtin_mul_overflow(nelem, elsize, &size) || size > PTRDIFF_MAX - BASE_HEADER)
        return NULL;
    return base_finish(nep49_advise(calloc(1, size + BASE_HEADER), size), size);
}

UNUSED static void *base_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    if (size > PTRDIFF_MAX - BASE_HEADER)
        return NULL;
    return base_finish(realloc(p != NULL ? (char *)p - BASE_HEADER : NULL, size + BASE_HEADER),
                       size);
}

UNUSED static void base_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    int saved = errno;
    if (p != NULL)
        free((char *)p - BASE_HEADER);
    errno = saved;
}

#endif
