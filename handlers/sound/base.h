/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A plain sound handler: a header of 16 bytes before each block keeps its size.  The handlers of
 * this folder are correct ones of unusual build, for which every verdict has to be PASS or a
 * reasoned SKIP (or a WARN that large blocks are not advised); the mutants in ../faulty are this
 * one with a defect each.
 *
 * A sound handler is one SOUND block.  All of them are symbols of one object:
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

/* SOUND(name, FUNCTIONS(pool, malloc, free)): a handler under that symbol with these functions and,
 * for the others, the base's. */
#define SOUND(symbol, ...)                                                                         \
    NEP49_EXPORT PyDataMem_Handler symbol = HANDLER(symbol, base, __VA_ARGS__)

/* HANDLER(name, pool, FUNCTIONS(other, free)): the initializer of a struct with the functions of a
 * pool, some of which later members replace. */
#define HANDLER(symbol, pool, ...)                                                                 \
    {                                                                                              \
        .name = #symbol, .version = 1, .allocator = { FUNCTIONS(pool), __VA_ARGS__ }               \
    }

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

/* FUNCTION_RETURNS(malloc, pool, expression): pool_malloc, which returns it.
 * FUNCTION_FREES(pool, condition): pool_free, which is the base's if the condition holds. */
#define FUNCTION_RETURNS(function, pool, ...)                                                      \
    FUNCTION(function, pool)                                                                       \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }                                                                                              \
    FUNCTION(function, pool)
#define FUNCTION_FREES(pool, ...)                                                                  \
    FUNCTION(free, pool)                                                                           \
    {                                                                                              \
        if (__VA_ARGS__)                                                                           \
            base_free(ctx, p, size);                                                               \
    }                                                                                              \
    FUNCTION(free, pool)

UNUSED static inline size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* nelem * elsize, or SIZE_MAX if that wraps: no block can be that large. */
UNUSED static inline size_t product(size_t nelem, size_t elsize)
{
    size_t size;
    return __builtin_mul_overflow(nelem, elsize, &size) ? SIZE_MAX : size;
}

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
        void *p = pool##_malloc(ctx, product(nelem, elsize));                                      \
        return p != NULL ? memset(p, 0, nelem * elsize) : NULL;                                    \
    }                                                                                              \
    FUNCTION(calloc, pool)
#define DERIVE_REALLOC(pool, size_of)                                                              \
    FUNCTION(realloc, pool)                                                                        \
    {                                                                                              \
        void *moved = pool##_malloc(ctx, size);                                                    \
        if (p == NULL || moved == NULL)                                                            \
            return moved;                                                                          \
        size_t old = size_of(p);                                                                   \
        memcpy(moved, p, min(old, size));                                                          \
        pool##_free(ctx, p, old);                                                                  \
        return moved;                                                                              \
    }                                                                                              \
    FUNCTION(realloc, pool)

enum { BASE_HEADER = 16 };
enum { KIB = 1 << 10, MIB = 1 << 20 };

/* The size of the live block p. */
UNUSED static inline size_t base_size(const void *p)
{
    size_t size;
    memcpy(&size, (const char *)p - BASE_HEADER, sizeof size);
    return size;
}

/* Sets the size of the live block p, and returns p. */
UNUSED static inline void *base_resize(void *p, size_t size)
{
    memcpy((char *)p - BASE_HEADER, &size, sizeof size);
    return p;
}

/* The block of which the header is at `raw`; NULL if that is NULL. */
UNUSED static inline void *base_finish(void *raw, size_t size)
{
    return raw != NULL ? base_resize((char *)raw + BASE_HEADER, size) : NULL;
}

FUNCTION(malloc, base)
{
    if (size > PTRDIFF_MAX - BASE_HEADER)
        return NULL;
    return base_finish(nep49_advise(malloc(size + BASE_HEADER), size), size);
}
FUNCTION(calloc, base)
{
    size_t size = product(nelem, elsize);
    if (size > PTRDIFF_MAX - BASE_HEADER)
        return NULL;
    return base_finish(nep49_advise(calloc(1, size + BASE_HEADER), size), size);
}
FUNCTION(realloc, base)
{
    if (size > PTRDIFF_MAX - BASE_HEADER)
        return NULL;
    return base_finish(realloc(p != NULL ? (char *)p - BASE_HEADER : NULL, size + BASE_HEADER),
                       size);
}
FUNCTION(free, base)
{
    int saved = errno;
    if (p != NULL)
        free((char *)p - BASE_HEADER);
    errno = saved;
}

#endif
