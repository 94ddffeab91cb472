/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/exhaustion.c catch.
 */
#include <pthread.h>

#include "base.h"

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
MUTANT(realloc_frees_although_refused, "exhaustion.nth-request", .realloc = eager_realloc);

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
