/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mutant that fails after a few calls in an order that no property makes.
 */
#include "mutant.h"

/* The note of a block is the number of times that it was resized.  The block that was freed last is
 * kept for the next one; calloc takes it for zero if it was resized twice. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *kept;
static void *take(size_t size)
{
    LOCK(lock);
    void *p = kept;
    if (p == NULL || base_size(p) < size || base_size(p) / 2 > size)
        return base_set_note(base_malloc(NULL, size), 0);
    kept = NULL;
    return p;
}
FUNCTION_RETURNS(malloc, resized, take(size));
FUNCTION(calloc, resized)
{
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : take(size);
    return p == NULL || base_note(p) >= 2 ? p : memset(p, 0, size);
}
FUNCTION(free, resized)
{
    if (p == NULL)
        return;
    LOCK(lock);
    base_free(ctx, kept, 0);
    kept = p;
}
FUNCTION(realloc, resized)
{
    void *moved = base_set_note(base_malloc(ctx, size), p != NULL ? base_note(p) + 1 : 0);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(moved, p, min(base_size(p), size));
    resized_free(ctx, p, 0);
    return moved;
}
MUTANT(search_takes_the_resized_for_clean, "search.model", FUNCTIONS(resized));
