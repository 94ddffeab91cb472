/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/calloc.c catch.
 */
#define _GNU_SOURCE

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"
#include "shifted.h"
#include "slots.h"

static bool product(size_t nelem, size_t elsize, size_t *size)
{
    return !__builtin_mul_overflow(nelem, elsize, size) && *size <= PTRDIFF_MAX;
}

/* ---- calloc.zeroed --------------------------------------------------------------------------- */

/* A block full of junk, as if it had been in use, of which the first `zeroed` bytes are zeroed. */
static void *half_clean(size_t size, size_t zeroed)
{
    void *p = base_malloc(NULL, size);
    return p != NULL ? memset(memset(p, 0xa5, size), 0, zeroed) : NULL;
}

/* What malloc gives it gives. */
static void *no_zero_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    return product(nelem, elsize, &size) ? base_malloc(ctx, size) : NULL;
}
MUTANT(calloc_does_not_zero, "calloc.zeroed calloc.zeroed-when-reused", .calloc = no_zero_calloc);

/* Zeroes by words, and forgets what is left. */
static void *by_words_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    (void)ctx;
    return product(nelem, elsize, &size) ? half_clean(size, size & ~(size_t)7) : NULL;
}
MUTANT(calloc_leaves_the_last_bytes, "calloc.zeroed", .calloc = by_words_calloc);

/* Zeroes as many bytes as there are elements. */
static void *by_elements_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    (void)ctx;
    return product(nelem, elsize, &size) ? half_clean(size, elsize > 0 ? nelem : 0) : NULL;
}
MUTANT(calloc_zeroes_a_byte_an_element, "calloc.zeroed", .calloc = by_elements_calloc);

/* The length to zero is a short. */
static void *short_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    (void)ctx;
    return product(nelem, elsize, &size) ? half_clean(size, (uint16_t)size) : NULL;
}
MUTANT(calloc_zeroes_in_16_bits, "calloc.zeroed", .calloc = short_calloc);

/* A word of its own at the end of what is larger than 8 MiB, inside the block. */
static void *trailing_calloc(void *ctx, size_t nelem, size_t elsize)
{
    char *p = base_calloc(ctx, nelem, elsize);
    if (p != NULL && nelem * elsize > 8 << 20)
        memcpy(p + nelem * elsize - 8, "the end.", 8);
    return p;
}
MUTANT(calloc_marks_the_end_of_large_blocks, "calloc.zeroed", .calloc = trailing_calloc);

/* ---- calloc.disjoint ------------------------------------------------------------------------- */

/* Blocks of up to 16 bytes come from a slab, and how many live is counted in 16 bits: at 0 it is
 * begun anew. */
static struct {
    pthread_mutex_t lock;
    size_t next;
    uint16_t live;
    _Alignas(16) char places[1 << 17][16];
} slab = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_in_slab(const void *p)
{
    return (uintptr_t)p - (uintptr_t)slab.places < sizeof slab.places;
}

static void *slab_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (!product(nelem, elsize, &size))
        return NULL;
    pthread_mutex_lock(&slab.lock);
    slab.next = slab.live == 0 ? 0 : slab.next;
    bool fits = size <= 16 && slab.next < sizeof slab.places / sizeof *slab.places;
    void *p = fits ? slab.places[slab.next++] : NULL;
    slab.live += fits;
    pthread_mutex_unlock(&slab.lock);
    return fits ? memset(p, 0, 16) : base_calloc(ctx, nelem, elsize);
}

static void slab_free(void *ctx, void *p, size_t size)
{
    if (!is_in_slab(p)) {
        base_free(ctx, p, size);
        return;
    }
    pthread_mutex_lock(&slab.lock);
    slab.live--;
    pthread_mutex_unlock(&slab.lock);
}

static void *slab_realloc(void *ctx, void *p, size_t size)
{
    if (!is_in_slab(p))
        return base_realloc(ctx, p, size);
    void *moved = base_malloc(ctx, size);
    if (moved == NULL)
        return NULL;
    memcpy(moved, p, size < 16 ? size : 16);
    slab_free(ctx, p, 16);
    return moved;
}
MUTANT(calloc_counts_a_slab_in_16_bits, "calloc.disjoint", .calloc = slab_calloc,
       .realloc = slab_realloc, .free = slab_free);

/* ---- calloc.zeroed-when-reused --------------------------------------------------------------- */

/* One freed block of each of 64 sizes is kept; what comes from there is known to be old. */
static struct {
    pthread_mutex_t lock;
    void *block[64];
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void **kept_place(size_t size)
{
    size_t class = (size + 63) / 64;
    return class < 64 ? &kept.block[class] : NULL;
}

static void *take_kept(size_t size)
{
    void *p = NULL, **place = kept_place(size);
    if (place != NULL) {
        pthread_mutex_lock(&kept.lock);
        p = *place;
        *place = NULL;
        pthread_mutex_unlock(&kept.lock);
    }
    return p;
}

static void *keeping_malloc(void *ctx, size_t size)
{
    char *p = take_kept(size);
    if (p != NULL)
        return base_finish(p - BASE_HEADER, size);
    return size > PTRDIFF_MAX - 64 ? NULL
                                   : base_finish(malloc((size + 63) / 64 * 64 + BASE_HEADER), size);
    (void)ctx;
}

static void keeping_free(void *ctx, void *p, size_t size)
{
    void **place = p != NULL ? kept_place(base_size(p)) : NULL;
    if (place != NULL) {
        pthread_mutex_lock(&kept.lock);
        void *before = *place;
        *place = p;
        pthread_mutex_unlock(&kept.lock);
        p = before;
    }
    base_free(ctx, p, size);
}

static void *keeping_realloc(void *ctx, void *p, size_t size)
{
    void *moved = keeping_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    size_t old = base_size(p);
    memcpy(moved, p, old < size ? old : size);
    keeping_free(ctx, p, old);
    return moved;
}

#define KEEPING_FUNCTIONS .malloc = keeping_malloc, .realloc = keeping_realloc, .free = keeping_free

/* Takes what was kept for clean. */
static void *trusting_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (!product(nelem, elsize, &size))
        return NULL;
    char *p = take_kept(size);
    if (p != NULL)
        return base_finish(p - BASE_HEADER, size);
    p = keeping_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
MUTANT(calloc_trusts_what_was_kept, "calloc.zeroed-when-reused", KEEPING_FUNCTIONS,
       .calloc = trusting_calloc);

/* Zeroes as much as whoever had the block last had asked for. */
static void *last_size_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (!product(nelem, elsize, &size))
        return NULL;
    char *p = take_kept(size);
    if (p != NULL) {
        memset(p, 0, base_size(p) < size ? base_size(p) : size);
        return base_finish(p - BASE_HEADER, size);
    }
    p = keeping_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
MUTANT(calloc_zeroes_the_size_before, "calloc.zeroed-when-reused", KEEPING_FUNCTIONS,
       .calloc = last_size_calloc);

/* Takes an errno that was there before for an error of its own, and stops half-way. */
static void *errno_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (!product(nelem, elsize, &size))
        return NULL;
    void *p = base_malloc(ctx, size);
    if (p == NULL || errno == ENOMEM)
        return p;
    return memset(p, 0, size);
}
MUTANT(calloc_believes_an_old_errno, "calloc.zeroed-when-reused", .calloc = errno_calloc);

/* A single large block is kept, and large blocks are always zero, are they not. */
static void *_Atomic kept_large;
enum { LARGE = 256 << 10 };
static void large_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && base_size(p) >= LARGE)
        p = __atomic_exchange_n((void **)&kept_large, p, __ATOMIC_ACQ_REL);
    base_free(ctx, p, size);
}
static void *large_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (!product(nelem, elsize, &size) || size < LARGE)
        return base_calloc(ctx, nelem, elsize);
    char *p = __atomic_exchange_n((void **)&kept_large, NULL, __ATOMIC_ACQ_REL);
    if (p != NULL && base_size(p) >= size)
        return base_finish(p - BASE_HEADER, size);
    base_free(ctx, p, 0);
    return base_calloc(ctx, nelem, elsize);
}
MUTANT(calloc_thinks_large_blocks_are_fresh, "calloc.zeroed-when-reused", .calloc = large_calloc,
       .free = large_free);

/* One block that was freed waits for calloc, with a note that it is dirty, which a thread other
 * than the first one does not make. */
static struct {
    pthread_mutex_t lock;
    pthread_t owner;
    char *block;
    bool has_owner, is_dirty;
} noted = {.lock = PTHREAD_MUTEX_INITIALIZER};
static void *noted_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (!product(nelem, elsize, &size))
        return NULL;
    pthread_mutex_lock(&noted.lock);
    char *p = noted.block != NULL && base_size(noted.block) == size ? noted.block : NULL;
    noted.block = p != NULL ? NULL : noted.block;
    bool is_dirty = noted.is_dirty;
    pthread_mutex_unlock(&noted.lock);
    if (p == NULL)
        return base_calloc(ctx, nelem, elsize);
    return is_dirty ? memset(p, 0, size) : p;
}
static void noted_free(void *ctx, void *p, size_t size)
{
    pthread_mutex_lock(&noted.lock);
    void *before = noted.block;
    noted.owner = noted.has_owner ? noted.owner : pthread_self();
    noted.has_owner = true;
    if (p != NULL) {
        noted.block = p;
        noted.is_dirty = pthread_equal(pthread_self(), noted.owner) != 0;
    }
    pthread_mutex_unlock(&noted.lock);
    base_free(ctx, p != NULL ? before : NULL, size);
}
MUTANT(calloc_trusts_what_another_thread_freed, "calloc.zeroed-when-reused", .calloc = noted_calloc,
       .free = noted_free);

/* ---- calloc.product -------------------------------------------------------------------------- */

static void *one_argument_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)elsize;
    return base_calloc(ctx, nelem, 1);
}
MUTANT(calloc_ignores_elsize, "calloc.product", .calloc = one_argument_calloc);

static void *other_argument_calloc(void *ctx, size_t nelem, size_t elsize)
{
    return base_calloc(ctx, elsize == 1 ? nelem : 1, elsize);
}
MUTANT(calloc_ignores_nelem, "calloc.product", .calloc = other_argument_calloc);

static void *adding_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    return nelem <= 1 || elsize <= 1       ? base_calloc(ctx, nelem, elsize)
           : product(nelem, elsize, &size) ? base_calloc(ctx, nelem + elsize, 1)
                                           : NULL;
}
MUTANT(calloc_adds, "calloc.product", .calloc = adding_calloc);

/* An element of 64 KiB or more has its size cut. */
static void *cut_element_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    return product(nelem, elsize, &size) ? base_calloc(ctx, nelem, (uint16_t)elsize) : NULL;
}
MUTANT(calloc_cuts_elsize, "calloc.product", .calloc = cut_element_calloc);

/* ---- calloc.overflow ------------------------------------------------------------------------- */

static void *wrapping_calloc(void *ctx, size_t nelem, size_t elsize)
{
    return base_calloc(ctx, nelem * elsize, 1);
}
MUTANT(calloc_wraps, "calloc.overflow", .calloc = wrapping_calloc);

/* Looks whether the product is smaller than a factor, which most that wrap are not. */
static void *comparing_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size = nelem * elsize;
    return elsize > 0 && (size < nelem || size < elsize) ? NULL : base_calloc(ctx, size, 1);
}
MUTANT(calloc_compares_the_product, "calloc.overflow", .calloc = comparing_calloc);

/* Two numbers of more than half the bits are too much; one alone is not looked at. */
enum { HALF = 4 * sizeof(size_t) };
static void *halves_calloc(void *ctx, size_t nelem, size_t elsize)
{
    return nelem >> HALF != 0 && elsize >> HALF != 0 ? NULL : base_calloc(ctx, nelem * elsize, 1);
}
MUTANT(calloc_checks_for_two_large_factors, "calloc.overflow", .calloc = halves_calloc);

/* The product is checked, and then the header makes it wrap. */
static void *header_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    (void)ctx;
    return __builtin_mul_overflow(nelem, elsize, &size)
               ? NULL
               : base_finish(calloc(1, size + BASE_HEADER), size);
}
MUTANT(calloc_wraps_with_its_header, "calloc.overflow", .calloc = header_calloc);

/* The product wraps only on its way to the list of kept blocks. */
static void *kept_wrapping_calloc(void *ctx, size_t nelem, size_t elsize)
{
    char *p = take_kept(nelem * elsize);
    if (p != NULL)
        return memset(base_finish(p - BASE_HEADER, nelem * elsize), 0, nelem * elsize);
    size_t size;
    if (!product(nelem, elsize, &size))
        return NULL;
    p = keeping_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
MUTANT(calloc_wraps_where_blocks_are_kept, "calloc.overflow", KEEPING_FUNCTIONS,
       .calloc = kept_wrapping_calloc);

/* ---- calloc.alignment ------------------------------------------------------------------------ */

static void *plain_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return shifted_malloc(size, BASE_HEADER);
}
#define SHIFTED_FUNCTIONS .malloc = plain_malloc, .realloc = shifted_realloc, .free = shifted_free

static void *one_word_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    return shifted_calloc_at(nelem, elsize, 24);
}
MUTANT(calloc_has_a_one_word_header, "calloc.alignment", SHIFTED_FUNCTIONS,
       .calloc = one_word_calloc);

/* Rows of three words or more each are packed, and every other begins in the middle of 16 bytes. */
static void *packed_calloc(void *ctx, size_t nelem, size_t elsize)
{
    static size_t count;
    bool packs = nelem == 3 && elsize >= 24 && elsize % 8 == 0;
    (void)ctx;
    return shifted_calloc_at(
        nelem, elsize, packs && __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED) % 2 != 0 ? 24 : 16);
}
MUTANT(calloc_packs_rows_of_three, "calloc.alignment", SHIFTED_FUNCTIONS, .calloc = packed_calloc);

/* Aligned for an element, it thinks, and looks at the size of one. */
static void *element_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    return shifted_calloc_at(nelem, elsize, elsize == 8 ? 24 : 16);
}
MUTANT(calloc_aligns_for_elsize, "calloc.alignment", SHIFTED_FUNCTIONS, .calloc = element_calloc);

static void *elsewhere_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    return shifted_calloc_at(nelem, elsize, syscall(SYS_gettid) == getpid() ? 16 : 24);
}
MUTANT(calloc_misaligns_off_the_main_thread, "calloc.alignment", SHIFTED_FUNCTIONS,
       .calloc = elsewhere_calloc);

/* ---- calloc.disjoint ------------------------------------------------------------------------- */

/* Zeroed cells of 128 bytes, numbered in 16 bits, and given back to nobody. */
enum { CELL = 128 };
static char *cells;
static void *numbered_calloc(void *ctx, size_t nelem, size_t elsize)
{
    static uint16_t next;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    size_t size;
    if (!product(nelem, elsize, &size) || size > CELL - BASE_HEADER)
        return base_calloc(ctx, nelem, elsize);
    pthread_mutex_lock(&lock);
    if (cells == NULL)
        cells =
            mmap(NULL, 65536 * CELL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *cell = cells + (size_t)next++ * CELL;
    pthread_mutex_unlock(&lock);
    return memset(base_finish(cell, size), 0, size);
}
static bool is_in_cell(const void *p)
{
    return cells != NULL && (const char *)p > cells && (const char *)p < cells + 65536 * CELL;
}
static void cell_free(void *ctx, void *p, size_t size)
{
    if (!is_in_cell(p))
        base_free(ctx, p, size);
}
static void *cell_realloc(void *ctx, void *p, size_t size)
{
    if (!is_in_cell(p))
        return base_realloc(ctx, p, size);
    void *moved = base_malloc(ctx, size);
    return moved != NULL ? memcpy(moved, p, base_size(p) < size ? base_size(p) : size) : NULL;
}
MUTANT(calloc_numbers_in_16_bits, "calloc.disjoint", .calloc = numbered_calloc,
       .realloc = cell_realloc, .free = cell_free);

/* ---- calloc.neighbours ----------------------------------------------------------------------- */

/* Zeroes in steps of 96 bytes. */
static void *stepping_calloc(void *ctx, size_t nelem, size_t elsize)
{
    char *p = slot_calloc(ctx, nelem, elsize);
    size_t steps = p != NULL ? (nelem * elsize + 95) / 96 : 0;
    if (is_in_slot(p) && is_in_slot(p + steps * 96))
        memset(p, 0, steps * 96);
    return p;
}
MUTANT(calloc_zeroes_into_the_next, "calloc.neighbours", SLOT_FUNCTIONS, .calloc = stepping_calloc);

/* ---- calloc.zero-arguments ------------------------------------------------------------------- */

/* The check against overflow divides. */
static void *dividing_calloc(void *ctx, size_t nelem, size_t elsize)
{
    volatile size_t divisor = elsize;
    return nelem > (SIZE_MAX - BASE_HEADER) / divisor ? NULL : base_calloc(ctx, nelem, elsize);
}
MUTANT(calloc_divides_by_elsize, "calloc.zero-arguments", .calloc = dividing_calloc);

/* The other way round, and only where it is in doubt. */
static void *other_dividing_calloc(void *ctx, size_t nelem, size_t elsize)
{
    volatile size_t divisor = nelem;
    if (elsize >> HALF != 0 && elsize > (SIZE_MAX - BASE_HEADER) / divisor)
        return NULL;
    return base_calloc(ctx, nelem, elsize);
}
MUTANT(calloc_divides_by_nelem, "calloc.zero-arguments", .calloc = other_dividing_calloc);

/* Nothing to zero, so it is the address behind the header, without one. */
static void *empty_calloc(void *ctx, size_t nelem, size_t elsize)
{
    static _Alignas(16) char empty[BASE_HEADER];
    return nelem == 0 || elsize == 0 ? empty + BASE_HEADER : base_calloc(ctx, nelem, elsize);
}
MUTANT(calloc_of_nothing_is_static, "calloc.zero-arguments", .calloc = empty_calloc);
