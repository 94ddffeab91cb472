/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that use the size that free is called with.
 */
#include "mapped.h"

/* Caches one freed block of at least `from` bytes under the given size. */
struct told {
    size_t from, size;
    void *kept;
};
FUNCTION(malloc, told)
{
    struct told *told = ctx;
    void *p = size >= told->from && size <= told->size ? swap(&told->kept, NULL) : NULL;
    return p != NULL ? base_resize(p, size) : mapped_malloc(ctx, size);
}
FUNCTION(free, told)
{
    struct told *told = ctx;
    if (p != NULL && min(base_size(p), size) >= told->from && size <= MAPPED_MOST) {
        told->size = size;
        p = swap(&told->kept, p);
    }
    mapped_free(ctx, p, size);
}
#define KEEPS_AS_TOLD(defect, from)                                                                \
    MUTANT(defect, "free.any-size", .ctx = &(struct told){from, 0, NULL}, FUNCTIONS(mapped),       \
           FUNCTIONS(told, malloc, free))
KEEPS_AS_TOLD(free_caches_by_given_size, 0);
KEEPS_AS_TOLD(free_keeps_large_as_told, 512 * KIB);
KEEPS_AS_TOLD(free_keeps_8_mib_as_told, 8 * MIB);
KEEPS_AS_TOLD(free_keeps_17_mib_as_told, 17 * MIB);
KEEPS_AS_TOLD(free_keeps_33_mib_as_told, 33 * MIB);

/* Unmaps the given size of a mapping, even if it is larger than the mapping. */
DEFECT_IN(mapped, free, free_unmaps_large_as_told, "free.any-size")
{
    if (!is_mapped(p) || base_size(p) > size)
        mapped_free(ctx, p, size);
    else if (size >> 20 < 1 << 20)
        munmap((char *)p - BASE_HEADER, pages_for(size));
}
