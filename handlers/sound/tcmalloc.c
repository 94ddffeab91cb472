/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A sound handler over gperftools' tcmalloc, by the library's own names.
 *
 * The library defines malloc and operator new as well.  It is opened beside libc (RTLD_LOCAL),
 * whose malloc is found first, and behind libstdc++, which it needs: opened together with it,
 * libstdc++ would take its operator delete from there, and hand it what others have from malloc.
 */
#include <dlfcn.h>
#include <errno.h>
#include <gperftools/tcmalloc.h>
#include <stdint.h>

#include "nep49.h"

#define LIBRARY "libtcmalloc_minimal.so.4"

static struct {
    __typeof__(&tc_malloc) malloc;
    __typeof__(&tc_calloc) calloc;
    __typeof__(&tc_realloc) realloc;
    __typeof__(&tc_free) free; /* not tc_free_sized, which would believe the size */
} tc;

static void *tcmalloc_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return size <= PTRDIFF_MAX ? tc.malloc(size) : NULL;
}

static void *tcmalloc_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;

    (void)ctx;
    if (__builtin_mul_overflow(nelem, elsize, &size) || size > PTRDIFF_MAX)
        return NULL;
    return tc.calloc(1, size);
}

/* Its own frees where the new size is 0, and the caller would then own nothing. */
static void *tcmalloc_realloc(void *ctx, void *ptr, size_t new_size)
{
    (void)ctx;
    return new_size <= PTRDIFF_MAX ? tc.realloc(ptr, new_size + (new_size == 0)) : NULL;
}

static void tcmalloc_free(void *ctx, void *ptr, size_t size)
{
    int saved = errno;

    (void)ctx;
    (void)size;
    tc.free(ptr);
    errno = saved;
}

static PyDataMem_Handler handler = {
    .name = "tcmalloc",
    .version = 1,
    .allocator = {NULL, tcmalloc_malloc, tcmalloc_calloc, tcmalloc_realloc, tcmalloc_free},
};

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
        *why = LIBRARY " has no tc_malloc and its kin";
        return NULL;
    }
    return &handler;
}
