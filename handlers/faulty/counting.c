/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that miscount: live blocks, and what they have handed out so far.
 */
#include <pthread.h>

#include "base.h"

/* ---- an arena that begins anew when it is empty ---------------------------------------------- */

/* Blocks of up to a page stand in an arena, which begins anew when none of those lives that
 * were counted. */
enum { ARENA = 4 << 20, ARENA_MOST = 4096 };
static struct {
    pthread_mutex_t lock;
    _Alignas(16) char memory[ARENA];
    size_t used, live;
} arena = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_in_arena(const void *p)
{
    return (const char *)p >= arena.memory && (const char *)p < arena.memory + ARENA;
}
/* The second word of the header says whether it was counted. */
static void *arena_take(size_t size, bool is_counted)
{
    size_t taken = BASE_HEADER + (size + 15) / 16 * 16, flag = is_counted;
    char *raw = NULL;
    if (size > ARENA_MOST)
        return base_malloc(NULL, size);
    pthread_mutex_lock(&arena.lock);
    if (taken <= ARENA - arena.used) {
        raw = arena.memory + arena.used;
        arena.used += taken;
        arena.live += flag;
    }
    pthread_mutex_unlock(&arena.lock);
    if (raw == NULL)
        return base_malloc(NULL, size);
    memcpy(raw + 8, &flag, sizeof flag);
    return base_finish(raw, size);
}
static void arena_free(void *ctx, void *p, size_t size)
{
    size_t flag;
    if (!is_in_arena(p)) {
        base_free(ctx, p, size);
        return;
    }
    memcpy(&flag, (char *)p - 8, sizeof flag);
    pthread_mutex_lock(&arena.lock);
    arena.live -= flag;
    if (flag && arena.live == 0)
        arena.used = 0;
    pthread_mutex_unlock(&arena.lock);
}
static void *arena_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return arena_take(size, true);
}
static void *arena_calloc_as(size_t nelem, size_t elsize, bool is_counted)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    if (size > ARENA_MOST)
        return base_calloc(NULL, nelem, elsize);
    void *p = arena_take(size, is_counted);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void *arena_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    return arena_calloc_as(nelem, elsize, true);
}
static void *arena_realloc_as(void *p, size_t size, bool is_counted)
{
    void *moved = arena_take(size, is_counted);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    arena_free(NULL, p, 0);
    return moved;
}
static void *arena_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return arena_realloc_as(p, size, true);
}
#define ARENA_FUNCTIONS                                                                            \
    .malloc = arena_malloc, .calloc = arena_calloc, .realloc = arena_realloc, .free = arena_free

static void *unless_first_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return arena_take(size, arena.used != 0);
}
MUTANT(malloc_does_not_count_the_first, "malloc.disjoint", ARENA_FUNCTIONS,
       .malloc = unless_first_malloc);

static void *uncounted_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    return arena_calloc_as(nelem, elsize, false);
}
MUTANT(calloc_is_not_counted, "calloc.disjoint", ARENA_FUNCTIONS, .calloc = uncounted_calloc);

static void *null_uncounted_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return arena_realloc_as(p, size, p != NULL);
}
MUTANT(realloc_of_null_is_not_counted, "realloc.null-allocates", ARENA_FUNCTIONS,
       .realloc = null_uncounted_realloc);

static void *moved_uncounted_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return arena_realloc_as(p, size, p == NULL);
}
MUTANT(realloc_that_moves_is_not_counted, "realloc.neighbours", ARENA_FUNCTIONS,
       .realloc = moved_uncounted_realloc);
