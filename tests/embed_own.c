/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A handler with what can be wrong with one, for tests/embed_demo.py, which says what HANDLER,
 * VERSION, REALLOC, LOSES and GETTER are.
 */
#include "nep49.h"

#include <stdlib.h>

static void *own_malloc(void *ctx, size_t size)
{
    static void *volatile lost;
    static int calls;
    (void)ctx;
    if (LOSES && calls++ == 0)
        lost = malloc(1234);
    lost = NULL;
    return malloc(size);
}

static void *own_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    return calloc(nelem, elsize);
}

static void *own_realloc(void *ctx, void *ptr, size_t size)
{
    (void)ctx;
    return realloc(ptr, size > 0 ? size : 1);
}

static void own_free(void *ctx, void *ptr, size_t size)
{
    (void)ctx, (void)size;
    free(ptr);
}

NEP49_EXPORT PyDataMem_Handler HANDLER = {
    .name = "gut \xc3\xb6",
    .version = VERSION,
    .allocator = {NULL, own_malloc, own_calloc, REALLOC, own_free},
};

#if GETTER
PyDataMem_Handler *nep49_get_handler(const char **why)
{
    *why = "no such device";
    return NULL;
}
#endif
