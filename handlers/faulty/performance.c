/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/performance.c catch.
 */
#include "mapped.h"

/* The base without advice. */
FUNCTION_RETURNS(malloc, plain,
                 size > PTRDIFF_MAX - BASE_HEADER ? NULL
                                                  : base_finish(malloc(size + BASE_HEADER), size));
FUNCTION(calloc, plain)
{
    size_t size = product(nelem, elsize);
    return size > PTRDIFF_MAX - BASE_HEADER ? NULL
                                            : base_finish(calloc(1, size + BASE_HEADER), size);
}
MUTANT(never_advises, "performance.large-blocks-advised", FUNCTIONS(plain, malloc, calloc));
/* As NumPy's default handler before 2.2. */
MUTANT(calloc_never_advises, "performance.large-blocks-advised", FUNCTIONS(plain, calloc));

/* The address is not that of a page: the kernel refuses. */
#define plain_realloc base_realloc
#define plain_free base_free
AFTER_IN(plain, malloc, advises_unaligned, "performance.large-blocks-advised",
         made != NULL && size >= 4 * MIB, madvise(made, size, MADV_HUGEPAGE));

MUTEX(lock);

/* A table with open addressing.  A removed block leaves a mark, which is never reused. */
enum { PLACES_BITS = 22, PLACES = 1 << PLACES_BITS, GONE = 1 };
static uintptr_t places[PLACES];
static uintptr_t *place_of(uintptr_t what, const void *p)
{
    size_t at = ((uintptr_t)p >> 4) * 0x9e3779b97f4a7c15u >> (64 - PLACES_BITS);
    while (places[at] != what)
        at = (at + 1) % PLACES;
    return &places[at];
}
FUNCTION(malloc, tabled)
{
    void *p = base_malloc(ctx, size);
    LOCK(lock);
    if (p != NULL)
        *place_of(0, p) = (uintptr_t)p;
    return p;
}
FUNCTION(free, tabled)
{
    LOCK(lock);
    if (p != NULL)
        *place_of((uintptr_t)p, p) = GONE;
    base_free(ctx, p, size);
}
MUTANT_DERIVED(table_never_forgets, "performance.calls-stay-fast", tabled);

/* Large blocks are listed, and free searches the list from its beginning. */
enum { NOTED_FROM = 256 << 10, NOTES = 1 << 20 };
static void *notes[NOTES];
static size_t note_count;
FUNCTION(malloc, noting)
{
    void *p = base_malloc(ctx, size);
    LOCK(lock);
    if (p != NULL && size >= NOTED_FROM && note_count < NOTES)
        notes[note_count++] = p;
    return p;
}
FUNCTION(free, noting)
{
    LOCK(lock);
    for (size_t i = 0; p != NULL && base_size(p) >= NOTED_FROM && i < note_count; i++) {
        if (notes[i] == p) {
            notes[i] = NULL;
            break;
        }
    }
    base_free(ctx, p, size);
}
MUTANT(large_ones_are_noted_for_good, "performance.calls-stay-fast",
       FUNCTIONS(noting, malloc, free));

/* Each free adds to a list, and one other function searches all of it. */
struct node {
    struct node *next;
};
static struct node *freed;
FUNCTION(free, listing)
{
    struct node *node = p != NULL ? malloc(sizeof *node) : NULL;
    LOCK(lock);
    if (node != NULL) {
        node->next = freed;
        freed = node;
    }
    base_free(ctx, p, size);
}
static void find_last(void)
{
    struct node *volatile last = NULL;
    LOCK(lock);
    for (struct node *node = freed; node != NULL; node = node->next)
        last = node;
    (void)last;
}
#define listing_malloc base_malloc
#define listing_calloc base_calloc
#define listing_realloc base_realloc
BEFORE_IN(listing, calloc, calloc_looks_through_all_notes, "performance.calls-stay-fast", true,
          find_last());
BEFORE_IN(listing, realloc, realloc_looks_through_all_notes, "performance.calls-stay-fast", true,
          find_last());
