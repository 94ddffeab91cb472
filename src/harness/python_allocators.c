/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Standing before Python's allocators of the two domains that want the GIL.  Unlike Python's own
 * debug hooks these add nothing to a block, so they can be set at any time.
 */
#include "harness/python_allocators.h"

#include "harness/interpose.h"
#include "harness/property_child.h"
#include "python/api.h"
#include "python/python.h"

/* What stood there before, in the order of `domains`. */
static const PyMemAllocatorDomain domains[] = {PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};
enum { DOMAINS = sizeof domains / sizeof *domains };
static PyMemAllocatorEx before[DOMAINS];

static void check(const PyMemAllocatorEx *allocator, const char *function)
{
    if (interpose_depth > 0 && !PyGILState_Check())
        fail("the handler not to call Python's allocators without the GIL", "it called %s_%s",
             allocator == &before[0] ? "PyMem" : "PyObject", function);
}

static void *checked_malloc(void *ctx, size_t size)
{
    PyMemAllocatorEx *a = ctx;
    check(a, "Malloc");
    return a->malloc(a->ctx, size);
}

static void *checked_calloc(void *ctx, size_t nelem, size_t elsize)
{
    PyMemAllocatorEx *a = ctx;
    check(a, "Calloc");
    return a->calloc(a->ctx, nelem, elsize);
}

static void *checked_realloc(void *ctx, void *p, size_t size)
{
    PyMemAllocatorEx *a = ctx;
    check(a, "Realloc");
    return a->realloc(a->ctx, p, size);
}

static void checked_free(void *ctx, void *p)
{
    PyMemAllocatorEx *a = ctx;
    check(a, "Free");
    a->free(a->ctx, p);
}

void gil_watch(void)
{
    for (int i = 0; i < DOMAINS; i++) {
        PyMemAllocatorEx checked = {&before[i], checked_malloc, checked_calloc, checked_realloc,
                                    checked_free};
        PyMem_GetAllocator(domains[i], &before[i]);
        PyMem_SetAllocator(domains[i], &checked);
    }
}
