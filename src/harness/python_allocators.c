/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Wraps Python's allocators.  Unlike Python's debug hooks the wrappers add nothing to a block, so
 * they can be installed at any time.
 */
#include <string.h>

#include "harness/interpose.h"
#include "harness/property_child.h"
#include "python/api.h"

static struct domain {
    const char *name;
    PyMemAllocatorEx next;
} domains[] = {[PYMEM_DOMAIN_RAW] = {.name = "PyMem_Raw"},
               [PYMEM_DOMAIN_MEM] = {.name = "PyMem_"},
               [PYMEM_DOMAIN_OBJ] = {.name = "PyObject_"}};
enum { DOMAINS = PYMEM_DOMAIN_OBJ + 1 };

/* Called before each function; if it returns true a request is refused. */
static bool (*before)(const char *domain, const char *function);

static void *wrapped_malloc(void *ctx, size_t size)
{
    const struct domain *d = ctx;
    return before(d->name, "Malloc") ? NULL : d->next.malloc(d->next.ctx, size);
}

static void *wrapped_calloc(void *ctx, size_t nelem, size_t elsize)
{
    const struct domain *d = ctx;
    return before(d->name, "Calloc") ? NULL : d->next.calloc(d->next.ctx, nelem, elsize);
}

static void *wrapped_realloc(void *ctx, void *p, size_t size)
{
    const struct domain *d = ctx;
    return before(d->name, "Realloc") ? NULL : d->next.realloc(d->next.ctx, p, size);
}

static void wrapped_free(void *ctx, void *p)
{
    const struct domain *d = ctx;
    before(d->name, "Free");
    d->next.free(d->next.ctx, p);
}

static void wrap(PyMemAllocatorDomain first)
{
    for (int i = first; i < DOMAINS; i++) {
        PyMemAllocatorEx wrapped = {&domains[i], wrapped_malloc, wrapped_calloc, wrapped_realloc,
                                    wrapped_free};
        PyMem_GetAllocator((PyMemAllocatorDomain)i, &domains[i].next);
        PyMem_SetAllocator((PyMemAllocatorDomain)i, &wrapped);
    }
}

static bool check_gil(const char *domain, const char *function)
{
    if (interpose_depth > 0 && !PyGILState_Check())
        fail("the handler not to call Python's allocators without the GIL", "it called %s%s",
             domain, function);
    return false;
}

void gil_watch(void)
{
    before = check_gil;
    wrap(PYMEM_DOMAIN_MEM);
}

static size_t nth_request, requests;

static bool is_nth(const char *domain, const char *function)
{
    (void)domain;
    return strcmp(function, "Free") != 0 && ++requests == nth_request;
}

void python_allocators_refuse(size_t nth)
{
    nth_request = nth;
    requests = 0;
    before = is_nth;
    wrap(PYMEM_DOMAIN_RAW);
}

bool python_allocators_restore(void)
{
    for (int i = 0; i < DOMAINS; i++)
        PyMem_SetAllocator((PyMemAllocatorDomain)i, &domains[i].next);
    return requests >= nth_request;
}
