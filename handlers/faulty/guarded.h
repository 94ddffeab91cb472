/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The pool `guarded`: each block ends at a page without access, and no address is used again.
 */
#ifndef CONFORM_FAULTY_GUARDED_H
#define CONFORM_FAULTY_GUARDED_H

#include "mapped.h"

enum { PAGE = 4096 };

struct guarded {
    char *map;
    size_t length, size, unused;
};
#define guarded_header(p) ((struct guarded *)(p)-1)
#define guarded_size(p) (guarded_header(p)->size)

/* A block with `gap` bytes between its end and the page. */
UNUSED static void *guarded_new(size_t size, size_t gap)
{
    if (size > PTRDIFF_MAX - 4 * PAGE)
        return NULL;
    size_t rounded = (size + 15) / 16 * 16 + gap;
    size_t body = (rounded + sizeof(struct guarded) + PAGE - 1) / PAGE * PAGE;
    char *map = map_pages(body + PAGE);
    if (map == MAP_FAILED)
        return NULL;
    if (mprotect(map + body, PAGE, PROT_NONE) != 0) {
        munmap(map, body + PAGE);
        return NULL;
    }
    char *p = map + body - rounded;
    *guarded_header(p) = (struct guarded){.map = map, .length = body + PAGE, .size = size};
    return p;
}

FUNCTION_RETURNS(malloc, guarded, guarded_new(size, 0));
FUNCTION(free, guarded)
{
    int saved = errno;
    if (p != NULL) {
        struct guarded header = *guarded_header(p);
        if (mmap(header.map, header.length, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
            munmap(header.map, header.length);
    }
    errno = saved;
}

/* A mutant with malloc and free of a pool of such blocks. */
#define GUARDED(defect, pool)                                                                      \
    DERIVE_CALLOC(pool);                                                                           \
    DERIVE_REALLOC(pool, guarded_size);                                                            \
    MUTANT(defect, "claim.guard", FUNCTIONS(pool))

#endif
