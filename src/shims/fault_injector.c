/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counting requests, and refusing.
 */
#include "shims/fault_injector.h"

#include "python/python.h"
#include "shims/shim.h"

static bool refuses(struct fault_injector *injector)
{
    if (injector->nth == 0)
        return false;
    size_t request = atomic_fetch_add(&injector->requests, 1) + 1;
    if (request != injector->nth && !(injector->keep_failing && request > injector->nth))
        return false;
    if (injector->refused++ == 0 && injector->where != NULL)
        python_line(injector->where, INJECTOR_LINE);
    return true;
}

static void *failing_malloc(void *ctx, size_t size)
{
    struct fault_injector *injector = ctx;
    const PyDataMemAllocator *inner = &injector->inner->allocator;
    void *p = refuses(injector) ? NULL : inner->malloc(inner->ctx, size);
    shim_show_through(&injector->handler, injector->inner);
    return p;
}

static void *failing_calloc(void *ctx, size_t nelem, size_t elsize)
{
    struct fault_injector *injector = ctx;
    const PyDataMemAllocator *inner = &injector->inner->allocator;
    void *p = refuses(injector) ? NULL : inner->calloc(inner->ctx, nelem, elsize);
    shim_show_through(&injector->handler, injector->inner);
    return p;
}

static void *failing_realloc(void *ctx, void *old, size_t size)
{
    struct fault_injector *injector = ctx;
    const PyDataMemAllocator *inner = &injector->inner->allocator;
    void *p = refuses(injector) ? NULL : inner->realloc(inner->ctx, old, size);
    shim_show_through(&injector->handler, injector->inner);
    return p;
}

static void passing_free(void *ctx, void *p, size_t size)
{
    struct fault_injector *injector = ctx;
    injector->inner->allocator.free(injector->inner->allocator.ctx, p, size);
    shim_show_through(&injector->handler, injector->inner);
}

void fault_injector_init(struct fault_injector *injector, PyDataMem_Handler *inner)
{
    *injector = (struct fault_injector){.handler = *inner, .inner = inner};
    injector->handler.allocator = (PyDataMemAllocator){injector, failing_malloc, failing_calloc,
                                                       failing_realloc, passing_free};
}

void fault_injector_inject(struct fault_injector *injector, size_t nth, bool keep_failing)
{
    injector->nth = nth;
    injector->keep_failing = keep_failing;
    injector->requests = 0;
    injector->refused = 0;
}
