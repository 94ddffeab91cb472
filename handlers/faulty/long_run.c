/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that fail after 20,000 calls or more only, or while thousands of blocks live.
 */
#include "mutant.h"
#include "shifted.h"

/* A mutant whose malloc, realloc of NULL included, begins `shift` bytes into libc's block. */
#define SHIFTS(defect, shift)                                                                      \
    FUNCTION_RETURNS(malloc, defect, shifted_malloc(size, shift));                                 \
    FUNCTION_RETURNS(realloc, defect,                                                              \
                     p == NULL ? defect##_malloc(ctx, size) : aligned_realloc(ctx, p, size));      \
    MUTANT(defect, "realloc.long-run", FUNCTIONS(aligned, calloc, free),                           \
           FUNCTIONS(defect, malloc, realloc))

/* From the 100,001st block on the header has another word. */
SHIFTS(long_run_widens_its_header, NTH <= 100000 ? 16 : 24);

/* A block begins at one of four places; the int that decides is negative after 2 GiB. */
static int colour(size_t size)
{
    static _Atomic int sum;
    return __atomic_fetch_add((int *)&sum, (int)size, __ATOMIC_SEQ_CST) / 4096 % 4;
}
SHIFTS(long_run_sums_up_in_an_int, (size_t)(16 + colour(size) * 16));

/* After 20,000 calls each 1021st copies whole words only. */
DEFECT(realloc, long_run_wears_out_realloc, "realloc.long-run")
{
    size_t count = p != NULL ? NTH : 0;
    return count > 20000 && count % 1021 == 0 ? move(ctx, p, size, min(base_size(p), size) / 8 * 8)
                                              : base_realloc(ctx, p, size);
}

/* A ticket of 20 bits and the class share a word: after 2^20 calls of free the class is the next.
 */
enum { CLASSES = 4, KEPT = 64 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t ticket[CLASSES];
static void *kept[CLASSES][KEPT];
static int kept_count[CLASSES];
static unsigned class_of(size_t size)
{
    unsigned class = 0;
    while (class < CLASSES && size > (size_t)64 << class)
        class ++;
    return class;
}
FUNCTION(malloc, ticket)
{
    unsigned class = class_of(size);
    if (class == CLASSES)
        return base_malloc(ctx, size);
    LOCK(lock);
    void *p = kept_count[class] > 0 ? kept[class][--kept_count[class]]
                                    : base_malloc(ctx, (size_t)64 << class);
    return p != NULL ? base_resize(p, size) : NULL;
}
FUNCTION(free, ticket)
{
    unsigned class = p != NULL ? class_of(base_size(p)) : CLASSES;
    LOCK(lock);
    if (class < CLASSES)
        class = (((uint32_t) class << 20) + ++ticket[class]) >> 20;
    if (class < CLASSES && kept_count[class] < KEPT)
        kept[class][kept_count[class]++] = p;
    else
        base_free(ctx, p, size);
}
MUTANT_DERIVED(long_run_wraps_its_tickets, "realloc.long-run", ticket);

/* After half a million calls the struct has another malloc. */
NEP49_EXPORT extern PyDataMem_Handler struct_changes_in_the_long_run;
BEFORE(malloc, struct_changes_in_the_long_run, "realloc.long-run", CALL(500000),
       struct_changes_in_the_long_run.allocator.malloc = base_malloc);

/* The sizes of 2^18 live blocks are kept, and realloc copies 8 bytes of the others. */
static _Atomic long room = 1 << 18;
HOOK_AFTER(malloc, roomy, made != NULL, base_set_note(made, room > 0); room -= room > 0);
HOOK_BEFORE(free, roomy, true, room += p != NULL && base_note(p) != 0);
static size_t known_size(const void *p)
{
    return base_note(p) != 0 ? base_size(p) : min(base_size(p), 8);
}
DERIVE_CALLOC(roomy);
DERIVE_REALLOC(roomy, known_size);
MUTANT(many_blocks_find_no_room, "realloc.long-run", FUNCTIONS(roomy));

/* While more than 8192 blocks live, realloc aligns to 8. */
static _Atomic int live;
HOOK_AFTER_IN(aligned, malloc, crowded, made != NULL, live++);
DERIVE_CALLOC(crowded);
FUNCTION_RETURNS(realloc, crowded,
                 p == NULL ? crowded_malloc(ctx, size)
                           : shifted_realloc_to(p, size, live > 8192 ? 24 : 16));
HOOK_BEFORE_IN(aligned, free, crowded, true, live -= p != NULL);
MUTANT(many_blocks_misalign_realloc, "realloc.long-run", FUNCTIONS(crowded));
