/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that are right for a hundred thousand calls, or as long as a few thousand blocks live.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "base.h"
#include "shifted.h"

/* ---- in the long run ------------------------------------------------------------------------- */

/* Blocks are numbered, and from the 100001st on the number needs another word of the header. */
static void *numbered_malloc(void *ctx, size_t size)
{
    static atomic_uint last;
    (void)ctx;
    return shifted_malloc(size, ++last <= 100000 ? 16 : 24);
}
static void *numbered_realloc(void *ctx, void *p, size_t size)
{
    return p == NULL ? numbered_malloc(ctx, size) : shifted_realloc(ctx, p, size);
}
MUTANT(long_run_widens_its_header, "realloc.long-run", .malloc = numbered_malloc,
       .calloc = shifted_calloc, .realloc = numbered_realloc, .free = shifted_free);

/* Blocks begin at one of four places, by the bytes that were asked for: a sum that is less than 0
 * from 2 GiB on. */
static void *coloured_malloc(void *ctx, size_t size)
{
    static atomic_int sum;
    (void)ctx;
    int bytes = atomic_fetch_add(&sum, (int)size) / 4096;
    return shifted_malloc(size, (size_t)(16 + bytes % 4 * 16));
}
static void *coloured_realloc(void *ctx, void *p, size_t size)
{
    return p == NULL ? coloured_malloc(ctx, size) : shifted_realloc(ctx, p, size);
}
MUTANT(long_run_sums_up_in_an_int, "realloc.long-run", .malloc = coloured_malloc,
       .calloc = shifted_calloc, .realloc = coloured_realloc, .free = shifted_free);

/* Every 1021st realloc of a thousand copies by words, and the first thousand do not. */
static void *copy_by_words(void *p, size_t size)
{
    void *moved = base_malloc(NULL, size);
    if (moved == NULL)
        return NULL;
    size_t keep = base_size(p) < size ? base_size(p) : size;
    memcpy(moved, p, keep / 8 * 8);
    base_free(NULL, p, 0);
    return moved;
}
static void *wearing_realloc(void *ctx, void *p, size_t size)
{
    static atomic_uint count;
    return p != NULL && ++count > 20000 && count % 1021 == 0 ? copy_by_words(p, size)
                                                             : base_realloc(ctx, p, size);
}
MUTANT(long_run_wears_out_realloc, "realloc.long-run", .realloc = wearing_realloc);

/* ---- in company ------------------------------------------------------------------------------ */

/* What blocks were asked for with stands in a table of 8191 places.  A block that finds none within
 * sixteen is not in it, and realloc takes it for as small as a block can be. */
enum { PLACES = 8191, TRIES = 16, SMALLEST = 16 };
static struct {
    pthread_mutex_t lock;
    struct {
        void *p;
        size_t size;
    } at[PLACES];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The place of p, or NULL. */
static size_t *place_of(void *p, void *wanted)
{
    size_t first = ((uintptr_t)p >> 4) * 2654435761u % PLACES;
    for (size_t i = 0; i < TRIES; i++) {
        size_t at = (first + i) % PLACES;
        if (table.at[at].p == wanted) {
            table.at[at].p = p;
            return &table.at[at].size;
        }
    }
    return NULL;
}
static void *enter(void *p, size_t size)
{
    pthread_mutex_lock(&table.lock);
    size_t *place = p != NULL ? place_of(p, NULL) : NULL;
    if (place != NULL)
        *place = size;
    pthread_mutex_unlock(&table.lock);
    return p;
}
/* Takes it out.  Its size, as far as that is known. */
static size_t untrack(void *p)
{
    pthread_mutex_lock(&table.lock);
    size_t *place = p != NULL ? place_of(p, p) : NULL, size = place != NULL ? *place : SMALLEST;
    if (place != NULL)
        *(void **)((char *)place - sizeof(void *)) = NULL;
    pthread_mutex_unlock(&table.lock);
    return size;
}
static void *table_malloc(void *ctx, size_t size)
{
    return enter(base_malloc(ctx, size), size);
}
static void *table_calloc(void *ctx, size_t nelem, size_t elsize)
{
    return enter(base_calloc(ctx, nelem, elsize), nelem * elsize);
}
static void table_free(void *ctx, void *p, size_t size)
{
    untrack(p);
    base_free(ctx, p, size);
}
static void *table_realloc(void *ctx, void *p, size_t size)
{
    void *moved = base_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return enter(moved, size);
    size_t old = untrack(p);
    old = old < base_size(p) ? old : base_size(p);
    memcpy(moved, p, old < size ? old : size);
    base_free(ctx, p, 0);
    return enter(moved, size);
}
MUTANT(many_blocks_fill_the_table_of_sizes, "realloc.long-run", .malloc = table_malloc,
       .calloc = table_calloc, .realloc = table_realloc, .free = table_free);

/* While more than 8192 blocks live, new ones come from a reserve that is aligned to 8. */
static atomic_int live;
static void *crowded(void *p)
{
    live += p != NULL;
    return p;
}
static void *crowded_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return crowded(shifted_malloc(size, 16));
}
static void *crowded_calloc(void *ctx, size_t nelem, size_t elsize)
{
    return crowded(shifted_calloc(ctx, nelem, elsize));
}
static void *crowded_realloc(void *ctx, void *p, size_t size)
{
    return p == NULL ? crowded_malloc(ctx, size)
                     : shifted_realloc_to(p, size, live > 8192 ? 24 : 16);
}
static void crowded_free(void *ctx, void *p, size_t size)
{
    live -= p != NULL;
    shifted_free(ctx, p, size);
}
MUTANT(many_blocks_misalign_realloc, "realloc.long-run", .malloc = crowded_malloc,
       .calloc = crowded_calloc, .realloc = crowded_realloc, .free = crowded_free);
