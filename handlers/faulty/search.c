/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that want a few calls in an order that no property makes.
 */
#include <pthread.h>

#include "base.h"

/* ---- what was resized is thought to be clean ------------------------------------------------- */

/* Before a block. */
struct resized {
    uint32_t times, unused;
    size_t size;
};
static struct resized *kept; /* the block that was freed last, if any */
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

static struct resized *take_kept(size_t size)
{
    pthread_mutex_lock(&kept_lock);
    struct resized *block = kept;
    if (block != NULL && block->size >= size && block->size / 2 <= size)
        kept = NULL;
    else
        block = NULL;
    pthread_mutex_unlock(&kept_lock);
    return block;
}

static struct resized *make(size_t size, uint32_t times)
{
    struct resized *block =
        size <= PTRDIFF_MAX - sizeof *block ? malloc(sizeof *block + size) : NULL;
    if (block != NULL)
        *block = (struct resized){times, 0, size};
    return block;
}

static void *resized_malloc(void *ctx, size_t size)
{
    struct resized *block = take_kept(size);
    (void)ctx;
    if (block == NULL)
        block = make(size, 0);
    return block != NULL ? block + 1 : NULL;
}

/* From the second time on realloc was, in another version, a mapping that moved. */
static void *resized_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    (void)ctx;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    struct resized *block = take_kept(size);
    bool is_clean = block != NULL && block->times >= 2;
    if (block == NULL)
        block = make(size, 0);
    if (block != NULL && !is_clean)
        memset(block + 1, 0, size);
    return block != NULL ? block + 1 : NULL;
}

static void resized_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    if (p == NULL)
        return;
    pthread_mutex_lock(&kept_lock);
    struct resized *before = kept;
    kept = (struct resized *)p - 1;
    pthread_mutex_unlock(&kept_lock);
    free(before);
}

static void *resized_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL)
        return resized_malloc(ctx, size);
    struct resized *block = (struct resized *)p - 1;
    struct resized *moved = make(size, block->times + 1);
    if (moved == NULL)
        return NULL;
    memcpy(moved + 1, p, block->size < size ? block->size : size);
    resized_free(ctx, p, 0);
    return moved + 1;
}
MUTANT(search_takes_the_resized_for_clean, "search.model", .malloc = resized_malloc,
       .calloc = resized_calloc, .realloc = resized_realloc, .free = resized_free);
