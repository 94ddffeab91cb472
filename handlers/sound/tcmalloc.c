/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A sound handler over gperftools' tcmalloc, by the library's own names.
 *
 * The library defines malloc and operator new as well.  RTLD_LOCAL makes libc's malloc the one that
 * others find.  libstdc++, which it needs, is opened first: it would otherwise use the operator
 * delete of tcmalloc for memory of libc.
 */
#include <dlfcn.h>
#include <gperftools/tcmalloc.h>

#include "base.h"

#define LIBRARY "libtcmalloc_minimal.so.4"

static struct {
    __typeof__(&tc_malloc) malloc;
    __typeof__(&tc_calloc) calloc;
    __typeof__(&tc_realloc) realloc;
    __typeof__(&tc_free) free; /* not tc_free_sized, which trusts the size */
} tc;

FUNCTION_RETURNS(malloc, tcmalloc, size <= PTRDIFF_MAX ? tc.malloc(size) : NULL);
FUNCTION(calloc, tcmalloc)
{
    size_t size = product(nelem, elsize);
    return size <= PTRDIFF_MAX ? tc.calloc(1, size) : NULL;
}
/* Size 0 would free the block. */
FUNCTION_RETURNS(realloc, tcmalloc, size <= PTRDIFF_MAX ? tc.realloc(p, size + (size == 0)) : NULL);
FUNCTION(free, tcmalloc)
{
    int saved = errno;
    tc.free(p);
    errno = saved;
}

static PyDataMem_Handler handler = {
    .name = "tcmalloc", .version = 1, .allocator = {FUNCTIONS(tcmalloc)}};

PyDataMem_Handler *nep49_get_handler(const char **why)
{
    if (tc.free != NULL)
        return &handler;
    void *first = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    void *library = first != NULL ? dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        const char *error = dlerror();
        *why = error != NULL ? error : LIBRARY " cannot be opened";
        return NULL;
    }
    *(void **)&tc.malloc = dlsym(library, "tc_malloc");
    *(void **)&tc.calloc = dlsym(library, "tc_calloc");
    *(void **)&tc.realloc = dlsym(library, "tc_realloc");
    *(void **)&tc.free = dlsym(library, "tc_free");
    if (tc.malloc == NULL || tc.calloc == NULL || tc.realloc == NULL || tc.free == NULL) {
        tc.free = NULL;
        *why = LIBRARY " has no tc_malloc, tc_calloc, tc_realloc and tc_free";
        return NULL;
    }
    return &handler;
}
