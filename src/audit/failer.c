/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counting requests, and refusing.
 */
#include "failer.h"

#include "shim.h"

static bool refuses(struct failer *failer, unsigned function)
{
    if (failer->nth == 0 || (failer->functions & function) == 0)
        return false;
    size_t request = atomic_fetch_add(&failer->requests, 1) + 1;
    if (request != failer->nth && !(failer->onwards && request > failer->nth))
        return false;
    failer->refused++;
    return true;
}

static void *failing_malloc(void *ctx, size_t size)
{
    struct failer *failer = ctx;
    const PyDataMemAllocator *inner = &failer->inner->allocator;
    void *p = refuses(failer, REFUSE_MALLOC) ? NULL : inner->malloc(inner->ctx, size);
    shim_show_through(&failer->handler, failer->inner);
    return p;
}

static void *failing_calloc(void *ctx, size_t nelem, size_t elsize)
{
    struct failer *failer = ctx;
    const PyDataMemAllocator *inner = &failer->inner->allocator;
    void *p = refuses(failer, REFUSE_CALLOC) ? NULL : inner->calloc(inner->ctx, nelem, elsize);
    shim_show_through(&failer->handler, failer->inner);
    return p;
}

static void *failing_realloc(void *ctx, void *old, size_t size)
{
    struct failer *failer = ctx;
    const PyDataMemAllocator *inner = &failer->inner->allocator;
    void *p = refuses(failer, REFUSE_REALLOC) ? NULL : inner->realloc(inner->ctx, old, size);
    shim_show_through(&failer->handler, failer->inner);
    return p;
}

static void passing_free(void *ctx, void *p, size_t size)
{
    struct failer *failer = ctx;
    failer->inner->allocator.free(failer->inner->allocator.ctx, p, size);
    shim_show_through(&failer->handler, failer->inner);
}

void failer_init(struct failer *failer, PyDataMem_Handler *inner)
{
    *failer = (struct failer){.handler = *inner, .inner = inner};
    failer->handler.allocator =
        (PyDataMemAllocator){failer, failing_malloc, failing_calloc, failing_realloc, passing_free};
}

void failer_refuse(struct failer *failer, size_t nth, bool onwards, unsigned functions)
{
    failer->nth = nth;
    failer->onwards = onwards;
    failer->functions = functions;
    failer->requests = 0;
    failer->refused = 0;
}
