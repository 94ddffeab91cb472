/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nep49_advise.h - asks the kernel for huge pages for large blocks, as NumPy's default handler
 * does.
 *
 *     void *block = nep49_advise(malloc(size), size);
 *
 * Most kernels give transparent huge pages only to memory for which a program asks, and without
 * them the first touch of a large array takes several times as long.  NumPy asks for them from
 * 4 MiB on, but for its default handler alone.  NUMPY_MADVISE_HUGEPAGE=0 in the environment when
 * the program starts turns it off, in NumPy and here.  Nothing to link; Linux.
 */
#ifndef NEP49_ADVISE_H
#define NEP49_ADVISE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NEP49_ADVISE_FROM = 4 << 20 };

static uintptr_t nep49_advise_page; /* 0: no advice is given */

/* When the object is loaded: later on another thread may be changing the environment. */
__attribute__((constructor)) static void nep49_advise_begin(void)
{
    const char *text = getenv("NUMPY_MADVISE_HUGEPAGE");

    if (text == NULL || strtol(text, NULL, 10) != 0)
        nep49_advise_page = (uintptr_t)sysconf(_SC_PAGESIZE);
}

/* Returns p, which may be NULL.  Nobody has written to it yet, or the pages that were touched stay
 * small ones.  The page in which it begins is advised as well, which NumPy leaves out: pages that
 * are not alike make two mappings of one, and mremap, by which libc's realloc grows large blocks,
 * moves one alone. */
static inline void *nep49_advise(void *p, size_t size)
{
    if (p != NULL && size >= NEP49_ADVISE_FROM && nep49_advise_page != 0) {
        uintptr_t before = (uintptr_t)p % nep49_advise_page;
        madvise((char *)p - before, before + size, MADV_HUGEPAGE); /* refused, it is still memory */
    }
    return p;
}

#endif
