/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sound handlers that keep freed memory: free lists, arenas, queues; and Python's raw allocator.
 */
#include <time.h>
#include <unistd.h>

#include "base.h"

/* ---- size classes with a free list ------------------------------------------------------ */

enum { CLASSES = 12, SMALLEST = 32 };
struct cell {
    struct cell *next;
};
static struct cell *free_cells[CLASSES];
MUTEX(cells_lock);

/* The smallest class with room for the block and its header; CLASSES: none. */
static unsigned class_of(size_t size)
{
    unsigned class = 0;
    while (class < CLASSES && ((size_t)SMALLEST << class) < size + BASE_HEADER)
        class ++;
    return class;
}

FUNCTION(malloc, class)
{
    unsigned class = size <= PTRDIFF_MAX - BASE_HEADER ? class_of(size) : CLASSES;
    if (class == CLASSES)
        return base_malloc(ctx, size);
    LOCK(cells_lock);
    struct cell *cell = free_cells[class];
    if (cell != NULL)
        free_cells[class] = cell->next;
    return base_finish(cell != NULL ? cell : malloc((size_t)SMALLEST << class), size);
}

FUNCTION(free, class)
{
    if (p == NULL)
        return;
    unsigned class = class_of(base_size(p));
    if (class == CLASSES)
        return base_free(ctx, p, size);
    struct cell *cell = (struct cell *)((char *)p - BASE_HEADER);
    LOCK(cells_lock);
    cell->next = free_cells[class];
    free_cells[class] = cell;
}

DERIVE(class);
SOUND(size_classes, FUNCTIONS(class));

/* ---- per-thread arenas with remote frees ------------------------------------------------ */

/* Each thread has an arena, to which its small blocks return from all threads.  An arena outlives
 * its thread, and a new thread takes it over. */
enum { CELL = 256, CHUNK_CELLS = 256, PAYLOAD = CELL - 2 * BASE_HEADER };
struct arena {
    pthread_mutex_t lock;
    struct cell *cells;
    struct arena *next;
    bool taken;
};
struct owned {
    struct arena *arena; /* NULL: a large block of libc */
    size_t unused, size, padding;
};
static struct arena *arenas;
static pthread_mutex_t arenas_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t arena_key;

static void leave_arena(void *data)
{
    LOCK(arenas_lock);
    ((struct arena *)data)->taken = false;
}

__attribute__((constructor)) static void make_key(void)
{
    pthread_key_create(&arena_key, leave_arena);
}

static struct arena *my_arena(void)
{
    struct arena *arena = pthread_getspecific(arena_key);
    if (arena != NULL)
        return arena;
    LOCK(arenas_lock);
    for (arena = arenas; arena != NULL && arena->taken; arena = arena->next)
        continue;
    if (arena == NULL && (arena = calloc(1, sizeof *arena)) != NULL) {
        pthread_mutex_init(&arena->lock, NULL);
        arena->next = arenas;
        arenas = arena;
    }
    if (arena != NULL)
        arena->taken = true;
    pthread_setspecific(arena_key, arena);
    return arena;
}

static struct owned *carve(struct arena *arena)
{
    LOCK(arena->lock);
    if (arena->cells == NULL) {
        char *chunk = malloc((size_t)CELL * CHUNK_CELLS);
        for (size_t i = 0; chunk != NULL && i < CHUNK_CELLS; i++) {
            struct cell *cell = (struct cell *)(chunk + i * CELL);
            cell->next = arena->cells;
            arena->cells = cell;
        }
    }
    struct cell *cell = arena->cells;
    if (cell != NULL)
        arena->cells = cell->next;
    return (struct owned *)cell;
}

FUNCTION(malloc, arena)
{
    struct arena *arena = size <= PAYLOAD ? my_arena() : NULL;
    if (size > PTRDIFF_MAX - sizeof(struct owned) || (size <= PAYLOAD && arena == NULL))
        return NULL;
    struct owned *block = arena != NULL ? carve(arena) : malloc(sizeof *block + size);
    if (block == NULL)
        return NULL;
    *block = (struct owned){.arena = arena, .size = size};
    return block + 1;
}

FUNCTION(free, arena)
{
    if (p == NULL)
        return;
    struct owned *block = (struct owned *)p - 1;
    struct arena *arena = block->arena;
    if (arena == NULL)
        return free(block);
    struct cell *cell = (struct cell *)block;
    LOCK(arena->lock);
    cell->next = arena->cells;
    arena->cells = cell;
}

#define owned_size(p) (((struct owned *)(p)-1)->size)
DERIVE_CALLOC(arena);
DERIVE_REALLOC(arena, owned_size);

static void lock_arenas(void)
{
    pthread_mutex_lock(&arenas_lock);
    for (struct arena *arena = arenas; arena != NULL; arena = arena->next)
        pthread_mutex_lock(&arena->lock);
}
static void unlock_arenas(void)
{
    for (struct arena *arena = arenas; arena != NULL; arena = arena->next)
        pthread_mutex_unlock(&arena->lock);
    pthread_mutex_unlock(&arenas_lock);
}
__attribute__((constructor)) static void guard_arenas(void)
{
    pthread_atfork(lock_arenas, unlock_arenas, unlock_arenas);
}
SOUND(thread_arenas, FUNCTIONS(arena));

/* ---- freed blocks stay, up to 32 MiB -------------------------------------------------------- */

enum { MOST_KEPT = 32 * MIB };
struct kept {
    struct kept *next; /* that was freed later */
    size_t size;
    uint64_t since; /* nanoseconds */
};
static struct kept *oldest, **newest = &oldest;
static size_t kept_bytes;
MUTEX(kept_lock);

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Frees the oldest blocks until at most `most` bytes are kept, and none from before `until`. */
static void keep_at_most(size_t most, uint64_t until)
{
    struct kept *gone = NULL;
    acquire_kept_lock();
    while (oldest != NULL && (kept_bytes > most || oldest->since < until)) {
        struct kept *first = oldest;
        kept_bytes -= first->size;
        oldest = first->next;
        first->next = gone;
        gone = first;
    }
    if (oldest == NULL)
        newest = &oldest;
    release_kept_lock();
    while (gone != NULL) {
        struct kept *next = gone->next;
        base_free(NULL, gone, 0);
        gone = next;
    }
}

static void *room_for(size_t size)
{
    size_t room = size < sizeof *oldest ? sizeof *oldest : size;
    return size > PTRDIFF_MAX - BASE_HEADER ? NULL : nep49_advise(malloc(room + BASE_HEADER), size);
}

FUNCTION(malloc, kept)
{
    void *raw = room_for(size);
    if (raw == NULL && size <= PTRDIFF_MAX - BASE_HEADER) {
        keep_at_most(0, 0);
        raw = room_for(size);
    }
    return base_finish(raw, size);
}
static void keep(void *p)
{
    struct kept *block = p;
    size_t size = base_size(p);
    *block = (struct kept){NULL, size > sizeof *block ? size : sizeof *block, now()};
    LOCK(kept_lock);
    *newest = block;
    newest = &block->next;
    kept_bytes += block->size;
}
FUNCTION(free, kept)
{
    if (p == NULL)
        return;
    keep(p);
    keep_at_most(MOST_KEPT, 0);
}

DERIVE(kept);
SOUND(keeps_32_mib, FUNCTIONS(kept));

/* The same even if memory runs out. */
FUNCTION_RETURNS(malloc, strict, base_finish(room_for(size), size));
#define strict_free kept_free
DERIVE(strict);
SOUND(keeps_32_mib_whatever_comes, FUNCTIONS(strict));

/* Calls free blocks that were kept for 0.3 s. */
enum { MOST_KEPT_FOR_A_TIME = 256 * MIB, KEPT_FOR = 300 * 1000 * 1000 };
FUNCTION(malloc, timed)
{
    keep_at_most(MOST_KEPT_FOR_A_TIME, now() - KEPT_FOR);
    return kept_malloc(ctx, size);
}
FUNCTION(free, timed)
{
    if (p == NULL)
        return;
    keep(p);
    keep_at_most(MOST_KEPT_FOR_A_TIME, now() - KEPT_FOR);
}
DERIVE(timed);
SOUND(keeps_for_a_time, FUNCTIONS(timed));

/* ---- a helper thread that frees later --------------------------------------------------- */

/* A thread frees the blocks of a queue.  A forked child has no such thread and frees at once. */
static struct cell *queued;
MUTEX(queue_lock);
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
static _Atomic pid_t helper_process;

static void *helper_main(void *unused)
{
    for (;;) {
        acquire_queue_lock();
        while (queued == NULL)
            pthread_cond_wait(&queue_filled, &queue_lock);
        struct cell *cells = queued;
        queued = NULL;
        release_queue_lock();
        while (cells != NULL) {
            struct cell *next = cells->next;
            free(cells);
            cells = next;
        }
    }
    return unused;
}

static void start_helper(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, helper_main, NULL) == 0) {
        pthread_detach(thread);
        helper_process = getpid();
    }
}

FUNCTION(malloc, helped)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_helper);
    return base_malloc(ctx, size);
}

FUNCTION(free, helped)
{
    if (p == NULL)
        return;
    if (helper_process != getpid())
        return base_free(ctx, p, size);
    struct cell *cell = (struct cell *)((char *)p - BASE_HEADER);
    LOCK(queue_lock);
    cell->next = queued;
    queued = cell;
    pthread_cond_signal(&queue_filled);
}
SOUND(helper_thread, FUNCTIONS(helped, malloc, free));

/* ---- Python's raw allocator, which needs no GIL ----------------------------------------- */

void *PyMem_RawMalloc(size_t size);
void *PyMem_RawCalloc(size_t nelem, size_t elsize);
void *PyMem_RawRealloc(void *p, size_t size);
void PyMem_RawFree(void *p);

FUNCTION_RETURNS(malloc, raw, PyMem_RawMalloc(size));
FUNCTION_RETURNS(calloc, raw, PyMem_RawCalloc(nelem, elsize));
FUNCTION_RETURNS(realloc, raw, PyMem_RawRealloc(p, size));
FUNCTION_RETURNS(free, raw, PyMem_RawFree(p));
SOUND(pymem_raw, FUNCTIONS(raw));

/* ---- a large block for each thread ------------------------------------------------------- */

static _Thread_local void *kept_large;
static _Thread_local bool has_ended;
static pthread_key_t kept_key;
static pthread_once_t kept_once = PTHREAD_ONCE_INIT;
static void end_of_thread(UNUSED void *unused)
{
    has_ended = true;
    base_free(NULL, kept_large, 0);
    kept_large = NULL;
}
static void make_kept_key(void)
{
    pthread_key_create(&kept_key, end_of_thread);
}
static bool is_worth_it(size_t size)
{
    return size >= MIB && size <= 8 * MIB;
}
FUNCTION(malloc, keeping)
{
    void *p = is_worth_it(size) ? kept_large : NULL;
    if (p == NULL || base_size(p) != size)
        return base_malloc(ctx, size);
    kept_large = NULL;
    return p;
}
FUNCTION(free, keeping)
{
    if (p == NULL || !is_worth_it(base_size(p)) || has_ended)
        return base_free(ctx, p, size);
    pthread_once(&kept_once, make_kept_key);
    if (pthread_setspecific(kept_key, &kept_key) == 0) {
        void *before = kept_large;
        kept_large = p;
        p = before;
    }
    base_free(ctx, p, size);
}
DERIVE_CALLOC(keeping);
SOUND(keeps_a_large_block_for_each_thread, FUNCTIONS(keeping, malloc, calloc, free));

/* ---- made by the getter, at its first call ---------------------------------------------- */

NEP49_EXPORT PyDataMem_Handler *lazily_made(const char **why);
PyDataMem_Handler *lazily_made(const char **why)
{
    static PyDataMem_Handler *handler;
    if (handler == NULL && (handler = calloc(1, sizeof *handler)) != NULL)
        *handler = (PyDataMem_Handler){
            .name = "lazily_made", .version = 1, .allocator = {handler, FUNCTIONS(base)}};
    if (handler == NULL)
        *why = "out of memory";
    return handler;
}
