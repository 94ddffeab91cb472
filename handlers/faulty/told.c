/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that use the size that free is called with, for large blocks.
 */
#include "mapped.h"
#include "mutant.h"

/* Caches one freed block under the given size. */
static struct {
    pthread_mutex_t lock;
    void *block;
    size_t size;
} told = {.lock = PTHREAD_MUTEX_INITIALIZER};

FUNCTION(malloc, told)
{
    void *p = NULL;
    pthread_mutex_lock(&told.lock);
    if (told.block != NULL && told.size == size) {
        p = told.block;
        told.block = NULL;
    }
    pthread_mutex_unlock(&told.lock);
    return p != NULL ? base_resize(p, size) : base_malloc(ctx, size);
}
FUNCTION(free, told)
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
MUTANT(free_keeps_large_as_told, "free.any-size", FUNCTIONS(told, malloc, free));

/* Caches one freed mapping of at least `from` bytes under the given size. */
struct told_mapping {
    size_t from, told;
    void *kept;
};
FUNCTION(malloc, told_mapping)
{
    struct told_mapping *own = ctx;
    void *p = size >= own->from && size <= own->told ? swap(&own->kept, NULL) : NULL;
    return p != NULL ? base_resize(p, size) : mapped_malloc(ctx, size);
}
FUNCTION(free, told_mapping)
{
    struct told_mapping *own = ctx;
    if (is_mapped(p) && base_size(p) >= own->from && is_for_mapping(size)) {
        own->told = size;
        p = swap(&own->kept, p);
    }
    mapped_free(ctx, p, size);
}
#define KEEPS_AS_TOLD(defect, mebibytes)                                                           \
    static struct told_mapping defect##_ctx = {.from = (mebibytes) << 20};                         \
    MUTANT(defect, "free.any-size", .ctx = &defect##_ctx, FUNCTIONS(mapped),                       \
           FUNCTIONS(told_mapping, malloc, free))
KEEPS_AS_TOLD(free_keeps_8_mib_as_told, 8);
KEEPS_AS_TOLD(free_keeps_17_mib_as_told, 17);
KEEPS_AS_TOLD(free_keeps_33_mib_as_told, 33);

/* Unmaps the given size of a mapping, even if it is larger than the mapping. */
DEFECT_IN(mapped, free, free_unmaps_large_as_told, "free.any-size")
{
    if (!is_mapped(p) || base_size(p) > size)
        mapped_free(ctx, p, size);
    else if (size >> 20 < 1 << 20)
        munmap((char *)p - BASE_HEADER, pages_for(size));
}
