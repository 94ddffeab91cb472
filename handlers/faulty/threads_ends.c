/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/threads_ends.c catch.
 */
#include <alloca.h>
#include <pthread.h>

#include "base.h"

/* ---- a small stack ----------------------------------------------------------------------- */

enum { BOUNCE = 96 << 10 };

/* It copies by way of a buffer. */
__attribute__((noinline)) static void bounce(char *to, const char *from, size_t size)
{
    char buffer[BOUNCE];
    for (size_t at = 0; at < size; at += BOUNCE) {
        size_t length = size - at < BOUNCE ? size - at : BOUNCE;
        memcpy(buffer, from + at, length);
        __asm__ volatile("" ::"r"(buffer) : "memory");
        memcpy(to + at, buffer, length);
    }
}
static void *bouncing_realloc(void *ctx, void *p, size_t size)
{
    void *moved = base_malloc(ctx, size);
    if (moved == NULL || p == NULL)
        return moved;
    bounce(moved, p, base_size(p) < size ? base_size(p) : size);
    base_free(ctx, p, 0);
    return moved;
}
MUTANT(copies_by_the_stack, "threads.small-stack", .realloc = bouncing_realloc);

/* Zeros of a size that the caller chose, up to 256 KiB of them. */
static void *zeros_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size) || size > 256 << 10)
        return base_calloc(ctx, nelem, elsize);
    char *zeros = alloca(size + 1);
    memset(zeros, 0, size + 1);
    __asm__ volatile("" ::"r"(zeros) : "memory");
    void *p = base_malloc(ctx, size);
    return p != NULL ? memcpy(p, zeros, size) : NULL;
}
MUTANT(has_its_zeros_on_the_stack, "threads.small-stack", .calloc = zeros_calloc);

/* ---- destructors of a thread --------------------------------------------------------------- */

/* A cache of a thread's own, which the destructor frees; the pointer to it stays. */
enum { CACHED = 500, PLACES = 24 };
struct own_cache {
    size_t count;
    void *at[PLACES];
};
static _Thread_local struct own_cache *own_cache;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static void free_cache(void *data)
{
    struct own_cache *cache = data;
    for (size_t i = 0; i < cache->count; i++)
        base_free(NULL, cache->at[i], 0);
    free(cache);
}
static void make_key(void)
{
    pthread_key_create(&key, free_cache);
}
static struct own_cache *have_cache(void)
{
    pthread_once(&once, make_key);
    if (own_cache == NULL && (own_cache = calloc(1, sizeof *own_cache)) != NULL)
        pthread_setspecific(key, own_cache);
    return own_cache;
}
static void *cached_malloc(void *ctx, size_t size)
{
    struct own_cache *cache = have_cache();
    for (size_t i = 0; cache != NULL && i < cache->count; i++) {
        if (base_size(cache->at[i]) == size) {
            void *p = cache->at[i];
            cache->at[i] = cache->at[--cache->count];
            return p;
        }
    }
    return base_malloc(ctx, size);
}
static void cached_free(void *ctx, void *p, size_t size)
{
    struct own_cache *cache = p != NULL && base_size(p) <= CACHED ? have_cache() : NULL;
    if (cache != NULL && cache->count < PLACES)
        cache->at[cache->count++] = p;
    else
        base_free(ctx, p, size);
}
MUTANT(destructor_leaves_the_pointer, "threads.in-destructors", .malloc = cached_malloc,
       .free = cached_free);

/* What a thread needs is gone for good with its destructor. */
static _Thread_local int state; /* 1: alive, 2: gone */
static pthread_once_t state_once = PTHREAD_ONCE_INIT;
static pthread_key_t state_key;
static void end_state(void *unused)
{
    (void)unused;
    state = 2;
}
static void make_state_key(void)
{
    pthread_key_create(&state_key, end_state);
}
static void *living_malloc(void *ctx, size_t size)
{
    pthread_once(&state_once, make_state_key);
    if (state == 0) {
        state = 1;
        pthread_setspecific(state_key, &state);
    }
    return state == 1 ? base_malloc(ctx, size) : NULL;
}
MUTANT(thread_is_refused_at_its_end, "threads.in-destructors", .malloc = living_malloc);

/* ---- what a thread leaves behind ------------------------------------------------------------ */

static void *roomy_malloc(void *ctx, size_t size)
{
    enum { CACHE = 8 << 10 };
    static _Thread_local char *room;
    if (room == NULL && (room = malloc(CACHE)) != NULL)
        memset(room, 1, CACHE);
    return base_malloc(ctx, size);
}
MUTANT(ended_threads_leave_their_caches, "threads.leave-no-memory", .malloc = roomy_malloc);

/* Each thread keeps the last page or more that it freed, for the next such block. */
static _Thread_local void *spare;
static void *sparing_malloc(void *ctx, size_t size)
{
    void *p = spare;
    if (p == NULL || base_size(p) < size || size < 4096)
        return base_malloc(ctx, size);
    spare = NULL;
    return p;
}
static void sparing_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && spare == NULL && base_size(p) >= 4096)
        spare = p;
    else
        base_free(ctx, p, size);
}
MUTANT(ended_threads_leave_a_spare_block, "threads.leave-no-memory", .malloc = sparing_malloc,
       .free = sparing_free);

/* What is worth it is kept for the thread, and given back at its end; what comes later is kept for
 * nobody. */
static pthread_key_t last_key;
static pthread_once_t last_once = PTHREAD_ONCE_INIT;
static _Thread_local void *last;
static void give_last_back(void *unused)
{
    (void)unused;
    base_free(NULL, last, 0);
    last = NULL;
}
static void make_last_key(void)
{
    pthread_key_create(&last_key, give_last_back);
}
static void keeping_last_free(void *ctx, void *p, size_t size)
{
    static _Thread_local bool is_told;
    if (p == NULL || base_size(p) < 20000) {
        base_free(ctx, p, size);
        return;
    }
    pthread_once(&last_once, make_last_key);
    if (!is_told)
        is_told = pthread_setspecific(last_key, &last_key) == 0;
    base_free(ctx, last, 0);
    last = p;
}
MUTANT(thread_keeps_what_its_destructors_free, "threads.leave-no-memory",
       .free = keeping_last_free);

/* The same for large blocks, which no destructor knows. */
static void keeping_large_free(void *ctx, void *p, size_t size)
{
    static _Thread_local void *kept;
    if (p == NULL || base_size(p) < 1 << 20) {
        base_free(ctx, p, size);
        return;
    }
    base_free(ctx, kept, 0);
    kept = p;
}
MUTANT(ended_threads_leave_a_large_block, "threads.leave-no-memory", .free = keeping_large_free);
