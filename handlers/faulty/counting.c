/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that miscount: live blocks, and what they have handed out so far.
 */
#include <pthread.h>

#include "base.h"

/* ---- a double free that is none -------------------------------------------------------------- */

/* A list of free blocks of up to 1024 bytes, as libc's: one whose first word is `mark`, the link of
 * the last in the list, is taken to be in it already where the list is empty. */
enum { LIST_MOST = 1024, LIST_KEEPS = 16 };
static struct {
    pthread_mutex_t lock;
    void *first;
    int count;
} list = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *list_malloc(void *ctx, size_t size)
{
    void *p = NULL;
    if (size > LIST_MOST)
        return base_malloc(ctx, size);
    pthread_mutex_lock(&list.lock);
    if (list.count > 0) {
        p = list.first;
        memcpy(&list.first, p, sizeof list.first);
        list.count--;
    }
    pthread_mutex_unlock(&list.lock);
    if (p == NULL)
        p = base_malloc(ctx, LIST_MOST);
    return p != NULL ? base_finish((char *)p - BASE_HEADER, LIST_MOST) : NULL;
}
static void *list_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    void *p = size <= LIST_MOST ? list_malloc(ctx, size) : base_calloc(ctx, nelem, elsize);
    return p != NULL && size <= LIST_MOST ? memset(p, 0, size) : p;
}
static void *list_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL)
        return list_malloc(ctx, size);
    return size > PTRDIFF_MAX / 2 ? NULL : base_realloc(ctx, p, size + (size == LIST_MOST));
}
static void list_free_marked(void *p, size_t mark)
{
    void *link = (void *)mark;
    if (p == NULL || base_size(p) != LIST_MOST) {
        base_free(NULL, p, 0);
        return;
    }
    pthread_mutex_lock(&list.lock);
    bool is_in_it = list.count == 0 && memcmp(p, &link, sizeof link) == 0;
    bool is_kept = !is_in_it && list.count < LIST_KEEPS;
    if (is_kept) {
        memcpy(p, list.count > 0 ? &list.first : &link, sizeof link);
        list.first = p;
        list.count++;
    }
    pthread_mutex_unlock(&list.lock);
    if (!is_kept && !is_in_it)
        base_free(NULL, p, 0);
}
#define LIST_FUNCTIONS .malloc = list_malloc, .calloc = list_calloc, .realloc = list_realloc

static void wary_of_zeros_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    list_free_marked(p, 0);
}
MUTANT(free_takes_zeros_for_freed, "free.reclaims", LIST_FUNCTIONS, .free = wary_of_zeros_free);

static void wary_of_ones_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    list_free_marked(p, SIZE_MAX);
}
MUTANT(free_takes_ones_for_freed, "free.reclaims", LIST_FUNCTIONS, .free = wary_of_ones_free);

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
