/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A cache of 64 blocks of each class for each thread, in front of a common depot.  A cache grows
 * each time that it is full; it returns blocks that were not needed for some time, and all of them
 * when its thread ends.
 */
#include "deep.h"

enum {
    CLASSES = 32,
    STEP = 16,
    CACHED = 64, /* blocks of a class at the most */
    AT_FIRST = 16,
    REFILL = 8,
    RUN = 1 << 16, /* memory of one class */
    RUNS = 1024,
    LOOK_EVERY = 4096, /* calls of a thread */
};

struct class_cache {
    uint32_t count, low; /* the latter since it was looked at last */
    void *block[CACHED];
};

struct thread_cache {
    struct class_cache class[CLASSES];
    uint32_t most[CLASSES];
    uint32_t calls;
    struct cache *owner;
    struct thread_cache *next; /* of those that no thread has */
};

struct cache {
    struct deep deep;
    pthread_mutex_t own; /* of the instance that does not use the common one */
    struct thread_cache *spare;
    struct link *depot[CLASSES];
    uint32_t runs;
    char *run[CLASSES], *run_end[CLASSES];
    uint8_t class_of_run[RUNS];
};

DEEP_SOUND(cache);
/* The place after the last one is the count of the next class. */
DEEP(cache_takes_a_65th, cache, DEEP_OVERLAP);
/* Of 33 cached blocks 17 are returned and 17 stay. */
DEEP(cache_halves_the_odd_one_twice, cache, DEEP_OVERLAP);
/* The low mark is from before the cache was halved: those blocks are returned and stay. */
DEEP(cache_looks_at_a_stale_mark, cache, DEEP_OVERLAP);
/* A thread that ends returns its blocks; a full class stays in its cache as well. */
DEEP(cache_hands_a_full_one_over_twice, cache, DEEP_OVERLAP);
/* The lock of the depot is held by another thread at a fork. */
DEEP(cache_forks_with_the_depot, cache, "race hang");

static pthread_mutex_t *lock_of(struct cache *c)
{
    return slips(c, cache_forks_with_the_depot) ? &c->own : &deep_mutex;
}

/* Is called with the lock. */
static void put(struct cache *c, unsigned class, void *p)
{
    struct link *link = p;
    link->next = c->depot[class];
    c->depot[class] = link;
}
static void *take_new(struct cache *c, unsigned class)
{
    size_t size = (size_t)(class + 1) * STEP;
    if ((size_t)(c->run_end[class] - c->run[class]) < size) {
        if (c->runs == RUNS)
            return NULL;
        c->class_of_run[c->runs] = (uint8_t) class;
        c->run[class] = deep_begin(&c->deep) + (size_t)c->runs++ * RUN;
        c->run_end[class] = c->run[class] + RUN;
    }
    c->run[class] += size;
    return c->run[class] - size;
}

/* Returns the first `count` blocks of a class, which are there longest. */
static void put_first(struct cache *c, struct thread_cache *t, unsigned class, uint32_t count)
{
    struct class_cache *cached = &t->class[class];
    for (uint32_t i = 0; i < count; i++)
        put(c, class, cached->block[i]);
}
static void keep_last(struct class_cache *cached, uint32_t count)
{
    memmove(cached->block, cached->block + cached->count - count, count * sizeof(void *));
    cached->count = count;
}

static void hand_over(void *data)
{
    struct thread_cache *t = data;
    struct cache *c = t->owner;
    LOCK(*lock_of(c));
    for (unsigned class = 0; class < CLASSES; class ++) {
        struct class_cache *cached = &t->class[class];
        bool full = cached->count == CACHED;
        put_first(c, t, class, cached->count);
        if (!full || !slips(c, cache_hands_a_full_one_over_twice))
            cached->count = cached->low = 0;
    }
    t->next = c->spare;
    c->spare = t;
}
static pthread_key_t key;
__attribute__((constructor)) static void make_key(void)
{
    pthread_key_create(&key, hand_over);
}
static struct thread_cache *new_cache(struct cache *c)
{
    pthread_mutex_lock(lock_of(c));
    struct thread_cache *t = c->spare;
    if (t != NULL)
        c->spare = t->next;
    pthread_mutex_unlock(lock_of(c));
    if (t == NULL && (t = calloc(1, sizeof *t)) != NULL) {
        for (unsigned class = 0; class < CLASSES; class ++)
            t->most[class] = AT_FIRST;
        t->owner = c;
    }
    if (t != NULL && pthread_setspecific(key, t) != 0) {
        hand_over(t);
        t = NULL;
    }
    return t;
}

/* The cache of this thread; NULL: there is no memory for one, or another instance has it. */
static struct thread_cache *own_cache(struct cache *c)
{
    struct thread_cache *t = pthread_getspecific(key);
    return t == NULL ? new_cache(c) : t->owner == c ? t : NULL;
}

/* Returns the blocks that were not needed since the last look. */
static void look(struct cache *c, struct thread_cache *t)
{
    LOCK(*lock_of(c));
    for (unsigned class = 0; class < CLASSES; class ++) {
        struct class_cache *cached = &t->class[class];
        uint32_t idle = cached->low;
        put_first(c, t, class, idle);
        keep_last(cached, idle < cached->count ? cached->count - idle : 0);
        cached->low = cached->count;
    }
}

/* Returns one half of a full class. */
static void halve(struct cache *c, struct thread_cache *t, unsigned class)
{
    struct class_cache *cached = &t->class[class];
    uint32_t half = cached->count / 2, rest = cached->count - half;
    if (slips(c, cache_halves_the_odd_one_twice) && t->most[class] > 32)
        half = rest;
    LOCK(*lock_of(c));
    put_first(c, t, class, half);
    keep_last(cached, rest);
    if (cached->low > cached->count && !slips(c, cache_looks_at_a_stale_mark))
        cached->low = cached->count;
    if (t->most[class] < CACHED)
        t->most[class]++;
}

static void refill(struct cache *c, struct class_cache *cached, unsigned class)
{
    LOCK(*lock_of(c));
    for (unsigned i = 0; i < REFILL; i++) {
        struct link *link = c->depot[class];
        void *p = link != NULL ? link : take_new(c, class);
        if (link != NULL)
            c->depot[class] = link->next;
        if (p != NULL)
            cached->block[cached->count++] = p;
    }
}
static unsigned class_at(struct cache *c, const void *p)
{
    return c->class_of_run[((const char *)p - deep_begin(&c->deep)) / RUN];
}
static void *cache_take(struct deep *d, size_t size, bool *zero)
{
    struct cache *c = (struct cache *)d;
    struct thread_cache *t = own_cache(c);
    unsigned class = size == 0 ? 0 : (unsigned)((size - 1) / STEP);
    (void)zero;
    if (t == NULL)
        return NULL;
    if (++t->calls % LOOK_EVERY == 0)
        look(c, t);
    struct class_cache *cached = &t->class[class];
    if (cached->count == 0)
        refill(c, cached, class);
    if (cached->count == 0)
        return NULL;
    void *p = cached->block[--cached->count];
    if (cached->low > cached->count)
        cached->low = cached->count;
    return p;
}
static void cache_give(struct deep *d, void *p)
{
    struct cache *c = (struct cache *)d;
    struct thread_cache *t = own_cache(c);
    unsigned class = class_at(c, p);
    if (t == NULL) {
        LOCK(*lock_of(c));
        put(c, class, p);
        return;
    }
    struct class_cache *cached = &t->class[class];
    bool full = cached->count >= t->most[class];
    if (slips(d, cache_takes_a_65th) && t->most[class] == CACHED)
        full = cached->count > CACHED;
    if (full)
        halve(c, t, class);
    cached->block[cached->count++] = p;
}
DEEP_ROOM(cache, (size_t)(class_at(own, p) + 1) * STEP);
DEEP_BASE(cache, .most = CLASSES * STEP, .reserve = (size_t)RUNS * RUN, .locks_itself = true);
