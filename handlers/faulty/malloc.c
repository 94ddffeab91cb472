/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/malloc*.c find.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "mapped.h"
#include "shifted.h"
#include "slots.h"

/* Requests no bytes for the header. */
RETURNS(malloc, malloc_short_when_large, "malloc.extent",
        size<32768 || size> PTRDIFF_MAX ? base_malloc(ctx, size) : base_finish(malloc(size), size));

DEFECT(malloc, malloc_searches_for_ever, "malloc.extent")
{
    for (volatile bool found = size != 3217; !found;)
        continue;
    return base_malloc(ctx, size);
}

/* The table of size classes has 53744 instead of 57344. */
DEFECT(malloc, malloc_has_a_mistyped_class, "malloc.extent")
{
    if (size + BASE_HEADER <= 49152 || size > 57344 - BASE_HEADER)
        return base_malloc(ctx, size);
    return base_finish(malloc(53744), size);
}

/* Maps the same pages as the first and the second half of a large block. */
FUNCTION(malloc, mirror)
{
    size_t half = is_for_mapping(size) ? pages_for(size / 2) : 0;
    int fd = half > 0 ? memfd_create("mirror", MFD_CLOEXEC) : -1;
    if (fd < 0)
        return mapped_malloc(ctx, size);
    char *map = map_pages(2 * half);
    bool is_mapped = map != NULL;
    for (int i = 0; i < 2 && is_mapped; i++)
        is_mapped =
            ftruncate(fd, (off_t)half) == 0 && mmap(map + i * half, half, PROT_READ | PROT_WRITE,
                                                    MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
    close(fd);
    return is_mapped ? mapped_finish(map, 2 * half, size) : NULL;
}
#define mirror_free mapped_free
DERIVE_REALLOC(mirror, base_size);
MUTANT(malloc_mirrors_its_half, "malloc.extent scenarios.large-blocks", FUNCTIONS(mapped),
       FUNCTIONS(mirror, malloc, realloc));

#define MISALIGNS(defect, condition, shift)                                                        \
    RETURNS_IN(aligned, malloc, defect, "malloc.alignment",                                        \
               shifted_malloc(size, (condition) ? (shift) : BASE_HEADER))
MISALIGNS(malloc_has_a_one_word_header, true, 24);
WHEN(malloc_has_a_one_word_header, "malloc.alignment", "any level of each factor");
MISALIGNS(malloc_packs_small_blocks, size < 16, 17);
MISALIGNS(malloc_misaligns_off_the_main_thread, gettid() != getpid(), 24);
MISALIGNS(malloc_misaligns_one_in_a_thousand, EVERY(1000), 24);
MISALIGNS(malloc_misaligns_whole_pages, size >= 32 * KIB && size % MAPPED_PAGE == 0, 24);

/* The cells of small blocks have numbers of 16 bits, so that the 65537th is the first one. */
enum { CELL = 128, CELLS = 65536 };
static char *cells;
FUNCTION(malloc, numbered)
{
    static uint16_t next;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (size > CELL - BASE_HEADER)
        return base_malloc(ctx, size);
    LOCK(lock);
    if (cells == NULL)
        cells = map_pool(CELLS * CELL);
    return base_finish(cells + (size_t)next++ * CELL, size);
}
FUNCTION_FREES(numbered, cells == NULL || (size_t)((char *)p - cells) >= CELLS * CELL);
MUTANT_DERIVED(malloc_numbers_in_16_bits, "malloc.disjoint", numbered);

/* Caches a freed block by its size rounded up: a block of 100 bytes is used again for 512. */
static void *rounded_cache[9];
FUNCTION(malloc, rounded)
{
    void *p = size <= 8 * 512 ? swap(&rounded_cache[(size + 511) / 512], NULL) : NULL;
    return p != NULL ? base_resize(p, size) : base_malloc(ctx, size);
}
HOOK_BEFORE(free, rounded, p != NULL && base_size(p) <= 8 * 512,
            p = swap(&rounded_cache[(base_size(p) + 511) / 512], p));
MUTANT(malloc_recycles_what_is_too_small, "malloc.extent malloc.disjoint",
       FUNCTIONS(rounded, malloc, free));

BEFORE_IN(slot, free, free_gives_a_slot_back_twice, "malloc.disjoint", is_in_slot(p) && EVERY(300),
          slot_give(p));
WHEN(free_gives_a_slot_back_twice, "malloc.disjoint", "size <= 112");

AFTER_IN(slot, malloc, malloc_fills_into_the_next, "malloc.neighbours",
         is_in_slot(made) && (char *)made + SLOT < slots.memory[slots.made - 1],
         memset(made, 0xcd, SLOT_ROOM + BASE_HEADER + 1));
BEFORE_IN(slot, free, free_cleans_the_end_of_the_one_before, "free.poison-stays-inside",
          is_in_slot(p) && (char *)p - BASE_HEADER > slots.memory[0],
          memset((char *)p - BASE_HEADER - 8, 0, 8));

RETURNS(malloc, malloc_has_nothing_for_one_byte, "malloc.lasts",
        size == 1 ? NULL : base_malloc(ctx, size));

RETURNS(malloc, malloc_zero_is_a_marker, "malloc.zero",
        size == 0 ? (void *)64 : base_malloc(ctx, size));
DEFECT(malloc, malloc_zero_is_static, "malloc.zero")
{
    static char nothing[64];
    return size == 0 ? nothing + 32 : base_malloc(ctx, size);
}

RETURNS(malloc, malloc_wraps_with_its_header, "malloc.too-large",
        base_finish(malloc(size + BASE_HEADER), size));
RETURNS(malloc, overflow_by_room_in_malloc, "malloc.too-large", base_malloc(ctx, size + size / 8));

/* The size rounded up to pages wraps. */
DEFECT(malloc, malloc_wraps_when_rounding_up, "malloc.too-large")
{
    size_t total = size + BASE_HEADER;
    if (total < size)
        return NULL;
    if (total > 65536)
        total = (total + MAPPED_PAGE - 1) & -(size_t)MAPPED_PAGE;
    return base_finish(malloc(total), size);
}

/* Caches a freed block by size class, which malloc cuts to 16 bits. */
static void *class_cache[64];
FUNCTION(malloc, cutting)
{
    uint16_t class = (uint16_t)((size + 15) / 16);
    void *p = class < 64 ? swap(&class_cache[class], NULL) : NULL;
    if (p != NULL)
        return base_resize(p, size);
    return size > PTRDIFF_MAX ? NULL : base_malloc(ctx, (size + 15) / 16 * 16);
}
FUNCTION(free, cutting)
{
    size_t class = p != NULL ? (base_size(p) + 15) / 16 : 64;
    base_free(ctx, class < 64 ? swap(&class_cache[class], p) : p, size);
}
MUTANT(malloc_looks_up_a_cut_class, "malloc.too-large", FUNCTIONS(cutting, malloc, free));

BEFORE(malloc, malloc_aborts_when_too_large, "malloc.too-large", size > SIZE_MAX - BASE_HEADER,
       abort());

RETURNS(malloc, malloc_cuts_to_32_bits, ON_64_BITS("malloc.past-4gib"),
        size > PTRDIFF_MAX ? NULL : base_malloc(ctx, (uint32_t)size));
RETURNS(malloc, malloc_cuts_to_31_bits, ON_64_BITS("malloc.past-4gib"),
        size > PTRDIFF_MAX ? NULL : base_malloc(ctx, size &INT32_MAX));

AFTER(malloc, malloc_failure_exits, "malloc.failure-is-null", made == NULL && size < 1 << 20,
      _exit(1));

/* All small requests that fail share one reserve. */
static char reserve[1024];
FUNCTION(malloc, reserving)
{
    void *p = base_malloc(ctx, size);
    return p == NULL && size <= sizeof reserve - 2 * BASE_HEADER ? base_finish(reserve, size) : p;
}
FUNCTION_FREES(reserving, p != reserve + BASE_HEADER);
MUTANT(malloc_failure_shares_a_reserve, "malloc.failure-is-null",
       FUNCTIONS(reserving, malloc, free));

/* Returns from a failure with the lock held; only other threads notice a recursive one. */
static void *malloc_under(pthread_mutex_t *lock, size_t size)
{
    pthread_mutex_lock(lock);
    void *p = base_malloc(NULL, size);
    if (p != NULL)
        pthread_mutex_unlock(lock);
    return p;
}
DEFECT(malloc, malloc_failure_keeps_its_lock, "malloc.recovers")
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    return malloc_under(&lock, size);
}
DEFECT(malloc, malloc_failure_keeps_a_recursive_lock, "malloc.recovers")
{
    static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    return malloc_under(&lock, size);
}

DEFECT(malloc, malloc_failure_is_for_ever, "malloc.recovers")
{
    static _Atomic bool failed;
    void *p = failed ? NULL : base_malloc(ctx, size);
    if (p == NULL && size <= 1 << 20)
        failed = true;
    return p;
}

RETURNS(malloc, malloc_runs_out_of_numbers, "malloc.lasts",
        NTH <= 65536 ? base_malloc(ctx, size) : NULL);
RETURNS(malloc, malloc_refuses_one_in_1000, "malloc.lasts",
        EVERY(1000) ? NULL : base_malloc(ctx, size));
BEFORE(malloc, malloc_leaves_in_the_middle, "malloc.lasts", CALL(50000), _exit(0));
