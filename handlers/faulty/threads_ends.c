/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/threads_ends.c catch.
 */
#include <alloca.h>

#include "mutant.h"

enum { BUFFER = 96 << 10 };
__attribute__((noinline)) static void copy_by_a_buffer(char *to, const char *from, size_t size)
{
    char buffer[BUFFER];
    for (size_t at = 0; at < size; at += BUFFER) {
        memcpy(buffer, from + at, min(size - at, BUFFER));
        __asm__ volatile("" ::"r"(buffer) : "memory");
        memcpy(to + at, buffer, min(size - at, BUFFER));
    }
}
DEFECT(realloc, copies_by_the_stack, "threads.small-stack")
{
    void *moved = base_malloc(ctx, size);
    if (moved == NULL || p == NULL)
        return moved;
    copy_by_a_buffer(moved, p, min(base_size(p), size));
    base_free(ctx, p, 0);
    return moved;
}

DEFECT(calloc, has_its_zeros_on_the_stack, "threads.small-stack")
{
    size_t size = product(nelem, elsize);
    if (size > 256 * KIB)
        return base_calloc(ctx, nelem, elsize);
    char *zeros = alloca(size + 1);
    memset(zeros, 0, size + 1);
    __asm__ volatile("" ::"r"(zeros) : "memory");
    void *p = base_malloc(ctx, size);
    return p != NULL ? memcpy(p, zeros, size) : NULL;
}

/* The destructor frees the cache of the thread, and the pointer to it stays. */
enum { CACHED = 500, PLACES = 24 };
static _Thread_local struct cache {
    size_t count;
    void *at[PLACES];
} * cache;
static pthread_key_t cache_key;
static void free_cache(UNUSED void *data)
{
    for (size_t i = 0; i < cache->count; i++)
        base_free(NULL, cache->at[i], 0);
    free(cache);
}
static bool has_cache(void)
{
    if (cache == NULL && (cache = calloc(1, sizeof *cache)) != NULL)
        pthread_setspecific(cache_key, cache);
    return cache != NULL;
}
FUNCTION(malloc, cached)
{
    for (size_t i = 0; has_cache() && i < cache->count; i++) {
        void *p = cache->at[i];
        if (base_size(p) == size) {
            cache->at[i] = cache->at[--cache->count];
            return p;
        }
    }
    return base_malloc(ctx, size);
}
FUNCTION(free, cached)
{
    if (p != NULL && base_size(p) <= CACHED && has_cache() && cache->count < PLACES)
        cache->at[cache->count++] = p;
    else
        base_free(ctx, p, size);
}
MUTANT(destructor_leaves_the_pointer, "threads.in-destructors", FUNCTIONS(cached, malloc, free));

/* The destructor marks the thread as ended. */
static _Thread_local enum { NEW, ALIVE, ENDED } state;
static pthread_key_t state_key;
static void end_state(UNUSED void *data)
{
    state = ENDED;
}
BEFORE(malloc, thread_is_refused_at_its_end, "threads.in-destructors", true,
       if (state == ENDED) return NULL;
       state = ALIVE; pthread_setspecific(state_key, &state));

BEFORE(malloc, ended_threads_leave_their_caches, "threads.leave-no-memory", true,
       static _Thread_local char *own;
       if (own == NULL && (own = malloc(64 * KIB)) != NULL) memset(own, 1, 64 * KIB));

/* free keeps p and frees the block that the thread kept before. */
static _Thread_local void *last;
static void keep_last(void *p)
{
    base_free(NULL, last, 0);
    last = p;
}

/* The destructor frees the kept block; what later destructors free is kept for good. */
static pthread_key_t last_key;
static void free_last(UNUSED void *data)
{
    keep_last(NULL);
}
BEFORE(free, thread_keeps_what_its_destructors_free, "threads.leave-no-memory",
       p != NULL && base_size(p) >= 20000, static _Thread_local bool is_set;
       is_set = is_set || pthread_setspecific(last_key, &last_key) == 0; return keep_last(p));
BEFORE(free, ended_threads_leave_a_large_block, "threads.leave-no-memory",
       p != NULL && base_size(p) >= MIB, return keep_last(p));

__attribute__((constructor)) static void make_keys(void)
{
    pthread_key_create(&cache_key, free_cache);
    pthread_key_create(&state_key, end_state);
    pthread_key_create(&last_key, free_last);
}
