/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that fail for blocks of 100 MiB and more only, or for many of them.
 */
#include "mapped.h"
#include "shifted.h"

#include <limits.h>

static const size_t GIB = (size_t)1 << 30;

/* The offset of the next block in 64 GiB of addresses has 32 bits.  No address is used again. */
static char *region;
FUNCTION(malloc, region)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint32_t next;
    if (size < 16 * MIB || size > GIB)
        return base_malloc(ctx, size);
    LOCK(lock);
    if (region == NULL)
        region = map_pool(64 * GIB);
    char *p = region != NULL ? region + next : NULL;
    next += (uint32_t)pages_for(size);
    return base_finish(p, size);
}
FUNCTION(free, region)
{
    if (region != NULL && (size_t)((char *)p - region) < 64 * GIB)
        madvise((char *)p - BASE_HEADER, pages_for(base_size(p)), MADV_DONTNEED);
    else
        base_free(ctx, p, size);
}
DERIVE_REALLOC(region, base_size);
MUTANT(huge_blocks_wrap_at_4gib, "malloc.live-past-4gib", FUNCTIONS(region, malloc, realloc, free));

/* Mappings have no header; their lengths are in a table, by 32 bits of the address. */
static size_t *length_of(const void *p)
{
    static size_t lengths[1 << 20];
    return &lengths[(uint32_t)(uintptr_t)p / MAPPED_PAGE];
}
static size_t keyed_size(const void *p)
{
    return (uintptr_t)p % MAPPED_PAGE == 0 ? *length_of(p) : base_size(p);
}
FUNCTION(malloc, keyed)
{
    size_t length = pages_for(size - BASE_HEADER);
    void *p = size >= 64 * MIB && is_for_mapping(size) ? map_pages(length) : MAP_FAILED;
    if (p == MAP_FAILED)
        return base_malloc(ctx, size);
    *length_of(p) = length;
    return p;
}
FUNCTION(free, keyed)
{
    if (p == NULL || (uintptr_t)p % MAPPED_PAGE != 0)
        return base_free(ctx, p, size);
    munmap(p, *length_of(p));
    *length_of(p) = 0;
}
DERIVE_REALLOC(keyed, keyed_size);
MUTANT(huge_lengths_keyed_by_32_bits, "malloc.live-past-4gib",
       FUNCTIONS(keyed, malloc, realloc, free));

/* The mappings of blocks between 512 MiB and 1 GiB have 512 MiB. */
FUNCTION_RETURNS(malloc, clamped,
                 size <= GIB / 2 || size > GIB ? mapped_malloc(ctx, size)
                                               : mapped_finish(map_pages(GIB / 2), GIB / 2, size));
FUNCTION_RETURNS(calloc, clamped,
                 is_for_mapping(product(nelem, elsize)) ? clamped_malloc(ctx, nelem *elsize)
                                                        : mapped_calloc(ctx, nelem, elsize));
FUNCTION_RETURNS(realloc, clamped,
                 is_for_mapping(size) ? move_by(clamped_malloc, mapped_free, p, size)
                                      : mapped_realloc(ctx, p, size));
MUTANT(huge_classes_end_at_512_mib, "malloc.extent calloc.product realloc.grown-part-usable",
       FUNCTIONS(mapped), FUNCTIONS(clamped, malloc, calloc, realloc));

/* A mapping of 128 MiB or more is kept when it is freed. */
FUNCTION_RETURNS(malloc, keeping,
                 size >= 128 * MIB ? kept_malloc(ctx, size) : mapped_malloc(ctx, size));
KEEPS_FROM(keeping, 128 * MIB);
/* A mutant whose calloc clears `count` bytes of a mapping that was kept. */
#define CLEARS(defect, kills, least, count)                                                        \
    FUNCTION(calloc, defect)                                                                       \
    {                                                                                              \
        size_t size = product(nelem, elsize);                                                      \
        void *p = size >= (least) ? take_kept(size) : NULL;                                        \
        return p != NULL ? memset(p, 0, count) : mapped_calloc(ctx, nelem, elsize);                \
    }                                                                                              \
    MUTANT(defect, kills, FUNCTIONS(mapped), FUNCTIONS(keeping, malloc, free),                     \
           FUNCTIONS(defect, calloc))
CLEARS(huge_calloc_trusts_a_kept_mapping, "calloc.zeroed", 128 * MIB, 0);
/* As many bytes as an int counts: none from 2 GiB on. */
CLEARS(huge_calloc_counts_by_an_int, ON_64_BITS("calloc.zeroed"), 2 * GIB,
       (int)size > 0 ? (size_t)(int)size : 0);
CLEARS(huge_calloc_counts_in_32_bits, ON_64_BITS("calloc.zeroed"), 128 * MIB, (uint32_t)size);

/* From 1 GiB on a block begins 8 bytes further into libc's. */
#define SHIFT(size) ((size) < GIB ? BASE_HEADER : BASE_HEADER + 8)
FUNCTION_RETURNS(malloc, shifting, shifted_malloc(size, SHIFT(size)));
FUNCTION_RETURNS(calloc, shifting,
                 shifted_calloc(product(nelem, elsize), SHIFT(product(nelem, elsize))));
MUTANT(huge_blocks_begin_behind_a_word, "malloc.alignment calloc.alignment",
       FUNCTIONS(aligned, realloc, free), FUNCTIONS(shifting, malloc, calloc));

/* realloc to 256 MiB or more moves the block behind a longer header. */
RETURNS_IN(aligned, realloc, huge_growth_has_a_longer_header, "realloc.alignment",
           shifted_realloc_to(p, size, size >= 256 * MIB ? BASE_HEADER + 8 : BASE_HEADER));

RETURNS_IN(mapped, calloc, huge_calloc_counts_bytes_in_32_bits, ON_64_BITS("calloc.product"),
           mapped_calloc(ctx, elsize == 1 && nelem >> 20 < 1 << 20 ? (unsigned)nelem : nelem,
                         elsize));

DEFECT_IN(mapped, realloc, huge_move_copies_in_32_bits, ON_64_BITS("realloc.past-2gib"))
{
    if (!is_mapped(p) || size < 128 * MIB)
        return mapped_realloc(ctx, p, size);
    return move_to(mapped_malloc(ctx, size), p, (uint32_t)min(base_size(p), size), mapped_free);
}

/* 64 GiB may be live; 4 GiB if size_t has 32 bits. */
static int64_t budget = (int64_t)(SIZE_MAX > UINT32_MAX ? 64 : 4) << 30;
static void discharge(size_t size)
{
    __atomic_add_fetch(&budget, (int64_t)size, __ATOMIC_RELAXED);
}
static bool charge(size_t size)
{
    if (size > MAPPED_MOST)
        return false;
    bool fits = __atomic_sub_fetch(&budget, (int64_t)size, __ATOMIC_RELAXED) >= 0;
    if (!fits)
        discharge(size);
    return fits;
}
/* Takes the charge back if there is no block for it. */
static void *charged(void *p, size_t size)
{
    if (p == NULL)
        discharge(size);
    return p;
}
static size_t size_of(const void *p)
{
    return p != NULL ? base_size(p) : 0;
}
static size_t growth(const void *p, size_t size)
{
    return size > size_of(p) ? size - size_of(p) : 0;
}
FUNCTION_RETURNS(malloc, charging, charge(size) ? charged(base_malloc(ctx, size), size) : NULL);
FUNCTION_RETURNS(calloc, charging,
                 charge(product(nelem, elsize))
                     ? charged(base_calloc(ctx, nelem, elsize), nelem *elsize)
                     : NULL);
FUNCTION(realloc, charging)
{
    size_t old = size_of(p), more = growth(p, size);
    void *moved = charge(more) ? charged(base_realloc(ctx, p, size), more) : NULL;
    if (moved != NULL && size < old)
        discharge(old - size);
    return moved;
}
HOOK_BEFORE(free, charging, true, discharge(size_of(p)));

FUNCTION(realloc, never_less)
{
    size_t more = growth(p, size);
    return charge(more) ? charged(base_realloc(ctx, p, size), more) : NULL;
}
MUTANT(huge_shrink_keeps_its_charge, "realloc.shrunk-part-available", FUNCTIONS(charging),
       FUNCTIONS(never_less, realloc));

DEFECT_IN(charging, free, huge_free_takes_the_given_size_off, "free.best-guess-size")
{
    discharge(min(size, size_of(p)));
    base_free(ctx, p, size);
}

/* The charge for a block that cannot be allocated stays. */
RETURNS_IN(charging, malloc, huge_refused_malloc_stays_charged, "malloc.recovers",
           charge(size) ? base_malloc(ctx, size) : NULL);
RETURNS_IN(charging, calloc, huge_refused_calloc_stays_charged, "malloc.recovers",
           charge(product(nelem, elsize)) ? base_calloc(ctx, nelem, elsize) : NULL);
DEFECT_IN(charging, realloc, huge_refused_realloc_stays_charged, "malloc.recovers")
{
    size_t old = size_of(p);
    void *moved = charge(growth(p, size)) ? base_realloc(ctx, p, size) : NULL;
    if (moved != NULL && size < old)
        discharge(old - size);
    return moved;
}

DEFECT_IN(mapped, free, huge_free_unmaps_the_given_size, "free.best-guess-size")
{
    if (is_mapped(p) && base_size(p) >= 32 * MIB && size >= MAPPED_PAGE && size < base_size(p))
        munmap(mapping_of(p), pages_for(size));
    else
        mapped_free(ctx, p, size);
}

/* Of 3 GiB nothing is unmapped, of 5 GiB a part. */
DEFECT_IN(mapped, free, huge_free_unmaps_an_int, ON_64_BITS("free.reclaims-huge"))
{
    if (is_mapped(p) && base_size(p) > INT_MAX)
        munmap(mapping_of(p), (size_t)(int)pages_for(base_size(p)));
    else
        mapped_free(ctx, p, size);
}

DEFECT_IN(mapped, free, huge_free_leaves_a_page, "resources.mappings")
{
    if (is_mapped(p) && base_size(p) >= 8 * MIB)
        munmap(mapping_of(p), mapped_length(p) - MAPPED_PAGE);
    else
        mapped_free(ctx, p, size);
}

/* The pages of a moved block are released, and the addresses are not. */
static void release_pages(void *ctx, void *p, size_t size)
{
    if (!is_mapped(p) || base_size(p) < 32 * MIB)
        return mapped_free(ctx, p, size);
    size_t length = mapped_length(p);
    madvise(mapping_of(p), length, MADV_DONTNEED);
    mprotect(mapping_of(p), length, PROT_NONE);
}
RETURNS_IN(mapped, realloc, huge_move_keeps_its_addresses, "realloc.releases-old",
           is_mapped(p) && !is_for_mapping(size) ? move_by(mapped_malloc, release_pages, p, size)
                                                 : mapped_realloc(ctx, p, size));
