/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mimalloc.c - arrays from mimalloc, and nothing else: the program keeps its own malloc.
 *
 * mimalloc reads the variables MIMALLOC_*.
 */
#include <errno.h>
#include <mimalloc.h>

#include "nep49.h"
#include "nep49_advise.h"

/* What is more than any object can be it would refuse as well, but with a line on stderr. */
static void *mimalloc_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return size <= PTRDIFF_MAX ? nep49_advise(mi_malloc(size), size) : NULL;
}

static void *mimalloc_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;

    (void)ctx;
    if (__builtin_mul_overflow(nelem, elsize, &size) || size > PTRDIFF_MAX)
        return NULL;
    /* Not mi_zalloc: valgrind knows only malloc's kin by their code. */
    return nep49_advise(mi_calloc(1, size), size);
}

static void *mimalloc_realloc(void *ctx, void *ptr, size_t new_size)
{
    (void)ctx;
    return new_size <= PTRDIFF_MAX ? mi_realloc(ptr, new_size) : NULL;
}

static void mimalloc_free(void *ctx, void *ptr, size_t size)
{
    int saved = errno;

    (void)ctx;
    (void)size; /* a guess of NumPy's, and not needed */
    mi_free(ptr);
    errno = saved;
}

NEP49_EXPORT PyDataMem_Handler nep49_handler = {
    .name = "mimalloc",
    .version = 1,
    .allocator = {NULL, mimalloc_malloc, mimalloc_calloc, mimalloc_realloc, mimalloc_free},
};
