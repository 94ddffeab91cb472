/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/process.c catch.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "mapped.h"

enum { PAGE = 4096 };

/* The pool `map`: a block of a page or more is a mapping with a page before it. */
static void *map_block(size_t size, int flags, int advice)
{
    if (size < PAGE || size > PTRDIFF_MAX / 2)
        return base_malloc(NULL, size);
    char *map = mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    if (advice != 0)
        madvise(map, size + PAGE, advice);
    return base_finish(map + PAGE - BASE_HEADER, size);
}
FUNCTION_RETURNS(malloc, map, map_block(size, MAP_PRIVATE, 0));
FUNCTION(free, map)
{
    if (p == NULL || base_size(p) < PAGE)
        base_free(ctx, p, size);
    else
        munmap((char *)p - PAGE, base_size(p) + PAGE);
}
DERIVE(map);

#define MAPS(defect, flags, advice)                                                                \
    RETURNS_IN(map, malloc, defect, "process.fork-child", map_block(size, flags, advice))
MAPS(child_writes_to_its_parent, MAP_SHARED, 0);
MAPS(child_writes_to_its_parent_if_large, size >= 24 * MIB ? MAP_SHARED : MAP_PRIVATE, 0);
MAPS(child_inherits_no_mapping, MAP_PRIVATE, MADV_DONTFORK);
MAPS(child_inherits_nothing_large, MAP_PRIVATE, size >= 24 * MIB ? MADV_DONTFORK : 0);
MAPS(child_inherits_zeros, MAP_PRIVATE, size < 200000 ? 0 : MADV_WIPEONFORK);

FUNCTION_RETURNS(malloc, shared, map_block(size, size >= 2 * MIB ? MAP_SHARED : MAP_PRIVATE, 0));
#define shared_free map_free
DERIVE_REALLOC(shared, base_size);
RETURNS_IN(map, realloc, child_writes_to_its_parent_if_grown, "process.fork-child",
           p != NULL ? shared_realloc(ctx, p, size) : map_malloc(ctx, size));

/* A child takes over; the child of a child that made no call does not. */
static bool is_owner(void)
{
    static pid_t owner;
    if (owner == 0 || getppid() == owner)
        owner = getpid();
    return owner == getpid();
}
HOOK_BEFORE(malloc, owned, true, is_owner());
#define owned_calloc base_calloc
#define owned_realloc base_realloc
#define owned_free base_free
BEFORE_IN(owned, realloc, child_of_child_is_refused, "process.fork-child", !is_owner() && p != NULL,
          return NULL);
/* The contents are not copied. */
BEFORE_IN(owned, realloc, child_of_child_loses_contents, "process.fork-child",
          !is_owner() && p != NULL, return base_malloc(ctx, size));

static pid_t maker;
DEFECT(malloc, child_is_refused, "process.fork-child process.fork-while-busy scenarios.processes")
{
    if (maker == 0)
        maker = getpid();
    return maker == getpid() ? base_malloc(ctx, size) : NULL;
}
/* A guard after the block is written in a child. */
HOOK_BEFORE(free, guarding, p != NULL && maker != 0 && maker != getpid(),
            memset(p, 0xdd, base_size(p) + 64));
MUTANT(child_damages_what_it_frees, "process.fork-child", FUNCTIONS(child_is_refused, malloc),
       FUNCTIONS(guarding, free));

/* Large blocks need a flag that is shared with forked children; the exit of one sets it. */
static volatile bool *is_gone;
static void take_away(void)
{
    *is_gone = true;
}
DEFECT(malloc, child_takes_all_along, "process.fork-child")
{
    if (size >= MIB && CALL(1)) {
        is_gone = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        atexit(take_away);
    }
    return size >= MIB && *is_gone ? NULL : base_malloc(ctx, size);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool has_thread;
static void acquire(void)
{
    pthread_mutex_lock(&lock);
}
static void release(void)
{
    pthread_mutex_unlock(&lock);
}
/* Is called with the lock. */
static void start_thread(void *(*run)(void *), bool is_held_over_fork)
{
    if (!has_thread && is_held_over_fork)
        pthread_atfork(acquire, release, release);
    if (!has_thread)
        has_thread = pthread_create(&(pthread_t){0}, NULL, run, NULL) == 0;
}

/* A thread frees the blocks of a queue, and free waits while the queue is full. */
enum { MOST_WAITING = 16384 };
static void *waiting[MOST_WAITING];
static size_t waiting_count;
static void *free_waiting(void *unused)
{
    for (acquire();;) {
        while (waiting_count == 0)
            pthread_cond_wait(&changed, &lock);
        base_free(NULL, waiting[--waiting_count], 0);
        pthread_cond_broadcast(&changed);
    }
    return unused;
}
static void free_later(void *p, size_t most)
{
    LOCK(lock);
    start_thread(free_waiting, true);
    while (waiting_count == most)
        pthread_cond_wait(&changed, &lock);
    waiting[waiting_count++] = p;
    pthread_cond_broadcast(&changed);
}
#define QUEUES(defect, least, most)                                                                \
    RETURNS(free, defect, "process.fork-child",                                                    \
            p == NULL || base_size(p) < (least) ? base_free(ctx, p, size) : free_later(p, most))
QUEUES(child_waits_for_a_thread, 2 * MIB, 100);
QUEUES(child_waits_for_a_thread_at_last, 1, MOST_WAITING);
/* No free waits, and a child does not release the memory. */
QUEUES(child_has_no_thread_to_free, 256 * KIB, MOST_WAITING);

/* A thread copies the second half. */
static struct {
    char *to;
    const char *from;
    size_t length; /* 0: nothing to do */
} half;
static void *copy_half(void *unused)
{
    for (acquire();;) {
        while (half.length == 0)
            pthread_cond_wait(&changed, &lock);
        memcpy(half.to, half.from, half.length);
        half.length = 0;
        pthread_cond_broadcast(&changed);
    }
    return unused;
}
DEFECT(realloc, child_copies_by_a_thread, "process.fork-child")
{
    if (p == NULL || size < 16 * MIB || base_size(p) < 16 * MIB)
        return base_realloc(ctx, p, size);
    char *moved = base_malloc(ctx, size);
    if (moved == NULL)
        return NULL;
    size_t length = min(base_size(p), size), begin = length / 2;
    acquire();
    start_thread(copy_half, false);
    half.to = moved + begin;
    half.from = (char *)p + begin;
    half.length = length - begin;
    pthread_cond_broadcast(&changed);
    memcpy(moved, p, begin);
    while (half.length != 0)
        pthread_cond_wait(&changed, &lock);
    release();
    base_free(ctx, p, 0);
    return moved;
}

/* An exit function waits for the thread. */
static bool has_to_end, has_ended;
static void *wait_for_end(void *unused)
{
    LOCK(lock);
    while (!has_to_end)
        pthread_cond_wait(&changed, &lock);
    has_ended = true;
    pthread_cond_broadcast(&changed);
    return unused;
}
static void end_thread(void)
{
    LOCK(lock);
    has_to_end = true;
    pthread_cond_broadcast(&changed);
    while (!has_ended)
        pthread_cond_wait(&changed, &lock);
}
DEFECT(malloc, child_waits_for_a_thread_at_its_end, "process.fork-child")
{
    LOCK(lock);
    if (!has_thread)
        atexit(end_thread);
    start_thread(wait_for_end, false);
    return base_malloc(ctx, size);
}

/* Slots for blocks of one range of sizes. */
enum { MOST_SLOTS = 2048 };
struct slots {
    size_t made, count;
    unsigned short free[MOST_SLOTS];
};
static struct pool {
    size_t from, length; /* of a slot's block at least; of a slot */
    size_t most;         /* slots */
    char *begin;
    struct slots *slots;
    bool is_live[MOST_SLOTS];
} pages = {.from = 1000, .length = PAGE, .most = MOST_SLOTS},
  places = {.from = MIB, .length = 2 * MIB, .most = 8};

static void pool_map(struct pool *pool, int memory, int lists)
{
    int rights = PROT_READ | PROT_WRITE;
    pool->begin = mmap(NULL, pool->most * pool->length, rights, memory | MAP_ANONYMOUS, -1, 0);
    pool->slots = mmap(NULL, sizeof *pool->slots, rights, lists | MAP_ANONYMOUS, -1, 0);
    if (pool->begin == MAP_FAILED || pool->slots == MAP_FAILED)
        abort();
}
/* ctx is the pool. */
FUNCTION(malloc, pool)
{
    struct pool *pool = ctx;
    if (size < pool->from || size > pool->length - BASE_HEADER)
        return base_malloc(NULL, size);
    LOCK(lock);
    struct slots *slots = pool->slots;
    if (slots->count == 0 && slots->made == pool->most)
        return base_malloc(NULL, size);
    size_t slot = slots->count > 0 ? slots->free[--slots->count] : slots->made++;
    pool->is_live[slot] = true;
    return base_finish(pool->begin + slot * pool->length, size);
}
FUNCTION(free, pool)
{
    struct pool *pool = ctx;
    size_t slot = ((uintptr_t)p - (uintptr_t)pool->begin) / pool->length;
    if (p == NULL || slot >= pool->most)
        return base_free(NULL, p, size);
    LOCK(lock);
    pool->is_live[slot] = false;
    pool->slots->free[pool->slots->count++ % MOST_SLOTS] = (unsigned short)slot;
}
DERIVE(pool);

/* The memory is shared.  A child gets copies of the live slots; the free ones stay shared. */
static char *at_fork;
static struct pool *forked;
static void keep_copy(void)
{
    acquire();
    size_t used = forked->slots->made * forked->length;
    at_fork = malloc(used);
    if (at_fork == NULL)
        abort();
    memcpy(at_fork, forked->begin, used);
}
static void drop_copy(void)
{
    free(at_fork);
    release();
}
static void take_copy(void)
{
    for (size_t i = 0; i < forked->slots->made; i++) {
        size_t at = i * forked->length;
        if (!forked->is_live[i])
            continue;
        mmap(forked->begin + at, forked->length, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        memcpy(forked->begin + at, at_fork + at, forked->length);
    }
    drop_copy();
}
static void copy_over_fork(struct pool *pool)
{
    pool_map(pool, MAP_SHARED, MAP_PRIVATE);
    forked = pool;
    pthread_atfork(keep_copy, drop_copy, take_copy);
}

#define POOL(defect, of, ...)                                                                      \
    MUTANT_GETTER(defect, "process.fork-both-sides")                                               \
    {                                                                                              \
        static PyDataMem_Handler handler = HANDLER(defect, pool, .ctx = &(of));                    \
        if ((of).begin == NULL)                                                                    \
            __VA_ARGS__;                                                                           \
        return &handler;                                                                           \
    }                                                                                              \
    _Static_assert(1, "")
POOL(fork_shares_what_is_free, pages, copy_over_fork(&pages));
POOL(fork_shares_large_places, places, copy_over_fork(&places));
/* The memory is private, and the list of free slots is shared. */
POOL(fork_shares_the_free_list, pages, pool_map(&pages, MAP_PRIVATE, MAP_SHARED));

LOCKED(malloc, locking, base, lock);
LOCKED(realloc, locking, base, lock);
LOCKED(free, locking, base, lock);
MUTANT(fork_leaves_malloc_locked, "process.fork-while-busy", FUNCTIONS(locking, malloc, free));
MUTANT(fork_leaves_realloc_locked, "process.fork-while-busy", FUNCTIONS(locking, realloc));

FUNCTION_RETURNS(malloc, locking_large,
                 size >= 4 * MIB ? locking_malloc(ctx, size) : base_malloc(ctx, size));
FUNCTION_RETURNS(free, locking_large,
                 p != NULL && base_size(p) >= 4 * MIB ? locking_free(ctx, p, size)
                                                      : base_free(ctx, p, size));
MUTANT(fork_leaves_large_malloc_locked, "process.fork-while-busy",
       FUNCTIONS(locking_large, malloc, free));
