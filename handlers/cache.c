/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cache.c - small blocks are kept when they are freed, and given out again, as NumPy's own default
 * handler does; but by any thread, and whatever size free is told.
 *
 * Blocks of up to 1024 bytes are made in steps of 16 bytes.  Each thread keeps the last few that
 * it freed of each step (NEP49_CACHE_BLOCKS, 8 unless told), so that no lock is needed; when it
 * ends they go back to libc.  Larger blocks are libc's alone.  Before each block stands its size.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "nep49.h"
#include "nep49_advise.h"
#include "nep49_setting.h"

#define VARIABLE "NEP49_CACHE_BLOCKS"
#define USUAL "8"

enum { STEP = 16, LARGEST = 1024, BUCKETS = LARGEST / STEP + 1, MOST = 256 };

struct header {
    _Alignas(STEP) size_t size; /* what it can hold; a small one's never changes again */
};

_Static_assert(sizeof(struct header) == STEP && _Alignof(max_align_t) <= STEP,
               "a block is aligned as what malloc gave");

/* What a thread keeps: for each step the blocks that lie between `begin` and `top`, the last one
 * freed on top, where it is found without touching any other.  Bucket 0 is for large blocks, and
 * takes none. */
struct cache {
    struct {
        struct header **begin, **top, **end;
    } bucket[BUCKETS];
};

static size_t room;        /* how many blocks of a step a thread keeps */
static pthread_key_t key;  /* only so that drop_cache is called when a thread ends */
static struct cache empty; /* takes nothing: for threads that are ending, or have no memory left */

/* In the part of a thread's memory that needs no call to be found.  The loader keeps little of it
 * free for objects that are loaded late: one pointer is all that a handler should take. */
static _Thread_local struct cache *mine __attribute__((tls_model("initial-exec")));

/* Other destructors of this thread, run after this one, may still free arrays. */
static void drop_cache(void *arg)
{
    struct cache *cache = arg;

    mine = &empty;
    for (size_t b = 0; b < BUCKETS; b++) {
        while (cache->bucket[b].top != cache->bucket[b].begin)
            free(*--cache->bucket[b].top);
    }
    free(cache);
}

static struct cache *make_cache(void)
{
    int saved = errno; /* free gets here as well, and leaves it as it was */
    struct cache *cache =
        calloc(1, sizeof(*cache) + (BUCKETS - 1) * room * sizeof(struct header *));
    struct header **place = cache ? (struct header **)(cache + 1) : NULL;

    if (cache != NULL && pthread_setspecific(key, cache) == 0) {
        for (size_t b = 0; b < BUCKETS; b++) {
            cache->bucket[b].begin = cache->bucket[b].top = place;
            cache->bucket[b].end = place += b ? room : 0;
        }
        mine = cache;
    } else {
        free(cache);
        cache = &empty;
    }
    errno = saved;
    return cache;
}

static inline struct cache *my_cache(void)
{
    return __builtin_expect(mine != NULL, 1) ? mine : make_cache();
}

static inline size_t bucket_of(size_t size)
{
    return size > LARGEST ? 0 : (size + (size == 0) + STEP - 1) / STEP;
}

static void *finish(struct header *h, size_t size)
{
    if (h == NULL)
        return NULL;
    h->size = size;
    return h + 1;
}

/* A block of that bucket, kept or new. */
static inline void *take(size_t b)
{
    struct cache *cache = my_cache();

    if (cache->bucket[b].top != cache->bucket[b].begin)
        return *--cache->bucket[b].top + 1;
    return finish(malloc(sizeof(struct header) + b * STEP), b * STEP);
}

static void *cache_malloc(void *ctx, size_t size)
{
    size_t total;

    (void)ctx;
    if (size <= LARGEST)
        return take(bucket_of(size));
    if (__builtin_add_overflow(size, sizeof(struct header), &total))
        return NULL;
    return finish(nep49_advise(malloc(total), total), size);
}

static void *cache_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size, total;

    (void)ctx;
    if (__builtin_mul_overflow(nelem, elsize, &size) ||
        __builtin_add_overflow(size, sizeof(struct header), &total))
        return NULL;
    if (size > LARGEST)
        return finish(nep49_advise(calloc(1, total), total), size);
    void *block = take(bucket_of(size));
    return block ? memset(block, 0, size) : NULL;
}

/* By whichever thread: the block goes to the cache of the one that frees it. */
static void cache_free(void *ctx, void *ptr, size_t size)
{
    (void)ctx;
    (void)size; /* a guess of NumPy's: a cache that believed it would give out too little */
    if (ptr == NULL)
        return;
    struct header *h = (struct header *)ptr - 1;
    size_t b = bucket_of(h->size);
    struct cache *cache = my_cache();
    if (cache->bucket[b].top != cache->bucket[b].end)
        *cache->bucket[b].top++ = h;
    else
        free(h);
}

static void *cache_realloc(void *ctx, void *ptr, size_t new_size)
{
    size_t total, new_b = bucket_of(new_size);

    if (ptr == NULL)
        return cache_malloc(ctx, new_size);
    struct header *h = (struct header *)ptr - 1;
    size_t old = h->size, old_b = bucket_of(old);
    if (old_b == new_b && new_b != 0)
        return ptr;
    if (__builtin_add_overflow(new_size, sizeof(*h), &total))
        return NULL;
    if (old_b == new_b)
        return finish(realloc(h, total), new_size);

    void *moved = cache_malloc(ctx, new_size);
    if (moved != NULL) {
        memcpy(moved, ptr, old < new_size ? old : new_size);
        cache_free(ctx, ptr, old);
    }
    return moved;
}

static PyDataMem_Handler handler = {
    .name = "cache",
    .version = 1,
    .allocator = {NULL, cache_malloc, cache_calloc, cache_realloc, cache_free},
};

/* Decides once: threads have made their caches when it is called again. */
PyDataMem_Handler *nep49_get_handler(const char **why)
{
    static PyDataMem_Handler *made;
    const char *text = getenv(VARIABLE);
    char *end;
    unsigned long n = strtoul(text ? text : USUAL, &end, 10);

    if (made != NULL)
        return made;
    if ((text != NULL && (*text < '0' || *text > '9')) || *end != '\0' || n > MOST)
        return nep49_refuse(why, VARIABLE "='%.40s': only a number from 0 to %d is accepted", text,
                            MOST);
    if (pthread_key_create(&key, drop_cache) != 0)
        return nep49_refuse(why, "no thread-specific key is left in this process");
    room = n;
    return made = &handler;
}
