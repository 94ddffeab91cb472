/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A plain sound handler: a header of 16 bytes before each block keeps its size.  The handlers of
 * this folder are correct ones of unusual build, for which every verdict has to be PASS or a
 * reasoned SKIP (or a WARN that large blocks are not advised, which unusual ones may leave); the
 * mutants in ../faulty are this one with a defect each.
 *
 * A sound handler is one SOUND block.  All of them end up in one object:
 *
 *     ./conform --handler handlers/sound/sound.so:always_moves
 */
#ifndef CONFORM_SOUND_BASE_H
#define CONFORM_SOUND_BASE_H

#include <errno.h>
#include <pthread.h>
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

/* FUNCTIONS(pool, malloc, free): initializers of these members: `.malloc = pool_malloc` and so on.
 * FUNCTIONS(pool): of all four. */
#define FUNCTIONS(...) FUNCTIONS_COUNTED(__VA_ARGS__, 4, 3, 2, 1, 0, 0)(__VA_ARGS__)
#define FUNCTIONS_COUNTED(pool, a, b, c, d, count, ...) FUNCTIONS_##count
#define FUNCTIONS_0(pool) FUNCTIONS_4(pool, malloc, calloc, realloc, free)
#define FUNCTIONS_1(pool, a) .a = pool##_##a
#define FUNCTIONS_2(pool, a, b) .a = pool##_##a, .b = pool##_##b
#define FUNCTIONS_3(pool, a, b, c) .a = pool##_##a, .b = pool##_##b, .c = pool##_##c
#define FUNCTIONS_4(pool, a, b, c, d) FUNCTIONS_2(pool, a, b), FUNCTIONS_2(pool, c, d)

/* SOUND(name, .malloc = its_malloc, ...): a handler that is the base's but for the allocator
 * members named, under that symbol. */
#define SOUND(symbol, ...)                                                                         \
    NEP49_EXPORT PyDataMem_Handler symbol = {                                                      \
        .name = #symbol, .version = 1, .allocator = {FUNCTIONS(base), __VA_ARGS__}}

#define UNUSED __attribute__((unused))

/* FUNCTION(realloc, pool) { body }: defines pool_realloc.  The parameters are called ctx, p, size,
 * nelem and elsize. */
#define FUNCTION(function, pool) FUNCTION_##function(pool##_##function)
#define FUNCTION_malloc(name) UNUSED static void *name(UNUSED void *ctx, UNUSED size_t size)
#define FUNCTION_calloc(name)                                                                      \
    UNUSED static void *name(UNUSED void *ctx, UNUSED size_t nelem, UNUSED size_t elsize)
#define FUNCTION_realloc(name)                                                                     \
    UNUSED static void *name(UNUSED void *ctx, UNUSED void *p, UNUSED size_t size)
#define FUNCTION_free(name)                                                                        \
    UNUSED static void name(UNUSED void *ctx, UNUSED void *p, UNUSED size_t size)

/* LOCK(mutex): holds the mutex until the end of the block. */
#define LOCK(mutex)                                                                                \
    __attribute__((cleanup(unlock_held))) UNUSED pthread_mutex_t *held_ = &(mutex);                \
    pthread_mutex_lock(held_)
UNUSED static inline void unlock_held(pthread_mutex_t **held)
{
    pthread_mutex_unlock(*held);
}

/* MUTEX(name): a mutex that no other thread holds at a fork. */
#define MUTEX(name)                                                                                \
    static pthread_mutex_t name = PTHREAD_MUTEX_INITIALIZER;                                       \
    static void acquire_##name(void)                                                               \
    {                                                                                              \
        pthread_mutex_lock(&name);                                                                 \
    }                                                                                              \
    static void release_##name(void)                                                               \
    {                                                                                              \
        pthread_mutex_unlock(&name);                                                               \
    }                                                                                              \
    __attribute__((constructor)) static void watch_forks_of_##name(void)                           \
    {                                                                                              \
        pthread_atfork(acquire_##name, release_##name, release_##name);                            \
    }                                                                                              \
    _Static_assert(1, "")

/* DERIVE(pool): defines pool_calloc and pool_realloc by pool_malloc and pool_free.
 * DERIVE_CALLOC multiplies, allocates and clears.  DERIVE_REALLOC always moves the block: it
 * allocates, copies and frees; size_of(p) is the size of the live block p. */
#define DERIVE(pool)                                                                               \
    DERIVE_CALLOC(pool);                                                                           \
    DERIVE_REALLOC(pool, base_size)
#define DERIVE_CALLOC(pool)                                                                        \
    FUNCTION(calloc, pool)                                                                         \
    {                                                                                              \
        size_t size;                                                                               \
        bool is_too_large = __builtin_mul_overflow(nelem, elsize, &size);                          \
        void *p = is_too_large ? NULL : pool##_malloc(ctx, size);                                  \
        return p != NULL ? memset(p, 0, size) : NULL;                                              \
    }                                                                                              \
    FUNCTION(calloc, pool)
#define DERIVE_REALLOC(pool, size_of)                                                              \
    FUNCTION(realloc, pool)                                                                        \
    {                                                                                              \
        void *moved = pool##_malloc(ctx, size);                                                    \
        if (p == NULL || moved == NULL)                                                            \
            return moved;                                                                          \
        size_t old = size_of(p);                                                                   \
        memcpy(moved, p, old < size ? old : size);                                                 \
        pool##_free(ctx, p, old);                                                                  \
        return moved;                                                                              \
    }                                                                                              \
    FUNCTION(realloc, pool)

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
