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

/* The same of mappings, where they are worth it. */
struct told_mapping {
    size_t from, told;
    struct kept_mapping kept;
};
static void *told_mapping_malloc(void *ctx, size_t size)
{
    struct told_mapping *own = ctx;
    char *p = size >= own->from && size <= own->told ? exchange_kept(&own->kept, NULL) : NULL;
    return p != NULL ? base_finish(p - BASE_HEADER, size) : mapped_malloc(ctx, size);
}
static void told_mapping_free(void *ctx, void *p, size_t size)
{
    struct told_mapping *own = ctx;
    if (is_mapped(p) && base_size(p) >= own->from && is_for_mapping(size)) {
        own->told = size;
        p = exchange_kept(&own->kept, p);
    }
    mapped_free(ctx, p, size);
}
#define KEEPS_AS_TOLD(defect, least)                                                               \
    static struct told_mapping defect##_ctx = {.from = (least),                                    \
                                               .kept = {.lock = PTHREAD_MUTEX_INITIALIZER}};       \
    MUTANT(defect, "free.any-size", MAPPED_FUNCTIONS, .ctx = &defect##_ctx,                        \
           .malloc = told_mapping_malloc, .free = told_mapping_free)
KEEPS_AS_TOLD(free_keeps_8_mib_as_told, 8 << 20);
KEEPS_AS_TOLD(free_keeps_17_mib_as_told, 17 << 20);
KEEPS_AS_TOLD(free_keeps_33_mib_as_told, 33 << 20);

/* A large mapping goes back as far as free says, and what lies behind it too. */
static void unmapping_free(void *ctx, void *p, size_t size)
{
    if (!is_mapped(p) || base_size(p) > size)
        mapped_free(ctx, p, size);
    else if (size >> 20 < 1 << 20)
        munmap((char *)p - BASE_HEADER, pages_for(size));
}
MUTANT(free_unmaps_large_as_told, "free.any-size", MAPPED_FUNCTIONS, .free = unmapping_free);
