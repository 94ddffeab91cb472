/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/threads.c catch.
 */
#include <semaphore.h>
#include <unistd.h>

#include "mutant.h"
#include "python.h"

/* ---- the first call -------------------------------------------------------------------------- */

/* Only malloc makes the data of a thread.  The thread that loads the handler has some already. */
static _Thread_local size_t *calls;
static __attribute__((constructor)) void make_data_of_the_first(void)
{
    static size_t of_the_first;
    calls = &of_the_first;
}
HOOK_BEFORE(malloc, making, calls == NULL, calls = calloc(1, sizeof *calls));
#define making_calloc base_calloc
#define making_realloc base_realloc
#define making_free base_free
BEFORE_IN(making, calloc, thread_that_callocs_first_crashes, "threads.first-call", true, ++*calls);
BEFORE_IN(making, realloc, thread_that_reallocs_first_crashes, "threads.first-call", true,
          ++*calls);
BEFORE_IN(making, free, thread_that_frees_first_crashes,
          "threads.first-call free.in-another-thread", true, ++*calls);

/* ---- many threads ---------------------------------------------------------------------------- */

BEFORE(malloc, thread_number_six_is_refused, "threads.first-call", THREAD_NUMBER > 5, return NULL);
BEFORE(malloc, thread_number_1025_is_refused, "threads.any-number", THREAD_NUMBER > 1024,
       return NULL);

FUNCTION_RETURNS(malloc, few, THREAD_NUMBER <= 128 ? base_malloc(ctx, size) : NULL);
DERIVE_CALLOC(few);
MUTANT(thread_number_129_is_refused, "threads.any-number", FUNCTIONS(few, malloc, calloc));

BEFORE(realloc, thread_number_201_loses_contents, "threads.any-number",
       THREAD_NUMBER > 200 && p != NULL && base_size(p) > 64 && base_size(p) < size,
       return move(ctx, p, size, 64));

/* How many threads there were when the calling one came, with this one. */
static _Atomic int threads_there;
static pthread_key_t there_key;
static _Thread_local void *own_place; /* of threads_beyond_64_share_a_place */
static void leave(UNUSED void *data)
{
    threads_there--;
    free(own_place);
    own_place = NULL;
}
__attribute__((constructor)) static void make_there_key(void)
{
    pthread_key_create(&there_key, leave);
}
static int came_as(void)
{
    static _Thread_local int number;
    if (number == 0) {
        number = ++threads_there;
        pthread_setspecific(there_key, &there_key);
    }
    return number;
}
BEFORE(malloc, thread_257_at_once_is_refused, "threads.any-number", came_as() > 256, return NULL);

/* The header of a block has another word. */
FUNCTION(malloc, wide)
{
    enum { WORD = 8 };
    if (came_as() <= 64 || size > PTRDIFF_MAX - WORD)
        return base_malloc(ctx, size);
    char *p = base_malloc(ctx, size + WORD);
    return p != NULL ? base_finish(p - BASE_HEADER + WORD, size) : NULL;
}
FUNCTION_RETURNS(free, wide,
                 base_free(ctx, p != NULL ? (char *)p - (uintptr_t)p % 16 : NULL, size));
DERIVE_REALLOC(wide, base_size);
MUTANT(thread_65_at_once_is_misaligned, "threads.any-number",
       FUNCTIONS(wide, malloc, realloc, free));

/* From the 64th on the threads have one place for a freed block. */
static void *shared_place;
static void **place(void)
{
    return came_as() < 64 ? &own_place : &shared_place;
}
FUNCTION(calloc, placed)
{
    void **at = place(), *kept = *at;
    if (nelem > 256 || elsize != 1 || kept == NULL)
        return base_calloc(ctx, nelem, elsize);
    memset((char *)kept + BASE_HEADER, 0, nelem);
    usleep(1);
    *at = NULL;
    return base_finish(kept, nelem);
}
FUNCTION(free, placed)
{
    void **at = place();
    if (p != NULL && base_size(p) >= 64 && base_size(p) <= 264 && *at == NULL)
        *at = realloc((char *)p - BASE_HEADER, 512);
    else
        base_free(ctx, p, size);
}
MUTANT(threads_beyond_64_share_a_place, "threads.any-number", FUNCTIONS(placed, calloc, free));

/* ---- a list of free cells -------------------------------------------------------------------- */

enum { CELL = 256 };
struct node {
    struct node *next;
};
static struct node *listed;
static bool is_cell(size_t size)
{
    return size <= CELL - BASE_HEADER;
}
static bool is_in_cell(const void *p)
{
    return p != NULL && is_cell(base_size(p));
}
static void *take(struct node **list, size_t size)
{
    struct node *node = *list;
    if (node != NULL)
        *list = node->next;
    return base_finish(node != NULL ? (void *)node : malloc(CELL), size);
}
static void give(struct node **list, void *p)
{
    struct node *node = (struct node *)((char *)p - BASE_HEADER);
    node->next = *list;
    *list = node;
}

FUNCTION_RETURNS(malloc, unlocked, is_cell(size) ? take(&listed, size) : base_malloc(ctx, size));
FUNCTION_RETURNS(free, unlocked, is_in_cell(p) ? give(&listed, p) : base_free(ctx, p, size));
MUTANT_DERIVED(threads_share_a_list_without_lock, "threads.concurrent", unlocked);

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
LOCKED(malloc, locked, unlocked, guard);
LOCKED(free, locked, unlocked, guard);
DERIVE_CALLOC(locked);

/* realloc takes its cell without the lock. */
#define meeting_malloc unlocked_malloc
#define meeting_free locked_free
DERIVE_REALLOC(meeting, base_size);
MUTANT(threads_meet_in_realloc, "threads.concurrent", FUNCTIONS(locked, malloc, calloc, free),
       FUNCTIONS(meeting, realloc));

/* malloc reads the list, and releases the lock before it takes the first cell. */
FUNCTION(malloc, twice_locked)
{
    if (!is_cell(size))
        return base_malloc(ctx, size);
    pthread_mutex_lock(&guard);
    struct node *first = listed;
    pthread_mutex_unlock(&guard);
    if (first == NULL)
        return base_finish(malloc(CELL), size);
    pthread_mutex_lock(&guard);
    listed = first->next;
    pthread_mutex_unlock(&guard);
    return base_finish(first, size);
}
#define twice_locked_free locked_free
DERIVE_REALLOC(twice_locked, base_size);
MUTANT(threads_lock_twice, "threads.concurrent", FUNCTIONS(locked, calloc, free),
       FUNCTIONS(twice_locked, malloc, realloc));

/* The lock is a semaphore.  A signal interrupts sem_wait, whose result is not checked. */
static sem_t entry;
__attribute__((constructor)) static void open_entry(void)
{
    sem_init(&entry, 0, 1);
}
static void *take_entered(size_t size, bool is_checked)
{
    if (!is_cell(size))
        return base_malloc(NULL, size);
    if (sem_wait(&entry) != 0 && is_checked)
        return NULL;
    void *p = take(&listed, size);
    sem_post(&entry);
    return p;
}
FUNCTION_RETURNS(malloc, entering, take_entered(size, false));
FUNCTION(free, entering)
{
    int saved = errno;
    if (!is_in_cell(p))
        return base_free(ctx, p, size);
    sem_wait(&entry);
    give(&listed, p);
    sem_post(&entry);
    errno = saved;
}
MUTANT_DERIVED(signal_lets_a_thread_in, "threads.concurrent", entering);
RETURNS_IN(entering, malloc, signal_makes_malloc_refuse, "threads.concurrent",
           take_entered(size, true));

/* Each thread has a list without a lock, and a block returns to the list that it came from. */
static _Thread_local struct node *own_list;
FUNCTION_RETURNS(malloc, own,
                 base_set_note(is_cell(size) ? take(&own_list, size) : base_malloc(ctx, size),
                               (size_t)&own_list));
FUNCTION_RETURNS(free, own,
                 is_in_cell(p) ? give((struct node **)base_note(p), p) : base_free(ctx, p, size));
MUTANT_DERIVED(threads_give_back_without_lock, "threads.concurrent", own);

/* The GIL is the lock of the list, which only a Python without GIL makes a defect. */
#define LISTING(defect, LOCK, UNLOCK)                                                              \
    FUNCTION(malloc, defect)                                                                       \
    {                                                                                              \
        LOCK;                                                                                      \
        void *p = unlocked_malloc(ctx, size);                                                      \
        UNLOCK;                                                                                    \
        return p;                                                                                  \
    }                                                                                              \
    FUNCTION(realloc, defect)                                                                      \
    {                                                                                              \
        LOCK;                                                                                      \
        p = unlocked_realloc(ctx, p, size);                                                        \
        UNLOCK;                                                                                    \
        return p;                                                                                  \
    }                                                                                              \
    FUNCTION(free, defect)                                                                         \
    {                                                                                              \
        LOCK;                                                                                      \
        unlocked_free(ctx, p, size);                                                               \
        UNLOCK;                                                                                    \
    }                                                                                              \
    DERIVE_CALLOC(defect);                                                                         \
    MUTANT(defect, "numpy.without-gil", FUNCTIONS(defect))
LISTING(locks_by_the_gil, int state = is_python_up() ? PyGILState_Ensure() : -1,
        if (state >= 0) PyGILState_Release(state));
/* Takes a lock only in threads that do not hold the GIL. */
LISTING(locks_where_the_gil_is_not_held, bool locks = !has_gil();
        if (locks) pthread_mutex_lock(&guard), if (locks) pthread_mutex_unlock(&guard));

/* ---- after the thread ------------------------------------------------------------------------ */

/* The small blocks of a thread are in its arena, which ends with the thread.  The note of a block
 * is true if it is in an arena. */
enum { ARENA = 1 << 16, ARENA_MOST = 512 };
struct arena {
    _Alignas(16) size_t used;
    _Alignas(16) char bytes[ARENA];
};
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
static pthread_key_t wipe_key, hand_on_key;
__attribute__((constructor)) static void make_arena_keys(void)
{
    pthread_key_create(&wipe_key, wipe);
    pthread_key_create(&hand_on_key, hand_on);
}
static void *arena_take(size_t size, pthread_key_t key)
{
    struct arena *arena = pthread_getspecific(key);
    size_t taken = (size + BASE_HEADER + 15) / 16 * 16;
    if (size <= ARENA_MOST && arena == NULL) {
        arena = left != NULL ? left : calloc(1, sizeof *arena);
        left = NULL;
        pthread_setspecific(key, arena);
    }
    if (size > ARENA_MOST || arena == NULL || taken > ARENA - arena->used)
        return base_set_note(base_malloc(NULL, size), false);
    arena->used += taken;
    return base_set_note(base_finish(arena->bytes + arena->used - taken, size), true);
}
FUNCTION_RETURNS(malloc, settled, base_set_note(base_malloc(ctx, size), false));
FUNCTION_FREES(settled, p == NULL || base_note(p) == false);
DERIVE(settled);
RETURNS_IN(settled, malloc, thread_takes_its_blocks_along, "threads.outlives-its-thread",
           arena_take(size, wipe_key));
RETURNS_IN(settled, malloc, thread_leaves_its_blocks_to_the_next, "threads.outlives-its-thread",
           arena_take(size, hand_on_key));

/* ---- the GIL --------------------------------------------------------------------------------- */

FUNCTION_RETURNS(malloc, pymem,
                 size <= PTRDIFF_MAX - BASE_HEADER
                     ? base_finish(PyMem_Malloc(size + BASE_HEADER), size)
                     : NULL);
FUNCTION(free, pymem)
{
    if (p != NULL)
        PyMem_Free((char *)p - BASE_HEADER);
}
MUTANT_DERIVED(all_by_pymem, "threads.no-gil-needed", pymem);

AFTER(malloc, failure_raises_without_the_gil, "threads.no-gil-needed",
      made == NULL && PyErr_NoMemory != NULL, made = PyErr_NoMemory());

/* ---- races that are N instructions wide ------------------------------------------------------ */

/* Executes that many instructions that do nothing. */
#define WINDOW(instructions)                                                                       \
    __asm__ volatile(".rept " #instructions "\n\tnop\n\t.endr" ::: "memory")

/* One block lies in a buffer.  A flag that says whether it is in use is read first and set later.
 */
static _Alignas(16) char spare[CELL];
static size_t spare_size;
static volatile bool is_busy;
static size_t size_of(const void *p)
{
    return p == spare ? spare_size : base_size(p);
}
FUNCTION_RETURNS(free, flag, p == spare ? (void)(is_busy = false) : base_free(ctx, p, size));
#define FLAG_RACE(n)                                                                               \
    FUNCTION(malloc, flag_##n)                                                                     \
    {                                                                                              \
        if (size > CELL || is_busy)                                                                \
            return base_malloc(ctx, size);                                                         \
        WINDOW(n);                                                                                 \
        is_busy = true;                                                                            \
        spare_size = size;                                                                         \
        return spare;                                                                              \
    }                                                                                              \
    FUNCTION_RETURNS(free, flag_##n, flag_free(ctx, p, size));                                     \
    DERIVE_CALLOC(flag_##n);                                                                       \
    DERIVE_REALLOC(flag_##n, size_of);                                                             \
    MUTANT(race_of_##n##_instructions, "threads.concurrent", FUNCTIONS(flag_##n))

FLAG_RACE(10);
FLAG_RACE(50);
FLAG_RACE(150);
FLAG_RACE(500);

/* A free list by compare and exchange: ABA. */
static struct node *exchanged;
static bool exchange(struct node **expected, struct node *node)
{
    return __atomic_compare_exchange_n(&exchanged, expected, node, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}
FUNCTION(malloc, exchanging)
{
    if (size > CELL - BASE_HEADER)
        return base_malloc(ctx, size);
    struct node *first = __atomic_load_n(&exchanged, __ATOMIC_SEQ_CST);
    while (first != NULL && !exchange(&first, first->next))
        continue;
    return base_finish(first != NULL ? (void *)first : malloc(CELL), size);
}
FUNCTION(free, exchanging)
{
    if (p == NULL || base_size(p) > CELL - BASE_HEADER)
        return base_free(ctx, p, size);
    struct node *node = (struct node *)((char *)p - BASE_HEADER);
    node->next = __atomic_load_n(&exchanged, __ATOMIC_SEQ_CST);
    while (!exchange(&node->next, node))
        continue;
}
MUTANT_DERIVED(list_takes_the_same_first_for_the_same_list, "threads.concurrent", exchanging);
