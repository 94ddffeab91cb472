/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/performance.c catch.
 */
#include "mapped.h"

enum { HERE = BASE_HEADER };

/* malloc's memory as it is: what most handlers do. */
static void *plain_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return size > PTRDIFF_MAX - HERE ? NULL : base_finish(malloc(size + HERE), size);
}

static void *plain_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    (void)ctx;
    if (__builtin_mul_overflow(nelem, elsize, &size) || size > PTRDIFF_MAX - HERE)
        return NULL;
    return base_finish(calloc(1, size + HERE), size);
}
MUTANT(never_advises, "performance.large-blocks-advised", .malloc = plain_malloc,
       .calloc = plain_calloc);

/* As NumPy's default did before 2.2. */
MUTANT(calloc_never_advises, "performance.large-blocks-advised", .calloc = plain_calloc);

/* The length in pages, where madvise wants bytes. */
static void *short_malloc(void *ctx, size_t size)
{
    char *p = plain_malloc(ctx, size);
    if (p != NULL && size >= 4 << 20)
        madvise((char *)((uintptr_t)p & ~(uintptr_t)4095), size / 4096, MADV_HUGEPAGE);
    return p;
}
MUTANT(advises_too_little, "performance.large-blocks-advised", .malloc = short_malloc);

/* The block's own address, which begins no page: the kernel refuses, and nobody looks. */
static void *unaligned_malloc(void *ctx, size_t size)
{
    void *p = plain_malloc(ctx, size);
    if (p != NULL && size >= 4 << 20)
        madvise(p, size, MADV_HUGEPAGE);
    return p;
}
MUTANT(advises_unaligned, "performance.large-blocks-advised", .malloc = unaligned_malloc);

/* ---- what grows with the calls that were made ------------------------------------------------ */

/* Live blocks stand in a table with open addressing.  What has gone leaves a mark, or the search
 * for others would end there, and no mark is ever taken for a place. */
enum { PLACES_BITS = 22, PLACES = 1 << PLACES_BITS, GONE = 1 };
static uintptr_t places[PLACES];
static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;
static void lock_places(void)
{
    pthread_mutex_lock(&places_lock);
}
static void unlock_places(void)
{
    pthread_mutex_unlock(&places_lock);
}
__attribute__((constructor)) static void guard_places(void)
{
    pthread_atfork(lock_places, unlock_places, unlock_places);
}
static size_t place_of(uintptr_t what, const void *p)
{
    size_t at = ((uintptr_t)p >> 4) * 0x9e3779b97f4a7c15u >> (64 - PLACES_BITS);
    while (places[at] != what)
        at = (at + 1) % PLACES;
    return at;
}
static void *tabled(void *p)
{
    lock_places();
    if (p != NULL)
        places[place_of(0, p)] = (uintptr_t)p;
    unlock_places();
    return p;
}
static void *tabled_malloc(void *ctx, size_t size)
{
    return tabled(base_malloc(ctx, size));
}
static void *tabled_calloc(void *ctx, size_t nelem, size_t elsize)
{
    return tabled(base_calloc(ctx, nelem, elsize));
}
static void tabled_free(void *ctx, void *p, size_t size)
{
    lock_places();
    if (p != NULL)
        places[place_of((uintptr_t)p, p)] = GONE;
    unlock_places();
    base_free(ctx, p, size);
}
static void *tabled_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return move_by(tabled_malloc, tabled_free, p, size);
}
MUTANT(table_never_forgets, "performance.calls-stay-fast", .malloc = tabled_malloc,
       .calloc = tabled_calloc, .realloc = tabled_realloc, .free = tabled_free);

/* Large blocks are noted one after another, and what is freed is looked for from the first on. */
enum { NOTED_FROM = 256 << 10, NOTES = 1 << 20 };
static void *notes[NOTES];
static size_t note_count;
static void *noting_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    lock_places();
    if (p != NULL && size >= NOTED_FROM && note_count < NOTES)
        notes[note_count++] = p;
    unlock_places();
    return p;
}
static void noting_free(void *ctx, void *p, size_t size)
{
    lock_places();
    for (size_t i = 0; p != NULL && base_size(p) >= NOTED_FROM && i < note_count; i++) {
        if (notes[i] == p) {
            notes[i] = NULL;
            break;
        }
    }
    unlock_places();
    base_free(ctx, p, size);
}
MUTANT(large_ones_are_noted_for_good, "performance.calls-stay-fast", .malloc = noting_malloc,
       .free = noting_free);

/* Each free leaves a note, and what looks through all of them is one function. */
struct note {
    struct note *next;
};
static struct note *freed;
static void noting_small_free(void *ctx, void *p, size_t size)
{
    struct note *note = p != NULL ? malloc(sizeof *note) : NULL;
    lock_places();
    if (note != NULL) {
        note->next = freed;
        freed = note;
    }
    unlock_places();
    base_free(ctx, p, size);
}
static void find_last(void)
{
    struct note *volatile last = NULL;
    lock_places();
    for (struct note *note = freed; note != NULL; note = note->next)
        last = note;
    (void)last;
    unlock_places();
}
static void *finding_calloc(void *ctx, size_t nelem, size_t elsize)
{
    find_last();
    return base_calloc(ctx, nelem, elsize);
}
MUTANT(calloc_looks_through_all_notes, "performance.calls-stay-fast", .calloc = finding_calloc,
       .free = noting_small_free);

static void *finding_realloc(void *ctx, void *p, size_t size)
{
    find_last();
    return base_realloc(ctx, p, size);
}
MUTANT(realloc_looks_through_all_notes, "performance.calls-stay-fast", .realloc = finding_realloc,
       .free = noting_small_free);
