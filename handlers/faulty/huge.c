/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that are wrong in blocks of a hundred mebibytes and more alone, or in many of them.
 */
#include "mapped.h"
#include "shifted.h"

#include <limits.h>

static const size_t MIB = 1 << 20;

/* ---- live at once ---------------------------------------------------------------------------- */

/* Blocks are cut from 64 GiB of addresses, and where the next one begins is kept in 32 bits.  None
 * is used again. */
static struct {
    pthread_mutex_t lock;
    char *at;
    uint32_t next;
} region = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *region_malloc(void *ctx, size_t size)
{
    const size_t least = 16 * MIB, most = 1024 * MIB;
    if (size < least || size > most)
        return base_malloc(ctx, size);
    pthread_mutex_lock(&region.lock);
    if (region.at == NULL) {
        void *map = mmap(NULL, 64 * most, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        region.at = map != MAP_FAILED ? map : NULL;
    }
    char *p = region.at != NULL ? region.at + region.next : NULL;
    region.next += (uint32_t)pages_for(size);
    pthread_mutex_unlock(&region.lock);
    return base_finish(p, size);
}
static bool is_of_region(const void *p)
{
    return region.at != NULL && (size_t)((const char *)p - region.at) < 65536 * MIB;
}
static void region_free(void *ctx, void *p, size_t size)
{
    if (is_of_region(p))
        madvise((char *)p - BASE_HEADER, pages_for(base_size(p)), MADV_DONTNEED);
    else
        base_free(ctx, p, size);
}
static void *region_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return move_by(region_malloc, region_free, p, size);
}
MUTANT(huge_blocks_wrap_at_4gib, "malloc.live-past-4gib", .malloc = region_malloc,
       .realloc = region_realloc, .free = region_free);

/* Blocks without a header, whose lengths are in a table by 32 bits of the address. */
static struct {
    pthread_mutex_t lock;
    struct {
        uint32_t key;
        size_t length;
    } at[256];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};
enum { ENTRIES = sizeof table.at / sizeof *table.at };

/* The length that is kept of p, 0 where there is none, and from now on that one. */
static size_t exchange_length(const void *p, size_t length)
{
    uint32_t key = (uint32_t)(uintptr_t)p;
    size_t found = ENTRIES, before = 0;
    pthread_mutex_lock(&table.lock);
    for (size_t i = 0; i < ENTRIES; i++) {
        if (table.at[i].length != 0 ? table.at[i].key == key : found == ENTRIES)
            found = i;
        if (table.at[i].length != 0 && table.at[i].key == key)
            break;
    }
    if (found < ENTRIES) {
        before = table.at[found].length;
        table.at[found].key = key;
        table.at[found].length = length;
    }
    pthread_mutex_unlock(&table.lock);
    return before;
}
static void *keyed_malloc(void *ctx, size_t size)
{
    if (size < 64 * MIB || !is_for_mapping(size))
        return base_malloc(ctx, size);
    size_t length = (size + MAPPED_PAGE - 1) / MAPPED_PAGE * MAPPED_PAGE;
    void *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    exchange_length(p, length);
    return p;
}
static bool is_keyed(const void *p)
{
    if (p == NULL || (uintptr_t)p % MAPPED_PAGE != 0)
        return false;
    size_t length = exchange_length(p, 0);
    if (length != 0)
        exchange_length(p, length);
    return length != 0;
}
static void keyed_free(void *ctx, void *p, size_t size)
{
    if (is_keyed(p))
        munmap(p, exchange_length(p, 0));
    else
        base_free(ctx, p, size);
}
static void *keyed_realloc(void *ctx, void *p, size_t size)
{
    bool keyed = is_keyed(p);
    void *moved = keyed || size >= 64 * MIB ? keyed_malloc(ctx, size) : NULL;
    if (moved == NULL)
        return keyed || size >= 64 * MIB ? NULL : base_realloc(ctx, p, size);
    size_t old = keyed ? exchange_length(p, 0) : p != NULL ? base_size(p) : 0;
    if (p != NULL)
        memcpy(moved, p, old < size ? old : size);
    if (keyed)
        munmap(p, old);
    else
        base_free(ctx, p, 0);
    return moved;
}
MUTANT(huge_lengths_keyed_by_32_bits, "malloc.live-past-4gib", .malloc = keyed_malloc,
       .realloc = keyed_realloc, .free = keyed_free);

/* ---- extent ---------------------------------------------------------------------------------- */

/* The classes end at 512 MiB, and what has a mapping of its own begins at a gibibyte. */
static void *clamped_malloc(void *ctx, size_t size)
{
    const size_t last = 512 * MIB;
    if (size <= last || size > 2 * last)
        return mapped_malloc(ctx, size);
    void *map = mmap(NULL, last, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mapped_finish(map, last, size);
}
static void *clamped_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size) || !is_for_mapping(size))
        return mapped_calloc(ctx, nelem, elsize);
    return clamped_malloc(ctx, size);
}
static void *clamped_realloc(void *ctx, void *p, size_t size)
{
    return is_for_mapping(size) ? move_by(clamped_malloc, mapped_free, p, size)
                                : mapped_realloc(ctx, p, size);
}
MUTANT(huge_classes_end_at_512_mib, "malloc.extent calloc.product realloc.grown-part-usable",
       MAPPED_FUNCTIONS, .malloc = clamped_malloc, .calloc = clamped_calloc,
       .realloc = clamped_realloc);

/* ---- zero ------------------------------------------------------------------------------------ */

/* What is large enough is kept when it is freed, and calloc takes it for a new mapping. */
static struct kept_mapping kept = {.lock = PTHREAD_MUTEX_INITIALIZER};
static void *keeping_malloc(void *ctx, size_t size)
{
    void *p = size >= 128 * MIB ? take_kept(&kept, size) : NULL;
    return p != NULL ? p : mapped_malloc(ctx, size);
}
static void *trusting_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size) || !is_for_mapping(size))
        return mapped_calloc(ctx, nelem, elsize);
    return keeping_malloc(ctx, size);
}
static void keeping_free(void *ctx, void *p, size_t size)
{
    bool keep = is_mapped(p) && base_size(p) >= 128 * MIB;
    mapped_free(ctx, keep ? exchange_kept(&kept, p) : p, size);
}
MUTANT(huge_calloc_trusts_a_kept_mapping, "calloc.zeroed-when-reused", MAPPED_FUNCTIONS,
       .malloc = keeping_malloc, .calloc = trusting_calloc, .free = keeping_free);

/* The kept one is zeroed by as many words as an int counts: none from 2 GiB on. */
static void *int_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size) || size < 2048 * MIB || !is_for_mapping(size))
        return mapped_calloc(ctx, nelem, elsize);
    char *p = keeping_malloc(ctx, size);
    for (int i = 0; p != NULL && i < (int)size; i++)
        p[i] = 0;
    return p;
}
MUTANT_OF_64_BITS(huge_calloc_counts_by_an_int, "calloc.zeroed-when-reused", MAPPED_FUNCTIONS,
                  .malloc = keeping_malloc, .calloc = int_calloc, .free = keeping_free);

/* The kept one is zeroed as far as 32 bits say. */
static void *unsigned_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size) || size < 128 * MIB || !is_for_mapping(size))
        return mapped_calloc(ctx, nelem, elsize);
    void *p = take_kept(&kept, size);
    return p != NULL ? memset(p, 0, (uint32_t)size) : map_new(size);
}
MUTANT_OF_64_BITS(huge_calloc_counts_in_32_bits, "calloc.zeroed-when-reused", MAPPED_FUNCTIONS,
                  .malloc = keeping_malloc, .calloc = unsigned_calloc, .free = keeping_free);

/* ---- alignment ------------------------------------------------------------------------------- */

/* From a gibibyte on it begins 8 bytes further into its mapping, behind one word more. */
static void *shifted_map(size_t size)
{
    size_t length = pages_for(size + 8);
    char *map = mmap(NULL, length, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return map != MAP_FAILED ? base_finish(map + 8, size) : NULL;
}
static bool is_shifted(const void *p)
{
    return p != NULL && (uintptr_t)p % 16 != 0;
}
static bool is_for_shifting(size_t size)
{
    return size >= 1024 * MIB && is_for_mapping(size);
}
static void *shifting_malloc(void *ctx, size_t size)
{
    return is_for_shifting(size) ? shifted_map(size) : base_malloc(ctx, size);
}
static void *shifting_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    bool fits = !__builtin_mul_overflow(nelem, elsize, &size);
    return fits && is_for_shifting(size) ? shifted_map(size) : base_calloc(ctx, nelem, elsize);
}
static void shifting_free(void *ctx, void *p, size_t size)
{
    if (is_shifted(p))
        munmap((char *)p - BASE_HEADER - 8, pages_for(base_size(p) + 8));
    else
        base_free(ctx, p, size);
}
static void *shifting_realloc(void *ctx, void *p, size_t size)
{
    return is_shifted(p) || is_for_shifting(size) ? move_by(shifting_malloc, shifting_free, p, size)
                                                  : base_realloc(ctx, p, size);
}
MUTANT(huge_blocks_begin_behind_a_word, "malloc.alignment calloc.alignment",
       .malloc = shifting_malloc, .calloc = shifting_calloc, .realloc = shifting_realloc,
       .free = shifting_free);

/* ---- realloc --------------------------------------------------------------------------------- */

/* What realloc moves beyond 256 MiB begins 8 bytes further on, behind one word more. */
static void *longer_realloc(void *ctx, void *p, size_t size)
{
    bool is_long = size >= 256 * MIB;
    (void)ctx;
    return shifted_realloc_to(p, size, is_long ? BASE_HEADER + 8 : BASE_HEADER);
}
static void *plain_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return shifted_malloc(size, BASE_HEADER);
}
MUTANT(huge_growth_has_a_longer_header, "realloc.alignment", .malloc = plain_malloc,
       .calloc = shifted_calloc, .realloc = longer_realloc, .free = shifted_free);

/* Elements of one byte are counted by an unsigned int. */
static void *bytes_calloc(void *ctx, size_t nelem, size_t elsize)
{
    bool is_cut = elsize == 1 && nelem >> 20 < 1 << 20;
    return mapped_calloc(ctx, is_cut ? (unsigned)nelem : nelem, elsize);
}
MUTANT_OF_64_BITS(huge_calloc_counts_bytes_in_32_bits, "calloc.product", MAPPED_FUNCTIONS,
                  .calloc = bytes_calloc);

/* 64 GiB may be live, or 4 where there are no more; what shrinks is not taken off. */
static int64_t budget = (int64_t)(SIZE_MAX > UINT32_MAX ? 64 : 4) << 30;
static bool charge(size_t size)
{
    bool fits =
        size <= MAPPED_MOST && __atomic_sub_fetch(&budget, (int64_t)size, __ATOMIC_RELAXED) >= 0;
    if (!fits && size <= MAPPED_MOST)
        __atomic_add_fetch(&budget, (int64_t)size, __ATOMIC_RELAXED);
    return fits;
}
static void *charged(void *p, size_t size)
{
    if (p == NULL)
        __atomic_add_fetch(&budget, (int64_t)size, __ATOMIC_RELAXED);
    return p;
}
static void *charging_malloc(void *ctx, size_t size)
{
    return charge(size) ? charged(base_malloc(ctx, size), size) : NULL;
}
static void *charging_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size) || !charge(size))
        return NULL;
    return charged(base_calloc(ctx, nelem, elsize), size);
}
static void *charging_realloc(void *ctx, void *p, size_t size)
{
    size_t old = p != NULL ? base_size(p) : 0, more = size > old ? size - old : 0;
    return charge(more) ? charged(base_realloc(ctx, p, size), more) : NULL;
}
static void charging_free(void *ctx, void *p, size_t size)
{
    if (p != NULL)
        __atomic_add_fetch(&budget, (int64_t)base_size(p), __ATOMIC_RELAXED);
    base_free(ctx, p, size);
}
MUTANT(huge_shrink_keeps_its_charge, "realloc.shrunk-part-available", .malloc = charging_malloc,
       .calloc = charging_calloc, .realloc = charging_realloc, .free = charging_free);

/* free takes off what it is told. */
static void guessing_free(void *ctx, void *p, size_t size)
{
    if (p != NULL)
        __atomic_add_fetch(&budget, (int64_t)(size < base_size(p) ? size : base_size(p)),
                           __ATOMIC_RELAXED);
    base_free(ctx, p, size);
}
static void *discharging_realloc(void *ctx, void *p, size_t size)
{
    size_t old = p != NULL ? base_size(p) : 0;
    void *moved = charging_realloc(ctx, p, size);
    if (moved != NULL && size < old)
        __atomic_add_fetch(&budget, (int64_t)(old - size), __ATOMIC_RELAXED);
    return moved;
}
MUTANT(huge_free_takes_the_given_size_off, "free.best-guess-size", .malloc = charging_malloc,
       .calloc = charging_calloc, .realloc = discharging_realloc, .free = guessing_free);

/* What was charged for a block that could not be had stays charged: of one function each. */
static void *overcharging_malloc(void *ctx, size_t size)
{
    return charge(size) ? base_malloc(ctx, size) : NULL;
}
static void *overcharging_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    bool fits = !__builtin_mul_overflow(nelem, elsize, &size) && charge(size);
    return fits ? base_calloc(ctx, nelem, elsize) : NULL;
}
static void *overcharging_realloc(void *ctx, void *p, size_t size)
{
    size_t old = p != NULL ? base_size(p) : 0;
    void *moved = charge(size > old ? size - old : 0) ? base_realloc(ctx, p, size) : NULL;
    if (moved != NULL && size < old)
        __atomic_add_fetch(&budget, (int64_t)(old - size), __ATOMIC_RELAXED);
    return moved;
}
MUTANT(huge_refused_malloc_stays_charged, "malloc.recovers", .malloc = overcharging_malloc,
       .calloc = charging_calloc, .realloc = discharging_realloc, .free = charging_free);
MUTANT(huge_refused_calloc_stays_charged, "malloc.recovers", .malloc = charging_malloc,
       .calloc = overcharging_calloc, .realloc = discharging_realloc, .free = charging_free);
MUTANT(huge_refused_realloc_stays_charged, "malloc.recovers", .malloc = charging_malloc,
       .calloc = charging_calloc, .realloc = overcharging_realloc, .free = charging_free);

/* What is large is unmapped as far as the size given says. */
static void part_unmapping_free(void *ctx, void *p, size_t size)
{
    if (is_mapped(p) && base_size(p) >= 32 * MIB && size >= MAPPED_PAGE && size < base_size(p))
        munmap((char *)p - BASE_HEADER, pages_for(size));
    else
        mapped_free(ctx, p, size);
}
MUTANT(huge_free_unmaps_the_given_size, "free.best-guess-size", MAPPED_FUNCTIONS,
       .free = part_unmapping_free);

/* What an int says of its length is unmapped: of 3 GiB nothing, and a part of 5. */
static void int_unmapping_free(void *ctx, void *p, size_t size)
{
    if (is_mapped(p) && base_size(p) > INT_MAX)
        munmap((char *)p - BASE_HEADER, (size_t)(int)pages_for(base_size(p)));
    else
        mapped_free(ctx, p, size);
}
MUTANT_OF_64_BITS(huge_free_unmaps_an_int, "free.reclaims-huge", MAPPED_FUNCTIONS,
                  .free = int_unmapping_free);

/* What is written behind a block, to see an overrun, is forgotten when that goes: a page of each.
 */
static void page_keeping_free(void *ctx, void *p, size_t size)
{
    if (is_mapped(p) && base_size(p) >= 8 * MIB)
        munmap((char *)p - BASE_HEADER, mapped_length(p) - MAPPED_PAGE);
    else
        mapped_free(ctx, p, size);
}
MUTANT(huge_free_leaves_a_page, "resources.mappings", MAPPED_FUNCTIONS, .free = page_keeping_free);

/* As much is copied as 32 bits say. */
static void *unsigned_realloc(void *ctx, void *p, size_t size)
{
    if (!is_mapped(p) || !is_for_mapping(size) || size < 128 * MIB)
        return mapped_realloc(ctx, p, size);
    void *moved = map_new(size);
    if (moved == NULL)
        return NULL;
    memcpy(moved, p, (uint32_t)(base_size(p) < size ? base_size(p) : size));
    mapped_free(ctx, p, 0);
    return moved;
}
MUTANT_OF_64_BITS(huge_move_copies_in_32_bits, "realloc.past-2gib", MAPPED_FUNCTIONS,
                  .realloc = unsigned_realloc);

/* The pages of what moved are given back, and the addresses not. */
static void give_pages_back(void *ctx, void *p, size_t size)
{
    if (!is_mapped(p) || base_size(p) < 32 * MIB) {
        mapped_free(ctx, p, size);
        return;
    }
    char *map = (char *)p - BASE_HEADER;
    size_t length = mapped_length(p);
    madvise(map, length, MADV_DONTNEED);
    mprotect(map, length, PROT_NONE);
}
static void *leaking_realloc(void *ctx, void *p, size_t size)
{
    if (!is_mapped(p) || is_for_mapping(size))
        return mapped_realloc(ctx, p, size);
    return move_by(mapped_malloc, give_pages_back, p, size);
}
MUTANT(huge_move_keeps_its_addresses, "realloc.releases-old", MAPPED_FUNCTIONS,
       .realloc = leaking_realloc);
