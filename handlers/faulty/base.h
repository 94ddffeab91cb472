/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sound handler that every mutant is a few lines away from: a header of 16 bytes before each
 * block keeps its size.
 *
 * A mutant is one MUTANT block: its name says the defect, and beside it stand the ids of the
 * properties that must catch it.  All mutants of a file, and all files of this folder that the
 * Makefile lists under faulty.la, end up in one object, handlers/faulty/.libs/faulty.so:
 *
 *     ./conform --handler handlers/faulty/.libs/faulty.so:calloc_ignores_elsize
 *
 * tests/mutants.py runs each and compares.
 */
#ifndef CONFORM_FAULTY_BASE_H
#define CONFORM_FAULTY_BASE_H

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "nep49.h"

/* Naming a function twice is how a mutant replaces one of the base's. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Winitializer-overrides"
#else
#pragma GCC diagnostic ignored "-Woverride-init"
#endif

/* MUTANT(defect, "property.id other.id", .malloc = its_malloc, ...): a handler that is the base's
 * but for the allocator members named, under the symbol `defect`. */
#define MUTANT(defect, kills, ...)                                                                 \
    NEP49_EXPORT const char kills_##defect[] = kills;                                              \
    NEP49_EXPORT PyDataMem_Handler defect = {.name = #defect, .version = 1,                        \
                                             .allocator = {BASE_FUNCTIONS, __VA_ARGS__}}

/* MUTANT_GETTER(defect, "ids"): the same where the object is made by a function, the body of
 * which follows: PyDataMem_Handler *defect(const char **why) { ... } */
#define MUTANT_GETTER(defect, kills)                                                               \
    NEP49_EXPORT const char kills_##defect[] = kills;                                              \
    NEP49_EXPORT PyDataMem_Handler *defect(const char **why);                                      \
    PyDataMem_Handler *defect(const char **why)

#define BASE_FUNCTIONS                                                                             \
    .malloc = base_malloc, .calloc = base_calloc, .realloc = base_realloc, .free = base_free

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
    return base_finish(malloc(size + BASE_HEADER), size);
}

UNUSED static void *base_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    (void)ctx;
    if (__builtin_mul_overflow(nelem, elsize, &size) || size > PTRDIFF_MAX - BASE_HEADER)
        return NULL;
    return base_finish(calloc(1, size + BASE_HEADER), size);
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
