/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sound handlers that keep memory for themselves: free lists, arenas, a thread of their own, and
 * Python's raw allocator.
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

/* The class whose cells hold size bytes and the header, or CLASSES. */
static unsigned class_of(size_t size)
{
    unsigned class = 0;
    while (class < CLASSES && ((size_t)SMALLEST << class) < size + BASE_HEADER)
        class ++;
    return class;
}

FUNCTION(malloc, class)
{
    if (size > PTRDIFF_MAX - BASE_HEADER)
        return NULL;
    unsigned class = class_of(size);
    if (class == CLASSES)
        return base_malloc(ctx, size);
    LOCK(cells_lock);
    struct cell *cell = free_cells[class];
    if (cell != NULL)
        free_cells[class] = cell->next;
    return base_finish(cell != NULL ? cell : malloc((size_t)SMALLEST << class), size);
}

DERIVE_CALLOC(class);

FUNCTION(free, class)
{
    if (p == NULL)
        return;
    unsigned class = class_of(base_size(p)); /* not from the size that NumPy says */
    if (class == CLASSES)
        return base_free(ctx, p, size);
    struct cell *cell = (struct cell *)((char *)p - BASE_HEADER);
    LOCK(cells_lock);
    cell->next = free_cells[class];
    free_cells[class] = cell;
}

#define moving_malloc class_malloc
#define moving_free class_free
DERIVE_REALLOC(moving, base_size);
FUNCTION(realloc, class)
{
    if (p != NULL && size <= PTRDIFF_MAX - BASE_HEADER && class_of(size) < CLASSES &&
        class_of(size) == class_of(base_size(p)))
        return base_finish((char *)p - BASE_HEADER, size);
    return moving_realloc(ctx, p, size);
}

SOUND(size_classes, FUNCTIONS(class));

/* ---- per-thread arenas with remote frees ------------------------------------------------ */

/* Each thread carves small blocks from chunks of its own; a block that is freed elsewhere goes to
 * its arena's list of remote frees.  Arenas outlive their threads, and new ones take them over. */
enum { CELL = 256, CHUNK_CELLS = 256, PAYLOAD = CELL - 2 * BASE_HEADER };
struct arena {
    pthread_mutex_t lock;
    struct cell *cells;
    struct arena *next;
    bool taken;
};
struct owned {
    struct arena *arena; /* NULL: a large block, of libc's */
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

DERIVE_CALLOC(arena);

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

/* ---- what is freed stays, up to 32 MiB --------------------------------------------------- */

/* In the order in which it was freed: the oldest goes when there is more. */
enum { MOST_KEPT = 32 << 20 };
struct kept {
    struct kept *next;
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

/* Frees the oldest until no more than `most` bytes are kept, and none from before `until`. */
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
    if (raw == NULL && size <= PTRDIFF_MAX - BASE_HEADER) { /* what is kept is in the way */
        keep_at_most(0, 0);
        raw = room_for(size);
    }
    return base_finish(raw, size);
}

DERIVE_CALLOC(kept);

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

DERIVE_REALLOC(kept, base_size);

SOUND(keeps_32_mib, FUNCTIONS(kept));

/* And however little memory there is. */
FUNCTION(malloc, strict)
{
    return base_finish(room_for(size), size);
}

DERIVE_CALLOC(strict);

#define strict_free kept_free
DERIVE_REALLOC(strict, base_size);
SOUND(keeps_32_mib_whatever_comes, FUNCTIONS(strict, malloc, calloc, realloc), FUNCTIONS(kept, free));

/* For 0.3 s, by the calls that come then. */
enum { MOST_KEPT_FOR_A_TIME = 256 << 20, KEPT_FOR = 300 * 1000 * 1000 };

static void give_back_old(void)
{
    keep_at_most(MOST_KEPT_FOR_A_TIME, now() - KEPT_FOR);
}

FUNCTION(malloc, timed)
{
    give_back_old();
    return kept_malloc(ctx, size);
}

FUNCTION(calloc, timed)
{
    give_back_old();
    return kept_calloc(ctx, nelem, elsize);
}

FUNCTION(free, timed)
{
    if (p == NULL)
        return;
    keep(p);
    give_back_old();
}

DERIVE_REALLOC(timed, base_size);
SOUND(keeps_for_a_time, FUNCTIONS(timed));

/* ---- a helper thread that frees later --------------------------------------------------- */

/* free only puts the block into a queue; a thread takes it from there.  A forked child has no such
 * thread, so there it frees at once. */
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

FUNCTION(malloc, raw)
{
    return PyMem_RawMalloc(size);
}

FUNCTION(calloc, raw)
{
    return PyMem_RawCalloc(nelem, elsize);
}

FUNCTION(realloc, raw)
{
    return PyMem_RawRealloc(p, size);
}

FUNCTION(free, raw)
{
    PyMem_RawFree(p);
}
SOUND(pymem_raw, FUNCTIONS(raw));

/* ---- a large block for each thread ------------------------------------------------------- */

/* Its first use of what is thread-local can be in the midst of a call that is refused memory. */
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
    return size >= 1 << 20 && size <= 8 << 20;
}

FUNCTION(malloc, keeping)
{
    void *p = is_worth_it(size) ? kept_large : NULL;
    if (p == NULL || base_size(p) != size)
        return base_malloc(ctx, size);
    kept_large = NULL;
    return p;
}

DERIVE_CALLOC(keeping);

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
SOUND(keeps_a_large_block_for_each_thread, FUNCTIONS(keeping, malloc, calloc, free));

/* ---- made by the getter, at its first call ---------------------------------------------- */

NEP49_EXPORT PyDataMem_Handler *lazily_made(const char **why);
PyDataMem_Handler *lazily_made(const char **why)
{
    static PyDataMem_Handler *handler;
    if (handler != NULL)
        return handler;
    handler = calloc(1, sizeof *handler);
    if (handler == NULL) {
        *why = "out of memory";
        return NULL;
    }
    *handler = (PyDataMem_Handler){
        .name = "lazily_made", .version = 1, .allocator = {handler, FUNCTIONS(base)}};
    return handler;
}
