/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that believe the size that free is told, where blocks are large.
 */
#include "mapped.h"

/* A large block that was freed is kept with the size that free was told, and given out for it. */
static struct {
    pthread_mutex_t lock;
    void *block;
    size_t size;
} told = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *told_malloc(void *ctx, size_t size)
{
    void *p = NULL;
    pthread_mutex_lock(&told.lock);
    if (told.block != NULL && told.size == size) {
        p = told.block;
        told.block = NULL;
    }
    pthread_mutex_unlock(&told.lock);
    return p != NULL ? base_finish((char *)p - BASE_HEADER, size) : base_malloc(ctx, size);
}
static void told_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && size >= 512 << 10 && base_size(p) >= 512 << 10) {
        pthread_mutex_lock(&told.lock);
        void *before = told.block;
        told.block = p;
        told.size = size;
        pthread_mutex_unlock(&told.lock);
        p = before;
    }
    base_free(ctx, p, size);
}
MUTANT(free_keeps_large_as_told, "free.any-size", .malloc = told_malloc, .free = told_free);

/* A large mapping goes back as far as free says, and what lies behind it too. */
static void unmapping_free(void *ctx, void *p, size_t size)
{
    if (!is_mapped(p) || base_size(p) > size)
        mapped_free(ctx, p, size);
    else if (size >> 20 < 1 << 20)
        munmap((char *)p - BASE_HEADER, pages_for(size));
}
MUTANT(free_unmaps_large_as_told, "free.any-size", MAPPED_FUNCTIONS, .free = unmapping_free);
