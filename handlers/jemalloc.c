/* SPDX-License-Identifier: BSD-3-Clause
 *
 * jemalloc.c - arrays from jemalloc, and nothing else: the program keeps its own malloc.
 *
 * The library is opened when the handler is asked for, not linked with: as it is commonly built it
 * wants more of the memory that the C library sets aside for thread-local variables than is left
 * in a program that has started, and can then be refused with a word on what helps.  jemalloc
 * reads MALLOC_CONF.
 */
#include <dlfcn.h>
#include <errno.h>
#include <jemalloc/jemalloc.h>
#include <string.h>

#include "nep49.h"
#include "nep49_advise.h"
#include "nep49_kept.h"
#include "nep49_setting.h"

#define LIBRARY "libjemalloc.so.2"

/* These take flags, and leave the size 0 undefined.  Not sdallocx, which would believe the size
 * that free is told: NumPy is now and then wrong. */
static struct {
    __typeof__(&mallocx) mallocx;
    __typeof__(&rallocx) rallocx;
    __typeof__(&dallocx) dallocx;
    __typeof__(&nallocx) nallocx;
    __typeof__(&sallocx) sallocx;
} je;

/* Where 8 MiB or more are free side by side jemalloc gives the pages back at once, so that each
 * large temporary pays for all of them anew.  From here on we keep the latest ones. */
enum { LARGE = 4 << 20 };

static int release(void *block, size_t length)
{
    (void)length;
    je.dallocx(block, 0);
    return 0;
}

static void *make(size_t size, int flags)
{
    return nep49_advise(je.mallocx(size + (size == 0), flags), size);
}

static void *jemalloc_malloc(void *ctx, size_t size)
{
    (void)ctx;
    void *kept = size >= LARGE ? nep49_take_kept(je.nallocx(size, 0), release) : NULL;
    return kept ? kept : make(size, 0);
}

static void *jemalloc_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;

    (void)ctx;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    return make(size, MALLOCX_ZERO);
}

static void *jemalloc_realloc(void *ctx, void *ptr, size_t new_size)
{
    if (ptr == NULL)
        return jemalloc_malloc(ctx, new_size);
    return je.rallocx(ptr, new_size + (new_size == 0), 0);
}

static void jemalloc_free(void *ctx, void *ptr, size_t size)
{
    int saved = errno;

    (void)ctx;
    /* Of a size that may be wrong no more is believed than that it is worth a look. */
    size_t length = ptr != NULL && size >= LARGE ? je.sallocx(ptr, 0) : 0;
    if (length >= LARGE)
        nep49_keep(ptr, length, release);
    else if (ptr != NULL)
        je.dallocx(ptr, 0);
    errno = saved;
}

static PyDataMem_Handler handler = {
    .name = "jemalloc",
    .version = 1,
    .allocator = {NULL, jemalloc_malloc, jemalloc_calloc, jemalloc_realloc, jemalloc_free},
};

/* The library, or NULL.  Where its C++ part is built it has an operator new and needs libstdc++,
 * which, loaded along with it, would take memory from jemalloc that NumPy's code then gives to
 * libc (seen with 5.3.1).  Loaded before it, as NumPy loads it too, libstdc++ finds its own. */
static void *open_library(void)
{
    dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL); /* where there is none nobody needs it */
    return dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

PyDataMem_Handler *nep49_get_handler(const char **why)
{
    if (je.dallocx != NULL)
        return &handler;
    void *library = open_library();
    if (library == NULL) {
        const char *error = dlerror();
        return nep49_refuse(
            why, "%.160s%s", error ? error : LIBRARY " cannot be opened",
            error && strstr(error, "static TLS")
                ? "; start the program with GLIBC_TUNABLES=glibc.rtld.optional_static_tls=8192"
                : "");
    }
    *(void **)&je.mallocx = dlsym(library, "mallocx");
    *(void **)&je.rallocx = dlsym(library, "rallocx");
    *(void **)&je.dallocx = dlsym(library, "dallocx");
    *(void **)&je.nallocx = dlsym(library, "nallocx");
    *(void **)&je.sallocx = dlsym(library, "sallocx");
    if (!je.mallocx || !je.rallocx || !je.dallocx || !je.nallocx || !je.sallocx) {
        je.dallocx = NULL;
        return nep49_refuse(why, LIBRARY " has no mallocx and the like: it is older than 3.5, or "
                                         "built with a prefix");
    }
    return &handler;
}
