/* SPDX-License-Identifier: BSD-3-Clause
 *
 * libc's allocator as a handler, for what is measured beside it.
 */
#ifndef TESTS_LIBC_HANDLER_H
#define TESTS_LIBC_HANDLER_H

#include <stdlib.h>

#include "nep49.h"

/* NumPy's default handler is four such wrappers as well. */
static void *libc_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return malloc(size);
}

static void *libc_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    return calloc(nelem, elsize);
}

static void *libc_realloc(void *ctx, void *ptr, size_t new_size)
{
    (void)ctx;
    return realloc(ptr, new_size);
}

static void libc_free(void *ctx, void *ptr, size_t size)
{
    (void)ctx;
    (void)size;
    free(ptr);
}

static PyDataMem_Handler libc_handler = {
    .name = "libc",
    .version = 1,
    .allocator = {NULL, libc_malloc, libc_calloc, libc_realloc, libc_free},
};

#endif
