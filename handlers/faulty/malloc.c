/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/malloc*.c catch.
 */
#define _GNU_SOURCE

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base.h"
#include "shifted.h"
#include "slots.h"

enum { PAGE = 4096 };

/* ---- malloc.extent --------------------------------------------------------------------------- */

/* Forgets its own header, from 32 KiB on. */
static void *short_when_large_malloc(void *ctx, size_t size)
{
    return size < 32768 || size > PTRDIFF_MAX ? base_malloc(ctx, size)
                                              : base_finish(malloc(size), size);
}
MUTANT(malloc_short_when_large, "malloc.extent", .malloc = short_when_large_malloc);

/* For one size the search never comes to its end. */
static void *searching_malloc(void *ctx, size_t size)
{
    volatile bool found = size != 3217;
    while (!found)
        continue;
    return base_malloc(ctx, size);
}
MUTANT(malloc_searches_for_ever, "malloc.extent", .malloc = searching_malloc);

/* The table of classes has 53744 where it should have 57344. */
static void *mistyped_malloc(void *ctx, size_t size)
{
    enum { BEFORE = 49152, MISTYPED = 53744, MEANT = 57344 };
    if (size + BASE_HEADER <= BEFORE || size > MEANT - BASE_HEADER)
        return base_malloc(ctx, size);
    return base_finish(malloc(MISTYPED), size);
}
MUTANT(malloc_has_a_mistyped_class, "malloc.extent", .malloc = mistyped_malloc);

/* Large blocks are mappings of their own; the second word of the header has the length. */
static void *map_finish(char *map, size_t length, size_t size)
{
    if (map == MAP_FAILED)
        return NULL;
    memcpy(map + 8, &length, sizeof length);
    return base_finish(map, size);
}

static void *unmapped_malloc(void *ctx, size_t size)
{
    char *p = base_malloc(ctx, size);
    if (p != NULL)
        memset(p - 8, 0, 8);
    return p;
}

static void map_free(void *ctx, void *p, size_t size)
{
    size_t length = 0;
    if (p != NULL)
        memcpy(&length, (char *)p - 8, sizeof length);
    if (length == 0)
        base_free(ctx, p, size);
    else
        munmap((char *)p - BASE_HEADER, length);
}

static void *map_realloc_by(void *(*make)(void *, size_t), void *p, size_t size)
{
    void *moved = make(NULL, size);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    map_free(NULL, p, 0);
    return moved;
}

static void *map_calloc_by(void *(*make)(void *, size_t), size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    void *p = make(NULL, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}

/* Rounds the length down to pages, from 256 KiB on; behind it stands a page that cannot be
 * touched. */
static void *few_pages_malloc(void *ctx, size_t size)
{
    if (size < 256 << 10 || size > PTRDIFF_MAX - 2 * PAGE)
        return unmapped_malloc(ctx, size);
    size_t length = (size + BASE_HEADER) / PAGE * PAGE + PAGE;
    char *map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map != MAP_FAILED)
        mprotect(map + length - PAGE, PAGE, PROT_NONE);
    return map_finish(map, length, size);
}
static void *few_pages_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    return map_calloc_by(unmapped_malloc, nelem, elsize);
}
static void *few_pages_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return map_realloc_by(unmapped_malloc, p, size);
}
MUTANT(malloc_rounds_pages_down, "malloc.extent", .malloc = few_pages_malloc,
       .calloc = few_pages_calloc, .realloc = few_pages_realloc, .free = map_free);

/* From 512 KiB on the same pages stand in the first half of the block and in the second, as in a
 * ring buffer. */
static void *mirror_malloc(void *ctx, size_t size)
{
    if (size < 512 << 10 || size > PTRDIFF_MAX - 4 * PAGE)
        return unmapped_malloc(ctx, size);
    size_t half = (size / 2 + BASE_HEADER + PAGE - 1) / PAGE * PAGE;
    int fd = memfd_create("mirror", MFD_CLOEXEC);
    char *map = mmap(NULL, 2 * half, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fd >= 0 && map != MAP_FAILED && ftruncate(fd, (off_t)half) == 0) {
        int protection = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_FIXED;
        if (mmap(map, half, protection, flags, fd, 0) == MAP_FAILED ||
            mmap(map + half, half, protection, flags, fd, 0) == MAP_FAILED)
            abort();
    }
    if (fd >= 0)
        close(fd);
    return map_finish(map, 2 * half, size);
}
MUTANT(malloc_mirrors_its_half, "malloc.extent", .malloc = mirror_malloc,
       .calloc = few_pages_calloc, .realloc = few_pages_realloc, .free = map_free);

/* ---- malloc.alignment ------------------------------------------------------------------------ */

/* A header of one word before each block. */
static void *one_word_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return shifted_malloc(size, 24);
}
MUTANT(malloc_has_a_one_word_header, "malloc.alignment", .malloc = one_word_malloc,
       .calloc = shifted_calloc, .realloc = shifted_realloc, .free = shifted_free);

/* Believes that less than 16 bytes need no alignment. */
static void *packing_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return shifted_malloc(size, size < 16 ? 17 : 16);
}
MUTANT(malloc_packs_small_blocks, "malloc.alignment", .malloc = packing_malloc,
       .calloc = shifted_calloc, .realloc = shifted_realloc, .free = shifted_free);

/* Its arena for other threads begins at the wrong place. */
static void *elsewhere_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return shifted_malloc(size, syscall(SYS_gettid) == getpid() ? 16 : 24);
}
MUTANT(malloc_misaligns_off_the_main_thread, "malloc.alignment", .malloc = elsewhere_malloc,
       .calloc = shifted_calloc, .realloc = shifted_realloc, .free = shifted_free);

/* One call in a thousand takes a way of its own. */
static void *seldom_misaligned_malloc(void *ctx, size_t size)
{
    static _Atomic unsigned calls;
    (void)ctx;
    return shifted_malloc(size, ++calls % 1000 == 0 ? 24 : 16);
}
MUTANT(malloc_misaligns_one_in_a_thousand, "malloc.alignment", .malloc = seldom_misaligned_malloc,
       .calloc = shifted_calloc, .realloc = shifted_realloc, .free = shifted_free);

/* Multiples of the page are mapped, and begin behind a short header. */
static void *page_multiple_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return shifted_malloc(size, size >= 8 * PAGE && size % PAGE == 0 ? 24 : 16);
}
MUTANT(malloc_misaligns_whole_pages, "malloc.alignment", .malloc = page_multiple_malloc,
       .calloc = shifted_calloc, .realloc = shifted_realloc, .free = shifted_free);

/* ---- malloc.disjoint ------------------------------------------------------------------------- */

/* Numbers its blocks of up to 48 bytes in 16 bits, so that the 65537th is the first again. */
static void *numbered_malloc(void *ctx, size_t size)
{
    enum { CELL = 64 };
    static char *pool;
    static uint16_t next;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (size > CELL - BASE_HEADER)
        return unmapped_malloc(ctx, size);
    pthread_mutex_lock(&lock);
    if (pool == NULL)
        pool = mmap(NULL, 65536 * CELL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *cell = pool + (size_t)next++ * CELL;
    pthread_mutex_unlock(&lock);
    memset(cell + 8, 0xff, 8); /* the mark of a cell, for free */
    return base_finish(cell, size);
}
static void numbered_free(void *ctx, void *p, size_t size)
{
    uint64_t mark = 0;
    if (p != NULL)
        memcpy(&mark, (char *)p - 8, sizeof mark);
    if (mark == 0)
        base_free(ctx, p, size);
}
static void *numbered_realloc(void *ctx, void *p, size_t size)
{
    void *moved = numbered_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    numbered_free(ctx, p, 0);
    return moved;
}
MUTANT(malloc_numbers_in_16_bits, "malloc.disjoint", .malloc = numbered_malloc,
       .calloc = few_pages_calloc, .realloc = numbered_realloc, .free = numbered_free);

/* A cache of freed blocks by size class, that rounds up where it stores and where it takes: a
 * block of 100 bytes comes back for 512. */
static struct {
    pthread_mutex_t lock;
    void *block[9];
} rounded_cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *rounded_malloc(void *ctx, size_t size)
{
    size_t class = (size + 511) / 512;
    if (class > 8)
        return base_malloc(ctx, size);
    pthread_mutex_lock(&rounded_cache.lock);
    char *p = rounded_cache.block[class];
    rounded_cache.block[class] = NULL;
    pthread_mutex_unlock(&rounded_cache.lock);
    return p != NULL ? base_finish(p - BASE_HEADER, size) : base_malloc(ctx, size);
}
static void rounded_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && base_size(p) <= 8 * 512) {
        size_t class = (base_size(p) + 511) / 512;
        pthread_mutex_lock(&rounded_cache.lock);
        void *before = rounded_cache.block[class];
        rounded_cache.block[class] = p;
        pthread_mutex_unlock(&rounded_cache.lock);
        p = before;
    }
    base_free(ctx, p, size);
}
MUTANT(malloc_recycles_what_is_too_small, "malloc.extent malloc.disjoint", .malloc = rounded_malloc,
       .free = rounded_free);

/* One freed slot in 300 enters the list of free ones twice. */
static void twice_free(void *ctx, void *p, size_t size)
{
    static _Atomic unsigned frees;
    if (is_in_slot(p) && ++frees % 300 == 0)
        slot_give(p);
    slot_free(ctx, p, size);
}
MUTANT(free_gives_a_slot_back_twice, "malloc.disjoint calloc.disjoint", SLOT_FUNCTIONS,
       .free = twice_free);

/* ---- malloc.neighbours ----------------------------------------------------------------------- */

/* Fills what it hands out with junk, and goes on into the next slot. */
static void *filling_malloc(void *ctx, size_t size)
{
    void *p = slot_malloc(ctx, size);
    if (is_in_slot(p) && (char *)p + SLOT < slots.memory[slots.made - 1])
        memset(p, 0xcd, SLOT_ROOM + BASE_HEADER + 1);
    return p;
}
MUTANT(malloc_fills_into_the_next, "malloc.neighbours", SLOT_FUNCTIONS, .malloc = filling_malloc);

/* Cleans a little before the block as well. */
static void cleaning_free(void *ctx, void *p, size_t size)
{
    if (is_in_slot(p) && (char *)p - BASE_HEADER > slots.memory[0])
        memset((char *)p - BASE_HEADER - 8, 0, 8);
    slot_free(ctx, p, size);
}
MUTANT(free_cleans_the_end_of_the_one_before,
       "malloc.neighbours calloc.neighbours free.poison-stays-inside", SLOT_FUNCTIONS,
       .free = cleaning_free);

/* Freed slots are cleaned by a thread, up to a millisecond later, whoever has them by then. */
static struct {
    pthread_once_t once;
    pthread_mutex_t lock;
    void *block[8 * SLOTS];
    size_t count;
} to_clean = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static void *clean_late(void *unused)
{
    for (;;) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        pthread_mutex_lock(&to_clean.lock);
        while (to_clean.count > 0)
            memset(to_clean.block[--to_clean.count], 0, SLOT_ROOM);
        pthread_mutex_unlock(&to_clean.lock);
    }
    return unused;
}
static void start_cleaning(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, clean_late, NULL) == 0)
        pthread_detach(thread);
}
static void late_free(void *ctx, void *p, size_t size)
{
    if (is_in_slot(p)) {
        pthread_once(&to_clean.once, start_cleaning);
        pthread_mutex_lock(&to_clean.lock);
        if (to_clean.count < 8 * SLOTS)
            to_clean.block[to_clean.count++] = p;
        pthread_mutex_unlock(&to_clean.lock);
    }
    slot_free(ctx, p, size);
}
MUTANT(free_cleans_too_late, "free.leaves-recycled-alone", SLOT_FUNCTIONS, .free = late_free);

/* ---- malloc.one-byte ------------------------------------------------------------------------- */

/* One byte cannot matter: they are all the same one. */
static char the_byte[2 * BASE_HEADER];
static void *shared_byte_malloc(void *ctx, size_t size)
{
    return size == 1 ? base_finish(the_byte, 1) : base_malloc(ctx, size);
}
static void *shared_byte_realloc(void *ctx, void *p, size_t size)
{
    if (p != the_byte + BASE_HEADER)
        return base_realloc(ctx, p, size);
    char *moved = base_malloc(ctx, size);
    if (moved != NULL && size > 0)
        moved[0] = the_byte[BASE_HEADER];
    return moved;
}
static void shared_byte_free(void *ctx, void *p, size_t size)
{
    if (p != the_byte + BASE_HEADER)
        base_free(ctx, p, size);
}
MUTANT(malloc_shares_one_byte, "malloc.disjoint malloc.one-byte", .malloc = shared_byte_malloc,
       .realloc = shared_byte_realloc, .free = shared_byte_free);

/* Size 1 stands for an array without elements. */
static void *no_byte_malloc(void *ctx, size_t size)
{
    return size == 1 ? NULL : base_malloc(ctx, size);
}
MUTANT(malloc_has_nothing_for_one_byte, "malloc.one-byte", .malloc = no_byte_malloc);

/* ---- malloc.zero ----------------------------------------------------------------------------- */

/* A marker that free does not know. */
static void *marker_malloc(void *ctx, size_t size)
{
    return size == 0 ? (void *)64 : base_malloc(ctx, size);
}
MUTANT(malloc_zero_is_a_marker, "malloc.zero", .malloc = marker_malloc);

/* An address of its own, which free gives to libc. */
static void *static_zero_malloc(void *ctx, size_t size)
{
    static char nothing[64];
    return size == 0 ? nothing + 32 : base_malloc(ctx, size);
}
MUTANT(malloc_zero_is_static, "malloc.zero", .malloc = static_zero_malloc);

/* Wipes the block back from its last byte, counting down to 0, which 0 - 1 passes by. */
static void *counting_malloc(void *ctx, size_t size)
{
    unsigned char *p = base_malloc(ctx, size);
    for (size_t i = size - 1; p != NULL && size <= 64 && i != 0; i--)
        p[i] = 0;
    return p;
}
MUTANT(malloc_zero_counts_down_past_zero, "malloc.zero", .malloc = counting_malloc);

/* ---- malloc.too-large ------------------------------------------------------------------------ */

static void *wrapping_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return base_finish(malloc(size + BASE_HEADER), size);
}
MUTANT(malloc_wraps_with_its_header, "malloc.too-large", .malloc = wrapping_malloc);

/* Checks the header, but not the rounding to pages. */
static void *rounding_malloc(void *ctx, size_t size)
{
    (void)ctx;
    size_t total;
    if (__builtin_add_overflow(size, (size_t)BASE_HEADER, &total))
        return NULL;
    if (total > 65536)
        total = (total + PAGE - 1) & ~(size_t)(PAGE - 1);
    return base_finish(malloc(total), size);
}
MUTANT(malloc_wraps_when_rounding_up, "malloc.too-large", .malloc = rounding_malloc);

/* A cache of one freed block for each of 64 classes; the class is cut to 16 bits before it is
 * looked at.  The wrong block comes only where one is in the cache. */
static void *class_cache[64];
static pthread_mutex_t class_lock = PTHREAD_MUTEX_INITIALIZER;
static void *cached_malloc(void *ctx, size_t size)
{
    uint16_t class = (uint16_t)((size + 15) / 16);
    void *p = NULL;
    if (class < 64) {
        pthread_mutex_lock(&class_lock);
        p = class_cache[class];
        class_cache[class] = NULL;
        pthread_mutex_unlock(&class_lock);
    }
    if (p != NULL)
        return base_finish((char *)p - BASE_HEADER, size);
    return size > PTRDIFF_MAX ? NULL : base_malloc(ctx, (size + 15) / 16 * 16);
}
static void cached_free(void *ctx, void *p, size_t size)
{
    size_t class = p != NULL ? (base_size(p) + 15) / 16 : 64;
    if (class < 64) {
        pthread_mutex_lock(&class_lock);
        void *before = class_cache[class];
        class_cache[class] = p;
        pthread_mutex_unlock(&class_lock);
        p = before;
    }
    base_free(ctx, p, size);
}
MUTANT(malloc_looks_up_a_cut_class, "malloc.too-large", .malloc = cached_malloc,
       .free = cached_free);

/* Compares as signed numbers: what is negative counts as small. */
static void *signed_malloc(void *ctx, size_t size)
{
    if ((long)size > 1 << 20)
        return base_malloc(ctx, size);
    long most = (long)size > 4096 ? (long)size : 4096;
    return base_finish(malloc((size_t)most + BASE_HEADER), size);
}
MUTANT(malloc_compares_signed, "malloc.too-large", .malloc = signed_malloc);

static void *aborting_malloc(void *ctx, size_t size)
{
    if (size > SIZE_MAX - BASE_HEADER)
        abort();
    return base_malloc(ctx, size);
}
MUTANT(malloc_aborts_when_too_large, "malloc.too-large", .malloc = aborting_malloc);

/* ---- malloc.past-4gib ------------------------------------------------------------------------ */

static void *cut_to_32_malloc(void *ctx, size_t size)
{
    return size > PTRDIFF_MAX ? NULL : base_malloc(ctx, (uint32_t)size);
}
MUTANT_OF_64_BITS(malloc_cuts_to_32_bits, "malloc.past-4gib", .malloc = cut_to_32_malloc);

static void *cut_to_31_malloc(void *ctx, size_t size)
{
    return size > PTRDIFF_MAX ? NULL : base_malloc(ctx, size & INT32_MAX);
}
MUTANT_OF_64_BITS(malloc_cuts_to_31_bits, "malloc.past-4gib", .malloc = cut_to_31_malloc);

/* ---- malloc.failure-is-null ------------------------------------------------------------------ */

static void *offset_malloc(void *ctx, size_t size)
{
    (void)ctx;
    if (size > PTRDIFF_MAX - BASE_HEADER)
        return NULL;
    char *raw = malloc(size + BASE_HEADER);
    if (raw != NULL)
        base_finish(raw, size);
    return raw + BASE_HEADER;
}
MUTANT(malloc_failure_is_an_offset, "malloc.failure-is-null", .malloc = offset_malloc);

static void *exiting_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    if (p == NULL && size < 1 << 20)
        _exit(1);
    return p;
}
MUTANT(malloc_failure_exits, "malloc.failure-is-null", .malloc = exiting_malloc);

/* A reserve for bad times, which everybody gets who asks for little. */
static char reserve[1024];
static void *reserving_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    return p == NULL && size <= sizeof reserve - 2 * BASE_HEADER ? base_finish(reserve, size) : p;
}
static void reserving_free(void *ctx, void *p, size_t size)
{
    if (p != reserve + BASE_HEADER)
        base_free(ctx, p, size);
}
MUTANT(malloc_failure_shares_a_reserve, "malloc.failure-is-null", .malloc = reserving_malloc,
       .free = reserving_free);

/* ---- malloc.recovers ------------------------------------------------------------------------- */

static pthread_mutex_t one_lock = PTHREAD_MUTEX_INITIALIZER;

/* Returns early where libc has nothing, with the lock held. */
static void *locked_malloc(void *ctx, size_t size)
{
    pthread_mutex_lock(&one_lock);
    void *p = base_malloc(ctx, size);
    if (p == NULL)
        return NULL;
    pthread_mutex_unlock(&one_lock);
    return p;
}
MUTANT(malloc_failure_keeps_its_lock, "malloc.recovers", .malloc = locked_malloc);

/* The lock is recursive, so that only other threads notice. */
static pthread_mutex_t recursive_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static void *recursive_malloc(void *ctx, size_t size)
{
    pthread_mutex_lock(&recursive_lock);
    void *p = base_malloc(ctx, size);
    if (p == NULL)
        return NULL;
    pthread_mutex_unlock(&recursive_lock);
    return p;
}
MUTANT(malloc_failure_keeps_a_recursive_lock, "malloc.recovers", .malloc = recursive_malloc);

/* Once out of memory, always out of memory. */
static void *discouraged_malloc(void *ctx, size_t size)
{
    static _Atomic bool failed;
    void *p = failed ? NULL : base_malloc(ctx, size);
    if (p == NULL && size <= 1 << 20)
        failed = true;
    return p;
}
MUTANT(malloc_failure_is_for_ever, "malloc.recovers", .malloc = discouraged_malloc);

/* ---- malloc.lasts ---------------------------------------------------------------------------- */

/* Each block gets a number, and there are 200000. */
static void *numbering_malloc(void *ctx, size_t size)
{
    static _Atomic unsigned numbers = 200000;
    if (numbers == 0)
        return NULL;
    numbers--;
    return base_malloc(ctx, size);
}
MUTANT(malloc_runs_out_of_numbers, "malloc.lasts", .malloc = numbering_malloc);

/* Refuses a request now and then, whatever it is for. */
static void *now_and_then_malloc(void *ctx, size_t size)
{
    static _Atomic unsigned calls;
    return ++calls % 1000 == 0 ? NULL : base_malloc(ctx, size);
}
MUTANT(malloc_refuses_one_in_1000, "malloc.lasts", .malloc = now_and_then_malloc);

/* Ends the process in the middle, as if all were well. */
static void *leaving_malloc(void *ctx, size_t size)
{
    static _Atomic unsigned calls;
    if (++calls == 50000)
        _exit(0);
    return base_malloc(ctx, size);
}
MUTANT(malloc_leaves_in_the_middle, "malloc.lasts", .malloc = leaving_malloc);

/* A table of 32768 live blocks loses an entry in every eighth free. */
static _Atomic int entries = 32768;
static void *table_malloc(void *ctx, size_t size)
{
    if (entries <= 0)
        return NULL;
    void *p = base_malloc(ctx, size);
    entries -= p != NULL;
    return p;
}
static void *table_calloc(void *ctx, size_t nelem, size_t elsize)
{
    void *p = base_calloc(ctx, nelem, elsize);
    entries -= p != NULL;
    return p;
}
static void *table_realloc(void *ctx, void *p, size_t size)
{
    void *moved = base_realloc(ctx, p, size);
    entries -= moved != NULL && p == NULL;
    return moved;
}
static void table_free(void *ctx, void *p, size_t size)
{
    static _Atomic unsigned frees;
    entries += p != NULL && ++frees % 8 != 0;
    base_free(ctx, p, size);
}
MUTANT(free_loses_an_entry_of_the_table, "malloc.lasts", .malloc = table_malloc,
       .calloc = table_calloc, .realloc = table_realloc, .free = table_free);
