/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/process.c catch.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base.h"

/* ---- forked children --------------------------------------------------------------------- */

/* A mapping for each block of a page or more, with its length and size in a page before it. */
enum { PAGE = 4096 };
static void *map_malloc(void *ctx, size_t size, int flags, int advice)
{
    if (size < PAGE || size > PTRDIFF_MAX / 2)
        return base_malloc(ctx, size);
    char *map = mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    if (advice != 0)
        madvise(map, size + PAGE, advice);
    return base_finish(map + PAGE - BASE_HEADER, size);
}
static void map_free(void *ctx, void *p, size_t size)
{
    if (p == NULL || base_size(p) < PAGE)
        base_free(ctx, p, size);
    else
        munmap((char *)p - PAGE, base_size(p) + PAGE);
}
static void *map_realloc(void *ctx, void *p, size_t size)
{
    void *moved = base_malloc(ctx, size < PAGE ? size : PAGE - 1);
    if (size >= PAGE) {
        base_free(ctx, moved, 0);
        moved = map_malloc(ctx, size, MAP_PRIVATE, 0);
    }
    if (moved == NULL || p == NULL)
        return moved;
    memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    map_free(ctx, p, 0);
    return moved;
}
static void *map_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    return size < PAGE ? base_calloc(ctx, 1, size) : map_malloc(ctx, size, MAP_PRIVATE, 0);
}

static void *shared_malloc(void *ctx, size_t size)
{
    return map_malloc(ctx, size, MAP_SHARED, 0);
}
MUTANT(child_writes_to_its_parent, "process.fork-child", .malloc = shared_malloc,
       .calloc = map_calloc, .realloc = map_realloc, .free = map_free);

static void *left_malloc(void *ctx, size_t size)
{
    return map_malloc(ctx, size, MAP_PRIVATE, MADV_DONTFORK);
}
MUTANT(child_inherits_no_mapping, "process.fork-child", .malloc = left_malloc, .calloc = map_calloc,
       .realloc = map_realloc, .free = map_free);

static void *wiped_malloc(void *ctx, size_t size)
{
    return map_malloc(ctx, size, MAP_PRIVATE, size < 200000 ? 0 : MADV_WIPEONFORK);
}
MUTANT(child_inherits_zeros, "process.fork-child", .malloc = wiped_malloc, .calloc = map_calloc,
       .realloc = map_realloc, .free = map_free);

/* So that it can be moved by mremap. */
static void *private_malloc(void *ctx, size_t size)
{
    return map_malloc(ctx, size, MAP_PRIVATE, 0);
}
static void *shared_when_grown_realloc(void *ctx, void *p, size_t size)
{
    void *moved = size >= 2 << 20 && p != NULL ? map_malloc(ctx, size, MAP_SHARED, 0) : NULL;
    if (moved == NULL)
        return map_realloc(ctx, p, size);
    memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    map_free(ctx, p, 0);
    return moved;
}
MUTANT(child_writes_to_its_parent_if_grown, "process.fork-child", .malloc = private_malloc,
       .calloc = map_calloc, .realloc = shared_when_grown_realloc, .free = map_free);

/* Only large ones: what others want to look at, or a device to write to. */
enum { MUCH = 24 << 20 };
static void *large_shared_malloc(void *ctx, size_t size)
{
    return map_malloc(ctx, size, size >= MUCH ? MAP_SHARED : MAP_PRIVATE, 0);
}
MUTANT(child_writes_to_its_parent_if_large, "process.fork-child", .malloc = large_shared_malloc,
       .calloc = map_calloc, .realloc = map_realloc, .free = map_free);

static void *large_left_malloc(void *ctx, size_t size)
{
    return map_malloc(ctx, size, MAP_PRIVATE, size >= MUCH ? MADV_DONTFORK : 0);
}
MUTANT(child_inherits_nothing_large, "process.fork-child", .malloc = large_left_malloc,
       .calloc = map_calloc, .realloc = map_realloc, .free = map_free);

/* A child knows its parent, and takes over; a child of a child that made no call does not. */
static pid_t owner;
static bool is_owner(void)
{
    if (owner == 0 || getppid() == owner)
        owner = getpid();
    return owner == getpid();
}
static void *owned_malloc(void *ctx, size_t size)
{
    is_owner();
    return base_malloc(ctx, size);
}
static void *owned_realloc(void *ctx, void *p, size_t size)
{
    return is_owner() || p == NULL ? base_realloc(ctx, p, size) : NULL;
}
static void *adopting_realloc(void *ctx, void *p, size_t size)
{
    if (is_owner() || p == NULL)
        return base_realloc(ctx, p, size);
    return base_malloc(ctx, size); /* what is not its own it does not copy */
}
MUTANT(child_of_child_is_refused, "process.fork-child", .malloc = owned_malloc,
       .realloc = owned_realloc);
MUTANT(child_of_child_loses_contents, "process.fork-child", .malloc = owned_malloc,
       .realloc = adopting_realloc);

/* A thread unmaps what is large, and free waits while it is behind: in a child it is so for ever.
 */
enum { FEW_WAITING = 100, MANY_WAITING = 16384 };
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void *at[MANY_WAITING];
    size_t count;
    bool has_thread;
} reaper = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
static void lock_reaper(void)
{
    pthread_mutex_lock(&reaper.lock);
}
static void unlock_reaper(void)
{
    pthread_mutex_unlock(&reaper.lock);
}
static void *reap(void *unused)
{
    for (lock_reaper();;) {
        while (reaper.count == 0)
            pthread_cond_wait(&reaper.changed, &reaper.lock);
        base_free(NULL, reaper.at[--reaper.count], 0);
        pthread_cond_broadcast(&reaper.changed);
    }
    return unused;
}
static void leave_to_reaper(void *p, size_t most)
{
    lock_reaper();
    pthread_t thread;
    if (!reaper.has_thread && pthread_create(&thread, NULL, reap, NULL) == 0) {
        pthread_atfork(lock_reaper, unlock_reaper, unlock_reaper);
        pthread_detach(thread);
        reaper.has_thread = true;
    }
    while (reaper.count == most)
        pthread_cond_wait(&reaper.changed, &reaper.lock);
    reaper.at[reaper.count++] = p;
    pthread_cond_broadcast(&reaper.changed);
    unlock_reaper();
}
/* A thread copies half of what is moved, where that is much. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char *to;
    const char *from;
    size_t length; /* 0 where there is nothing to do */
    bool has_thread;
} helper = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
static void *help(void *unused)
{
    for (pthread_mutex_lock(&helper.lock);;) {
        while (helper.length == 0)
            pthread_cond_wait(&helper.changed, &helper.lock);
        memcpy(helper.to, helper.from, helper.length);
        helper.length = 0;
        pthread_cond_broadcast(&helper.changed);
    }
    return unused;
}
static void *helped_realloc(void *ctx, void *p, size_t size)
{
    enum { MUCH_TO_COPY = 16 << 20 };
    pthread_t thread;
    if (p == NULL || size < MUCH_TO_COPY || base_size(p) < MUCH_TO_COPY)
        return base_realloc(ctx, p, size);
    char *moved = base_malloc(ctx, size);
    if (moved == NULL)
        return NULL;
    size_t length = base_size(p) < size ? base_size(p) : size, half = length / 2;
    pthread_mutex_lock(&helper.lock);
    if (!helper.has_thread)
        helper.has_thread = pthread_create(&thread, NULL, help, NULL) == 0;
    helper.to = moved + half;
    helper.from = (char *)p + half;
    helper.length = length - half;
    pthread_cond_broadcast(&helper.changed);
    memcpy(moved, p, half);
    while (helper.length != 0)
        pthread_cond_wait(&helper.changed, &helper.lock);
    pthread_mutex_unlock(&helper.lock);
    base_free(ctx, p, 0);
    return moved;
}
MUTANT(child_copies_by_a_thread, "process.fork-child", .realloc = helped_realloc);

static void reaped_free(void *ctx, void *p, size_t size)
{
    if (p == NULL || base_size(p) < 2 << 20)
        base_free(ctx, p, size);
    else
        leave_to_reaper(p, FEW_WAITING);
}
MUTANT(child_waits_for_a_thread, "process.fork-child", .free = reaped_free);

/* All wait for it in a long queue. */
static void queued_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    if (p != NULL)
        leave_to_reaper(p, MANY_WAITING);
}
MUTANT(child_waits_for_a_thread_at_last, "process.fork-child", .free = queued_free);

/* At the end it waits for a thread of its own, which a forked child does not have. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool begun, ends, ended;
} keeper = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
static void *keep_on(void *unused)
{
    pthread_mutex_lock(&keeper.lock);
    while (!keeper.ends)
        pthread_cond_wait(&keeper.changed, &keeper.lock);
    keeper.ended = true;
    pthread_cond_broadcast(&keeper.changed);
    pthread_mutex_unlock(&keeper.lock);
    return unused;
}
static void end_keeper(void)
{
    pthread_mutex_lock(&keeper.lock);
    keeper.ends = true;
    pthread_cond_broadcast(&keeper.changed);
    while (!keeper.ended)
        pthread_cond_wait(&keeper.changed, &keeper.lock);
    pthread_mutex_unlock(&keeper.lock);
}
static void *kept_malloc(void *ctx, size_t size)
{
    pthread_t thread;
    pthread_mutex_lock(&keeper.lock);
    if (!keeper.begun && pthread_create(&thread, NULL, keep_on, NULL) == 0) {
        keeper.begun = true;
        pthread_detach(thread);
        atexit(end_keeper);
    }
    pthread_mutex_unlock(&keeper.lock);
    return base_malloc(ctx, size);
}
MUTANT(child_waits_for_a_thread_at_its_end, "process.fork-child", .malloc = kept_malloc);

/* It knows the process that it was made for. */
static pid_t maker;
static void *maker_malloc(void *ctx, size_t size)
{
    if (maker == 0)
        maker = getpid();
    return maker == getpid() ? base_malloc(ctx, size) : NULL;
}
MUTANT(child_is_refused, "process.fork-child process.fork-while-busy", .malloc = maker_malloc);

static void maker_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && maker != 0 && maker != getpid())
        memset(p, 0xdd, base_size(p) + 64); /* a guard that the child has no key to */
    base_free(ctx, p, size);
}
MUTANT(child_damages_what_it_frees, "process.fork-child", .malloc = maker_malloc,
       .free = maker_free);

/* ---- both sides of a fork ------------------------------------------------------------------ */

/* A slot of a page for each block of 1000 bytes to a page, in a pool that is mapped when it is
 * first asked for. */
enum { PAGES = 2048, SLOT_FROM = 1000, SLOT_MOST = PAGE - BASE_HEADER };
struct free_slots {
    size_t made, count;
    unsigned short at[PAGES];
};
struct page_pool {
    pthread_mutex_t lock;
    char *pages;
    struct free_slots *free;
    bool live[PAGES];
};

static void pool_map(struct page_pool *pool, int pages, int lists)
{
    int how = PROT_READ | PROT_WRITE;
    pool->pages = mmap(NULL, PAGES * PAGE, how, pages | MAP_ANONYMOUS, -1, 0);
    pool->free = mmap(NULL, sizeof *pool->free, how, lists | MAP_ANONYMOUS, -1, 0);
    if (pool->pages == MAP_FAILED || pool->free == MAP_FAILED)
        abort();
}
static bool pool_has(const struct page_pool *pool, const void *p)
{
    return pool->pages != NULL && (const char *)p >= pool->pages &&
           (const char *)p < pool->pages + PAGES * PAGE;
}
static void *pool_take(struct page_pool *pool, size_t size)
{
    size_t slot = PAGES;
    pthread_mutex_lock(&pool->lock);
    if (pool->free->count > 0)
        slot = pool->free->at[--pool->free->count];
    else if (pool->free->made < PAGES)
        slot = pool->free->made++;
    if (slot < PAGES)
        pool->live[slot] = true;
    pthread_mutex_unlock(&pool->lock);
    return slot < PAGES ? base_finish(pool->pages + slot * PAGE, size) : NULL;
}
static void pool_give(struct page_pool *pool, const void *p)
{
    size_t slot = (size_t)((const char *)p - pool->pages) / PAGE;
    pthread_mutex_lock(&pool->lock);
    pool->live[slot] = false;
    pool->free->at[pool->free->count++ % PAGES] = (unsigned short)slot;
    pthread_mutex_unlock(&pool->lock);
}

/* Whose functions have ctx for their pool. */
static void *paged_malloc(void *ctx, size_t size)
{
    void *p = size >= SLOT_FROM && size <= SLOT_MOST ? pool_take(ctx, size) : NULL;
    return p != NULL ? p : base_malloc(NULL, size);
}
static void *paged_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    void *p = paged_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void paged_free(void *ctx, void *p, size_t size)
{
    if (pool_has(ctx, p))
        pool_give(ctx, p);
    else
        base_free(NULL, p, size);
}
static void *paged_realloc(void *ctx, void *p, size_t size)
{
    void *moved = paged_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    paged_free(ctx, p, 0);
    return moved;
}
#define PAGED(defect, kills, pool, begin)                                                          \
    MUTANT_GETTER(defect, kills)                                                                   \
    {                                                                                              \
        static PyDataMem_Handler handler = {                                                       \
            .name = #defect,                                                                       \
            .version = 1,                                                                          \
            .allocator = {&(pool), paged_malloc, paged_calloc, paged_realloc, paged_free}};        \
        (void)why;                                                                                 \
        if ((pool).pages == NULL)                                                                  \
            begin();                                                                               \
        return &handler;                                                                           \
    }                                                                                              \
    _Static_assert(1, "")

/* Pages are shared, for another process to look at.  What is live at a fork the child gets a copy
 * of; what is free both go on to hand out. */
static struct page_pool shown = {.lock = PTHREAD_MUTEX_INITIALIZER};
static char *at_fork;
static void keep_copy(void)
{
    pthread_mutex_lock(&shown.lock);
    at_fork = malloc(PAGES * PAGE);
    if (at_fork == NULL)
        abort();
    memcpy(at_fork, shown.pages, shown.free->made * PAGE);
}
static void drop_copy(void)
{
    free(at_fork);
    pthread_mutex_unlock(&shown.lock);
}
static void take_copy(void)
{
    for (size_t i = 0; i < shown.free->made; i++) {
        if (!shown.live[i])
            continue;
        mmap(shown.pages + i * PAGE, PAGE, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        memcpy(shown.pages + i * PAGE, at_fork + i * PAGE, PAGE);
    }
    drop_copy();
}
static void begin_shown(void)
{
    pool_map(&shown, MAP_SHARED, MAP_PRIVATE);
    pthread_atfork(keep_copy, drop_copy, take_copy);
}
PAGED(fork_shares_what_is_free, "process.fork-both-sides", shown, begin_shown);

/* The same of eight places for large blocks. */
enum { PLACES = 8, PLACE = 2 << 20, PLACE_FROM = 1 << 20, PLACE_MOST = PLACE - BASE_HEADER };
static struct {
    pthread_mutex_t lock;
    char *begin;
    bool live[PLACES];
} places = {.lock = PTHREAD_MUTEX_INITIALIZER};
static void lock_places(void)
{
    pthread_mutex_lock(&places.lock);
}
static void unlock_places(void)
{
    pthread_mutex_unlock(&places.lock);
}
static void copy_places(void)
{
    char *own = malloc(PLACE);
    for (size_t i = 0; own != NULL && i < PLACES; i++) {
        char *place = places.begin + i * PLACE;
        if (!places.live[i])
            continue;
        memcpy(own, place, PLACE);
        mmap(place, PLACE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        memcpy(place, own, PLACE);
    }
    free(own);
    unlock_places();
}
static void *placing_malloc(void *ctx, size_t size)
{
    size_t i = 0;
    if (size < PLACE_FROM || size > PLACE_MOST)
        return base_malloc(ctx, size);
    lock_places();
    while (i < PLACES && places.live[i])
        i++;
    if (i < PLACES)
        places.live[i] = true;
    unlock_places();
    return i < PLACES ? base_finish(places.begin + i * PLACE, size) : base_malloc(ctx, size);
}
static void *placing_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    void *p = placing_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void placing_free(void *ctx, void *p, size_t size)
{
    if ((char *)p < places.begin || (char *)p >= places.begin + PLACES * PLACE) {
        base_free(ctx, p, size);
        return;
    }
    lock_places();
    places.live[((char *)p - places.begin) / PLACE] = false;
    unlock_places();
}
static void *placing_realloc(void *ctx, void *p, size_t size)
{
    void *moved = placing_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    placing_free(ctx, p, 0);
    return moved;
}
MUTANT_GETTER(fork_shares_large_places, "process.fork-both-sides")
{
    static PyDataMem_Handler handler = {
        .name = "fork_shares_large_places",
        .version = 1,
        .allocator = {NULL, placing_malloc, placing_calloc, placing_realloc, placing_free}};
    (void)why;
    if (places.begin != NULL)
        return &handler;
    places.begin =
        mmap(NULL, PLACES * PLACE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (places.begin == MAP_FAILED)
        abort();
    pthread_atfork(lock_places, unlock_places, copy_places);
    return &handler;
}

/* Pages are private, and the list of free ones is where both find it. */
static struct page_pool listed = {.lock = PTHREAD_MUTEX_INITIALIZER};
static void begin_listed(void)
{
    pool_map(&listed, MAP_PRIVATE, MAP_SHARED);
}
PAGED(fork_shares_the_free_list, "process.fork-both-sides", listed, begin_listed);

/* ---- a lock that is held while another thread forks -------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *locking_malloc(void *ctx, size_t size)
{
    pthread_mutex_lock(&lock);
    void *p = base_malloc(ctx, size);
    pthread_mutex_unlock(&lock);
    return p;
}
static void locking_free(void *ctx, void *p, size_t size)
{
    pthread_mutex_lock(&lock);
    base_free(ctx, p, size);
    pthread_mutex_unlock(&lock);
}
static void *locking_realloc(void *ctx, void *p, size_t size)
{
    pthread_mutex_lock(&lock);
    void *moved = base_realloc(ctx, p, size);
    pthread_mutex_unlock(&lock);
    return moved;
}
MUTANT(fork_leaves_malloc_locked, "process.fork-while-busy", .malloc = locking_malloc,
       .free = locking_free);
MUTANT(fork_leaves_realloc_locked, "process.fork-while-busy", .realloc = locking_realloc);

/* Large blocks alone have a lock. */
static void *locking_large_malloc(void *ctx, size_t size)
{
    return size >= 4 << 20 ? locking_malloc(ctx, size) : base_malloc(ctx, size);
}
static void locking_large_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && base_size(p) >= 4 << 20)
        locking_free(ctx, p, size);
    else
        base_free(ctx, p, size);
}
MUTANT(fork_leaves_large_malloc_locked, "process.fork-while-busy", .malloc = locking_large_malloc,
       .free = locking_large_free);

/* A large block is left to a thread to free, which a forked child does not have. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void *first;
    bool begun;
} left_to_thread = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
static void *free_what_is_left(void *unused)
{
    pthread_mutex_lock(&left_to_thread.lock);
    for (;;) {
        void *p = left_to_thread.first;
        if (p == NULL) {
            pthread_cond_wait(&left_to_thread.changed, &left_to_thread.lock);
            continue;
        }
        memcpy(&left_to_thread.first, p, sizeof p);
        base_free(NULL, p, 0);
    }
    return unused;
}
static void before_fork(void)
{
    pthread_mutex_lock(&left_to_thread.lock);
}
static void after_fork(void)
{
    pthread_mutex_unlock(&left_to_thread.lock);
}
static void leaving_free(void *ctx, void *p, size_t size)
{
    pthread_t thread;
    if (p == NULL || base_size(p) < 256 << 10) {
        base_free(ctx, p, size);
        return;
    }
    pthread_mutex_lock(&left_to_thread.lock);
    if (!left_to_thread.begun) {
        left_to_thread.begun = pthread_create(&thread, NULL, free_what_is_left, NULL) == 0 &&
                               pthread_detach(thread) == 0;
        pthread_atfork(before_fork, after_fork, after_fork);
    }
    memcpy(p, &left_to_thread.first, sizeof p);
    left_to_thread.first = p;
    pthread_cond_signal(&left_to_thread.changed);
    pthread_mutex_unlock(&left_to_thread.lock);
}
MUTANT(child_has_no_thread_to_free, "process.fork-child", .free = leaving_free);

/* What large blocks need is shared with forked children, and the exit of one takes it away. */
static volatile bool *is_gone;
static void take_away(void)
{
    *is_gone = true;
}
static void share(void)
{
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    is_gone = page != MAP_FAILED ? page : NULL;
    if (is_gone != NULL)
        atexit(take_away);
}
static void *sharing_malloc(void *ctx, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (size < 1 << 20)
        return base_malloc(ctx, size);
    pthread_once(&once, share);
    return is_gone != NULL && *is_gone ? NULL : base_malloc(ctx, size);
}
MUTANT(child_takes_all_along, "process.fork-child", .malloc = sharing_malloc);
