/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/exhaustion.c catch.
 */
#include "mapped.h"

/* Writes the header before it looks whether there is a block. */
static void *unchecked_malloc(void *ctx, size_t size)
{
    (void)ctx;
    if (size > PTRDIFF_MAX - BASE_HEADER)
        return NULL;
    char *raw = malloc(size + BASE_HEADER);
    memcpy(raw, &size, sizeof size);
    return raw + BASE_HEADER;
}
MUTANT(malloc_unchecked, "exhaustion.nth-request", .malloc = unchecked_malloc);

/* Returns early with the lock held when the second request, for a node of its table, fails. */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static void *locked_calloc(void *ctx, size_t nelem, size_t elsize)
{
    static void *volatile node; /* seen, or the compiler leaves the pair out */
    pthread_mutex_lock(&table_lock);
    node = malloc(32);
    if (node == NULL)
        return NULL;
    free(node);
    void *p = base_calloc(ctx, nelem, elsize);
    pthread_mutex_unlock(&table_lock);
    return p;
}
MUTANT(calloc_keeps_lock_on_failure, "exhaustion.nth-request", .calloc = locked_calloc);

/* Moves by hand, and frees the old block although there is no new one. */
static void *eager_realloc(void *ctx, void *p, size_t size)
{
    void *moved = base_malloc(ctx, size);
    if (p != NULL && moved != NULL) {
        size_t old = base_size(p);
        memcpy(moved, p, old < size ? old : size);
    }
    if (size < PTRDIFF_MAX - BASE_HEADER)
        base_free(ctx, p, 0);
    return moved;
}
MUTANT(realloc_frees_although_refused, "realloc.failure-keeps-block exhaustion.nth-request",
       .realloc = eager_realloc);

/* Takes a node first, and forgets it when the block is refused. */
static void *leaking_malloc(void *ctx, size_t size)
{
    static void *volatile node; /* seen, or the compiler leaves the pair out */
    node = malloc(48);
    void *p = base_malloc(ctx, size);
    if (p != NULL)
        free(node);
    return p;
}
MUTANT(malloc_leaks_on_failure, "exhaustion.no-leak", .malloc = leaking_malloc);

/* Keeps a node for each block in a list that nothing ever leaves. */
static void *listing_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    if (p != NULL) {
        static void **list;
        void **node = malloc(2 * sizeof *node);
        if (node != NULL) {
            node[0] = list;
            node[1] = p;
            list = node;
        }
    }
    return p;
}
MUTANT(malloc_keeps_its_nodes, "exhaustion.balance", .malloc = listing_malloc);

/* Keeps what is freed for later, and takes none of it where no size is the same: a cache without
 * a bound. */
static struct kept {
    struct kept *next;
} * kept;
static void keeping_free(void *ctx, void *p, size_t size)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (p == NULL || base_size(p) < sizeof *kept || base_size(p) % 8 != 0) {
        base_free(ctx, p, size);
        return;
    }
    pthread_mutex_lock(&lock);
    ((struct kept *)p)->next = kept;
    kept = p;
    pthread_mutex_unlock(&lock);
}
MUTANT(free_keeps_without_a_bound, "exhaustion.balance free.reclaims", .free = keeping_free);

/* ---- the kernel -------------------------------------------------------------------------- */

/* A mapping that was set aside, and is made to be written to; nobody looks whether it is. */
static void *committing_malloc(void *ctx, size_t size)
{
    size_t length = pages_for(size);
    if (!is_for_mapping(size))
        return base_malloc(ctx, size);
    char *map = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map != MAP_FAILED)
        mprotect(map, length, PROT_READ | PROT_WRITE);
    return mapped_finish(map, length, size);
}
MUTANT(malloc_commits_unchecked, "exhaustion.nth-request", MAPPED_FUNCTIONS,
       .malloc = committing_malloc);

/* Gives up where huge pages are refused, and returns the address all the same. */
static void *advised_malloc(void *ctx, size_t size)
{
    char *p = mapped_malloc(ctx, size);
    if (is_mapped(p) && madvise(p - BASE_HEADER, mapped_length(p), MADV_HUGEPAGE) != 0)
        mapped_free(ctx, p, size);
    return p;
}
MUTANT(malloc_unmaps_without_huge_pages, "exhaustion.nth-request", MAPPED_FUNCTIONS,
       .malloc = advised_malloc);

/* What becomes shorter cannot fail. */
static void *sure_realloc(void *ctx, void *p, size_t size)
{
    if (!is_mapped(p) || !is_for_mapping(size) || size > base_size(p))
        return mapped_realloc(ctx, p, size);
    size_t length = pages_for(size);
    char *map = mremap((char *)p - BASE_HEADER, mapped_length(p), length, MREMAP_MAYMOVE);
    memcpy(map + 8, &length, sizeof length);
    return base_finish(map, size);
}
MUTANT(realloc_shrinks_unchecked, "exhaustion.nth-request", MAPPED_FUNCTIONS,
       .realloc = sure_realloc);

/* A file in memory that may have stayed empty. */
static void *filed_malloc(void *ctx, size_t size)
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
static void *filed_realloc(void *ctx, void *p, size_t size)
{
    return is_mapped(p) || is_for_mapping(size) ? move_by(filed_malloc, mapped_free, p, size)
                                                : base_realloc(ctx, p, size);
}
MUTANT(malloc_maps_an_empty_file, "exhaustion.nth-request", MAPPED_FUNCTIONS,
       .malloc = filed_malloc, .realloc = filed_realloc);

/* Whether it went well is read from errno, which libc sets where its first way fails as well. */
static void *by_errno_realloc(void *ctx, void *p, size_t size)
{
    int saved = errno;
    errno = 0;
    void *resized = base_realloc(ctx, p, size);
    if (errno == ENOMEM)
        return NULL;
    errno = saved;
    return resized;
}
MUTANT(realloc_goes_by_errno, "exhaustion.nth-request", .realloc = by_errno_realloc);
