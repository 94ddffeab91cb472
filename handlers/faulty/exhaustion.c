/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/exhaustion.c catch.
 */
#include "mapped.h"

#include <unistd.h>

/* The header is written before the result of libc's malloc is checked. */
DEFECT(malloc, malloc_unchecked, "exhaustion.nth-request")
{
    if (size > PTRDIFF_MAX - BASE_HEADER)
        return NULL;
    char *raw = malloc(size + BASE_HEADER);
    return base_resize(raw + BASE_HEADER, size);
}

/* The same with a block from valloc, whose address is that of a page. */
DEFECT(calloc, calloc_takes_pages_unchecked, "exhaustion.nth-request")
{
    size_t size = product(nelem, elsize);
    if (size > PTRDIFF_MAX - BASE_HEADER)
        return NULL;
    return memset(base_resize((char *)valloc(size + BASE_HEADER) + BASE_HEADER, size), 0, size);
}

/* The lock stays held if the second request fails. */
DEFECT(calloc, calloc_keeps_lock_on_failure, "exhaustion.nth-request")
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static void *volatile node; /* or the compiler removes the pair */
    pthread_mutex_lock(&lock);
    if ((node = malloc(32)) == NULL)
        return NULL;
    free(node);
    void *p = base_calloc(ctx, nelem, elsize);
    pthread_mutex_unlock(&lock);
    return p;
}

DEFECT(malloc, malloc_leaks_on_failure, "exhaustion.no-leak")
{
    static void *volatile node; /* or the compiler removes the pair */
    node = malloc(48);
    void *p = base_malloc(ctx, size);
    if (p != NULL)
        free(node);
    return p;
}

/* Each block adds a node to a list from which nothing is removed. */
AFTER(
    malloc, malloc_keeps_its_nodes, "exhaustion.balance", made != NULL, static void **list;
    void **node = malloc(2 * sizeof *node); if (node != NULL) {
        node[0] = list;
        node[1] = made;
        list = node;
    });

/* A cache without a bound, which malloc does not use. */
DEFECT(free, free_keeps_without_a_bound, "exhaustion.balance free.reclaims")
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static void *kept;
    if (p == NULL || base_size(p) < sizeof kept || base_size(p) % 8 != 0)
        return base_free(ctx, p, size);
    LOCK(lock);
    memcpy(p, &kept, sizeof kept);
    kept = p;
}

/* The result of mprotect is not checked. */
DEFECT_IN(mapped, malloc, malloc_commits_unchecked, "exhaustion.nth-request")
{
    char *p = mapped_malloc(ctx, size);
    if (is_mapped(p)) {
        mprotect(mapping_of(p), mapped_length(p), PROT_NONE);
        mprotect(mapping_of(p), pages_for(size), PROT_READ | PROT_WRITE);
    }
    return p;
}

/* The block is unmapped if huge pages are refused, and its address is returned. */
AFTER_IN(mapped, malloc, malloc_unmaps_without_huge_pages, "exhaustion.nth-request",
         is_mapped(made) && madvise(mapping_of(made), mapped_length(made), MADV_HUGEPAGE) != 0,
         mapped_free(ctx, made, size));

/* The result of mremap is not checked if the block shrinks. */
DEFECT_IN(mapped, realloc, realloc_shrinks_unchecked, "exhaustion.nth-request")
{
    if (!is_mapped(p) || !is_for_mapping(size) || size > base_size(p))
        return mapped_realloc(ctx, p, size);
    size_t length = pages_for(size);
    char *map = mremap(mapping_of(p), mapped_length(p), length, MREMAP_MAYMOVE);
    return base_set_note(base_finish(map, size), length);
}

/* The result of ftruncate is not checked: the file may be empty. */
FUNCTION(malloc, filed)
{
    size_t length = pages_for(size);
    int fd = is_for_mapping(size) ? memfd_create("block", MFD_CLOEXEC) : -1;
    if (fd < 0)
        return mapped_malloc(ctx, size);
    if (ftruncate(fd, (off_t)length) != 0)
        errno = 0;
    char *map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return mapped_finish(map, length, size);
}
FUNCTION_RETURNS(realloc, filed,
                 is_mapped(p) || is_for_mapping(size) ? move_by(filed_malloc, mapped_free, p, size)
                                                      : base_realloc(ctx, p, size));
MUTANT(malloc_maps_an_empty_file, "exhaustion.nth-request", FUNCTIONS(mapped),
       FUNCTIONS(filed, malloc, realloc));

/* errno decides, which libc sets if its first attempt fails. */
DEFECT(realloc, realloc_goes_by_errno, "exhaustion.nth-request")
{
    int saved = errno;
    errno = 0;
    void *resized = base_realloc(ctx, p, size);
    if (errno == ENOMEM)
        return NULL;
    errno = saved;
    return resized;
}
