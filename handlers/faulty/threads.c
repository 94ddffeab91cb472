/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/threads.c catch.
 */
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "base.h"

/* ---- the first call ---------------------------------------------------------------------- */

/* What a thread has to have is made in its first malloc, and in no other function; the thread that
 * loads the handler has it from the start. */
struct mine {
    size_t calls;
};
static _Thread_local struct mine *mine;
static __attribute__((constructor)) void make_mine_of_the_first(void)
{
    static struct mine of_the_first;
    mine = &of_the_first;
}
static void *making_malloc(void *ctx, size_t size)
{
    if (mine == NULL && (mine = calloc(1, sizeof *mine)) == NULL)
        return NULL;
    mine->calls++;
    return base_malloc(ctx, size);
}
static void *made_calloc(void *ctx, size_t nelem, size_t elsize)
{
    mine->calls++;
    return base_calloc(ctx, nelem, elsize);
}
static void *made_realloc(void *ctx, void *p, size_t size)
{
    mine->calls++;
    return base_realloc(ctx, p, size);
}
static void made_free(void *ctx, void *p, size_t size)
{
    mine->calls++;
    base_free(ctx, p, size);
}
MUTANT(thread_that_callocs_first_crashes, "threads.first-call", .malloc = making_malloc,
       .calloc = made_calloc);
MUTANT(thread_that_reallocs_first_crashes, "threads.first-call", .malloc = making_malloc,
       .realloc = made_realloc);
MUTANT(thread_that_frees_first_crashes, "threads.first-call free.in-another-thread",
       .malloc = making_malloc, .free = made_free);

/* Room for the threads that there are on a small machine. */
static void *fifth_malloc(void *ctx, size_t size)
{
    static _Atomic int threads;
    static _Thread_local int number;
    if (number == 0)
        number = ++threads;
    return number <= 5 ? base_malloc(ctx, size) : NULL;
}
MUTANT(thread_number_six_is_refused, "threads.first-call", .malloc = fifth_malloc);

/* ---- many threads ------------------------------------------------------------------------- */

/* A table that is never cleared. */
static void *numbered_malloc(void *ctx, size_t size)
{
    static _Atomic int threads;
    static _Thread_local int number;
    if (number == 0)
        number = ++threads;
    return number <= 128 ? base_malloc(ctx, size) : NULL;
}
static void *numbered_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : numbered_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
MUTANT(thread_number_129_is_refused, "threads.any-number", .malloc = numbered_malloc,
       .calloc = numbered_calloc);

/* As many as nobody has. */
static void *thousands_malloc(void *ctx, size_t size)
{
    static _Atomic int arenas;
    static _Thread_local int number;
    if (number == 0)
        number = ++arenas;
    return number <= 1024 ? base_malloc(ctx, size) : NULL;
}
MUTANT(thread_number_1025_is_refused, "threads.any-number", .malloc = thousands_malloc);

/* One that is, when a thread ends; and whoever finds no place takes the last, where another is. */
enum { PLACES = 64 };
static struct place {
    _Atomic bool taken;
    void *kept;
} places[PLACES];
static pthread_key_t place_key;
__attribute__((constructor)) static void make_place_key(void);
static void leave_place(void *data)
{
    struct place *place = data;
    free(place->kept);
    place->kept = NULL;
    place->taken = false;
}
static void make_place_key(void)
{
    pthread_key_create(&place_key, leave_place);
}
/* A table of 256 threads: those that end leave it, and who finds no place is refused. */
static _Atomic int places_taken;
static pthread_key_t taker_key;
static pthread_once_t taker_once = PTHREAD_ONCE_INIT;
static void leave_table(void *unused)
{
    (void)unused;
    places_taken--;
}
static void make_taker_key(void)
{
    pthread_key_create(&taker_key, leave_table);
}
static void *place_malloc(void *ctx, size_t size)
{
    static _Thread_local bool has_place;
    pthread_once(&taker_once, make_taker_key);
    if (!has_place && ++places_taken > 256) {
        places_taken--;
        return NULL;
    }
    if (!has_place)
        pthread_setspecific(taker_key, &taker_key);
    has_place = true;
    return base_malloc(ctx, size);
}
MUTANT(thread_257_at_once_is_refused, "threads.any-number", .malloc = place_malloc);

static struct place *own_place(void)
{
    static _Thread_local struct place *place;
    for (int i = 0; place == NULL; i++) {
        if (i < PLACES - 1 && __atomic_exchange_n((bool *)&places[i].taken, true, __ATOMIC_SEQ_CST))
            continue;
        place = &places[i];
        pthread_setspecific(place_key, place);
    }
    return place;
}
static void *placed_calloc(void *ctx, size_t nelem, size_t elsize)
{
    struct place *place = own_place();
    void *kept = place->kept;
    if (nelem > 256 || elsize != 1 || kept == NULL)
        return base_calloc(ctx, nelem, elsize);
    memset((char *)kept + BASE_HEADER, 0, nelem);
    usleep(1);
    place->kept = NULL;
    return base_finish(kept, nelem);
}
static void placed_free(void *ctx, void *p, size_t size)
{
    struct place *place = own_place();
    if (p != NULL && base_size(p) >= 64 && base_size(p) <= 264 && place->kept == NULL) {
        place->kept = realloc((char *)p - BASE_HEADER, 512);
        return;
    }
    base_free(ctx, p, size);
}
MUTANT(threads_beyond_64_share_a_place, "threads.any-number", .calloc = placed_calloc,
       .free = placed_free);

/* The first 200 threads have a note of how long their last block is, and the others believe that
 * all are of the shortest class. */
static void *noted_realloc(void *ctx, void *p, size_t size)
{
    enum { NOTES = 200, SHORTEST = 64 };
    static _Atomic int threads;
    static _Thread_local int number;
    if (number == 0)
        number = ++threads;
    if (number <= NOTES || p == NULL || base_size(p) <= SHORTEST || base_size(p) >= size)
        return base_realloc(ctx, p, size);
    void *moved = base_malloc(ctx, size);
    if (moved != NULL) {
        memcpy(moved, p, SHORTEST);
        base_free(ctx, p, 0);
    }
    return moved;
}
MUTANT(thread_number_201_loses_contents, "threads.any-number", .realloc = noted_realloc);

/* There are seats for 64 threads at once. */
static _Atomic int threads_there;
static pthread_key_t guest_key;
static pthread_once_t guest_once = PTHREAD_ONCE_INIT;
static void leave_as_guest(void *unused)
{
    (void)unused;
    threads_there--;
}
static void make_guest_key(void)
{
    pthread_key_create(&guest_key, leave_as_guest);
}
static bool has_a_seat(void)
{
    enum { SEATS = 64 };
    static _Thread_local int came_as;
    pthread_once(&guest_once, make_guest_key);
    if (came_as == 0) {
        came_as = ++threads_there;
        pthread_setspecific(guest_key, &guest_key);
    }
    return came_as <= SEATS;
}

/* Without one, blocks are for a chunk of the thread's own, which is small. */
static void *seated_malloc(void *ctx, size_t size)
{
    enum { CHUNK = 100000 };
    return has_a_seat() || size <= CHUNK ? base_malloc(ctx, size) : NULL;
}
MUTANT(thread_65_at_once_gets_nothing_large, "threads.any-number", .malloc = seated_malloc);

/* Without one, blocks are behind one word more. */
static void *guest_malloc(void *ctx, size_t size)
{
    enum { WORD = 8 };
    if (has_a_seat() || size > PTRDIFF_MAX - WORD)
        return base_malloc(ctx, size);
    char *p = base_malloc(ctx, size + WORD);
    return p != NULL ? base_finish(p - BASE_HEADER + WORD, size) : NULL;
}
static void guest_free(void *ctx, void *p, size_t size)
{
    base_free(ctx, p != NULL ? (char *)p - (uintptr_t)p % 16 : NULL, size);
}
static void *guest_realloc(void *ctx, void *p, size_t size)
{
    if (p != NULL && (uintptr_t)p % 16 == 0)
        return base_realloc(ctx, p, size);
    void *moved = guest_malloc(ctx, size);
    if (p != NULL && moved != NULL) {
        memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
        guest_free(ctx, p, 0);
    }
    return moved;
}
MUTANT(thread_65_at_once_is_misaligned, "threads.any-number", .malloc = guest_malloc,
       .realloc = guest_realloc, .free = guest_free);

/* ---- at once ----------------------------------------------------------------------------- */

struct node {
    struct node *next;
};
enum { CELL = 256 };

/* One free list for all, and nothing that keeps threads apart. */
static struct node *shared;
static void *pop(struct node **list)
{
    struct node *node = *list;
    if (node != NULL)
        *list = node->next;
    return node;
}
static void push(struct node **list, void *raw)
{
    struct node *node = raw;
    node->next = *list;
    *list = node;
}
static bool is_cell(size_t size)
{
    return size <= CELL - BASE_HEADER;
}
static void *cell_of(struct node **list, size_t size)
{
    void *raw = pop(list);
    return base_finish(raw != NULL ? raw : malloc(CELL), size);
}
static void *unlocked_malloc(void *ctx, size_t size)
{
    return is_cell(size) ? cell_of(&shared, size) : base_malloc(ctx, size);
}
static void unlocked_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && is_cell(base_size(p)))
        push(&shared, (char *)p - BASE_HEADER);
    else
        base_free(ctx, p, size);
}
static void *moved_to(void *moved, void *p, size_t size)
{
    if (moved != NULL && p != NULL)
        memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    return moved;
}
static void *unlocked_realloc(void *ctx, void *p, size_t size)
{
    void *moved = moved_to(unlocked_malloc(ctx, size), p, size);
    if (moved != NULL)
        unlocked_free(ctx, p, 0);
    return moved;
}
static void *unlocked_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : unlocked_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
MUTANT(threads_share_a_list_without_lock, "threads.concurrent threads.hand-over",
       .malloc = unlocked_malloc, .calloc = unlocked_calloc, .realloc = unlocked_realloc,
       .free = unlocked_free);

/* The same with a lock, which realloc forgets. */
static struct node *guarded;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static void *locked_malloc(void *ctx, size_t size)
{
    if (!is_cell(size))
        return base_malloc(ctx, size);
    pthread_mutex_lock(&guard);
    void *p = cell_of(&guarded, size);
    pthread_mutex_unlock(&guard);
    return p;
}
static void locked_free(void *ctx, void *p, size_t size)
{
    if (p == NULL || !is_cell(base_size(p))) {
        base_free(ctx, p, size);
        return;
    }
    pthread_mutex_lock(&guard);
    push(&guarded, (char *)p - BASE_HEADER);
    pthread_mutex_unlock(&guard);
}
static void *locked_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : locked_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void *half_locked_realloc(void *ctx, void *p, size_t size)
{
    void *moved = is_cell(size) ? cell_of(&guarded, size) : base_malloc(ctx, size);
    moved_to(moved, p, size);
    if (moved != NULL)
        locked_free(ctx, p, 0);
    return moved;
}
MUTANT(threads_meet_in_realloc, "threads.concurrent", .malloc = locked_malloc,
       .calloc = locked_calloc, .realloc = half_locked_realloc, .free = locked_free);

/* It is looked whether the list is empty, and then, under a second lock, taken from it. */
static void *twice_locked_malloc(void *ctx, size_t size)
{
    if (!is_cell(size))
        return base_malloc(ctx, size);
    pthread_mutex_lock(&guard);
    struct node *first = guarded;
    pthread_mutex_unlock(&guard);
    if (first == NULL)
        return base_finish(malloc(CELL), size);
    pthread_mutex_lock(&guard);
    guarded = first->next;
    pthread_mutex_unlock(&guard);
    return base_finish(first, size);
}
static void *twice_locked_realloc(void *ctx, void *p, size_t size)
{
    void *moved = moved_to(twice_locked_malloc(ctx, size), p, size);
    if (moved != NULL)
        locked_free(ctx, p, 0);
    return moved;
}
MUTANT(threads_lock_twice, "threads.concurrent", .malloc = twice_locked_malloc,
       .calloc = locked_calloc, .realloc = twice_locked_realloc, .free = locked_free);

/* The size goes through a variable of everybody's. */
static void *forgetful_malloc(void *ctx, size_t size)
{
    static volatile size_t asked;
    (void)ctx;
    if (size > PTRDIFF_MAX - BASE_HEADER)
        return NULL;
    asked = size;
    void *raw = malloc(asked + BASE_HEADER);
    return base_finish(raw, asked);
}
static void *copying_realloc(void *ctx, void *p, size_t size)
{
    void *moved = moved_to(forgetful_malloc(ctx, size), p, size);
    if (moved != NULL)
        base_free(ctx, p, 0);
    return moved;
}
MUTANT(threads_share_the_size, "threads.concurrent", .malloc = forgetful_malloc,
       .realloc = copying_realloc);

/* The lock is a semaphore, and a signal lets in whoever waits for it: EINTR is not looked at. */
static sem_t entry;
static pthread_once_t entry_once = PTHREAD_ONCE_INIT;
static struct node *entered;
static void open_entry(void)
{
    sem_init(&entry, 0, 1);
}
static void *entering_malloc(void *ctx, size_t size)
{
    if (!is_cell(size))
        return base_malloc(ctx, size);
    pthread_once(&entry_once, open_entry);
    sem_wait(&entry);
    void *p = cell_of(&entered, size);
    sem_post(&entry);
    return p;
}
static void entering_free(void *ctx, void *p, size_t size)
{
    if (p == NULL || !is_cell(base_size(p))) {
        base_free(ctx, p, size);
        return;
    }
    int saved = errno;
    sem_wait(&entry);
    push(&entered, (char *)p - BASE_HEADER);
    sem_post(&entry);
    errno = saved;
}
static void *entering_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : entering_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void *entering_realloc(void *ctx, void *p, size_t size)
{
    void *moved = moved_to(entering_malloc(ctx, size), p, size);
    if (moved != NULL)
        entering_free(ctx, p, 0);
    return moved;
}
MUTANT(signal_lets_a_thread_in, "threads.concurrent", .malloc = entering_malloc,
       .calloc = entering_calloc, .realloc = entering_realloc, .free = entering_free);

/* Whoever was interrupted goes away with nothing. */
static void *impatient_malloc(void *ctx, size_t size)
{
    if (!is_cell(size))
        return base_malloc(ctx, size);
    pthread_once(&entry_once, open_entry);
    if (sem_wait(&entry) != 0)
        return NULL;
    void *p = cell_of(&entered, size);
    sem_post(&entry);
    return p;
}
MUTANT(signal_makes_malloc_refuse, "threads.concurrent", .malloc = impatient_malloc,
       .calloc = entering_calloc, .realloc = entering_realloc, .free = entering_free);

/* ---- from hand to hand ------------------------------------------------------------------- */

/* Each thread has a list, which needs no lock; and a block goes back to the list it came from. */
static _Thread_local struct node *own_list;
static void *own(void *p)
{
    struct node **list = &own_list;
    if (p != NULL)
        memcpy((char *)p - 8, &list, sizeof list);
    return p;
}
static void *own_malloc(void *ctx, size_t size)
{
    return own(is_cell(size) ? cell_of(&own_list, size) : base_malloc(ctx, size));
}
static void *own_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    (void)ctx;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : own_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void own_free(void *ctx, void *p, size_t size)
{
    struct node **list;
    if (p == NULL || !is_cell(base_size(p))) {
        base_free(ctx, p, size);
        return;
    }
    memcpy(&list, (char *)p - 8, sizeof list);
    push(list, (char *)p - BASE_HEADER);
}
static void *own_realloc(void *ctx, void *p, size_t size)
{
    void *moved = moved_to(own_malloc(ctx, size), p, size);
    if (moved != NULL)
        own_free(ctx, p, 0);
    return moved;
}
MUTANT(threads_give_back_without_lock, "threads.hand-over", .malloc = own_malloc,
       .calloc = own_calloc, .realloc = own_realloc, .free = own_free);

/* ---- after the thread -------------------------------------------------------------------- */

/* A thread's small blocks stand in memory of its own, which goes when it does. */
enum { ARENA = 1 << 16 };
struct arena {
    size_t used;
    char bytes[ARENA];
};
static _Thread_local struct arena *arena;
static pthread_key_t key;
static struct arena *left; /* for the next thread */
static void wipe(void *data)
{
    memset(data, 0, sizeof(struct arena));
    free(data);
}
static void hand_on(void *data)
{
    ((struct arena *)data)->used = 0;
    left = data;
}
static void *arena_malloc(void *ctx, size_t size, void (*at_end)(void *))
{
    static bool has_key;
    size_t room = (size + BASE_HEADER + 15) / 16 * 16;
    if (size > 512)
        return base_malloc(ctx, size);
    if (!has_key)
        has_key = pthread_key_create(&key, at_end) == 0;
    if (arena == NULL) {
        arena = left != NULL ? left : calloc(1, sizeof *arena);
        left = NULL;
        pthread_setspecific(key, arena);
    }
    if (arena == NULL || room > ARENA - 16 - arena->used)
        return base_malloc(ctx, size);
    size_t begin = (16 - (uintptr_t)arena->bytes % 16) % 16 + arena->used;
    arena->used += room;
    void *p = base_finish(arena->bytes + begin, size);
    memset((char *)p - 8, 1, 1); /* says that libc knows nothing of it */
    return p;
}
static void arena_free(void *ctx, void *p, size_t size)
{
    if (p == NULL || base_size(p) > 512 || ((char *)p)[-8] != 1)
        base_free(ctx, p, size);
}
static void *arena_realloc(void *ctx, void *p, size_t size)
{
    void *moved = moved_to(base_malloc(ctx, size), p, size);
    if (moved != NULL)
        memset((char *)moved - 8, 0, 1), arena_free(ctx, p, 0);
    return moved;
}
static void *wiping_malloc(void *ctx, size_t size)
{
    void *p = arena_malloc(ctx, size, wipe);
    if (p != NULL && size > 512)
        memset((char *)p - 8, 0, 1);
    return p;
}
static void *reusing_malloc(void *ctx, size_t size)
{
    void *p = arena_malloc(ctx, size, hand_on);
    if (p != NULL && size > 512)
        memset((char *)p - 8, 0, 1);
    return p;
}
MUTANT(thread_takes_its_blocks_along, "threads.outlives-its-thread", .malloc = wiping_malloc,
       .realloc = arena_realloc, .free = arena_free);
MUTANT(thread_leaves_its_blocks_to_the_next, "threads.outlives-its-thread",
       .malloc = reusing_malloc, .realloc = arena_realloc, .free = arena_free);

/* ---- the GIL ----------------------------------------------------------------------------- */

void *PyMem_Malloc(size_t size) __attribute__((weak));
void *PyMem_Realloc(void *p, size_t size) __attribute__((weak));
void PyMem_Free(void *p) __attribute__((weak));
static void *pymem_malloc(void *ctx, size_t size)
{
    (void)ctx;
    if (size > PTRDIFF_MAX - BASE_HEADER)
        return NULL;
    return base_finish(PyMem_Malloc(size + BASE_HEADER), size);
}
static void *pymem_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : pymem_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void *pymem_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    if (size > PTRDIFF_MAX - BASE_HEADER)
        return NULL;
    return base_finish(
        PyMem_Realloc(p != NULL ? (char *)p - BASE_HEADER : NULL, size + BASE_HEADER), size);
}
static void pymem_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    if (p != NULL)
        PyMem_Free((char *)p - BASE_HEADER);
}
MUTANT(all_by_pymem, "threads.no-gil-needed realloc.without-gil", .malloc = pymem_malloc,
       .calloc = pymem_calloc, .realloc = pymem_realloc, .free = pymem_free);

/* Only where it has nothing to give. */
void *PyErr_NoMemory(void) __attribute__((weak));
static void *raising_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    return p == NULL && PyErr_NoMemory != NULL ? PyErr_NoMemory() : p;
}
MUTANT(failure_raises_without_the_gil, "threads.no-gil-needed", .malloc = raising_malloc);
