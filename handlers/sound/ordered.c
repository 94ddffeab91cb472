/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sound handlers whose threads share data by atomics: each is the right form of a mutant in
 * ../faulty/data_races.c.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "base.h"

/* ---- counters ----------------------------------------------------------------------------- */

static atomic_size_t live, most_live;
FUNCTION(malloc, counted)
{
    size_t now = atomic_fetch_add_explicit(&live, 1, memory_order_relaxed) + 1;
    size_t most = atomic_load_explicit(&most_live, memory_order_relaxed);
    while (now > most && !atomic_compare_exchange_weak(&most_live, &most, now))
        continue;
    return base_malloc(ctx, size);
}
FUNCTION(free, counted)
{
    if (p != NULL)
        atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    base_free(ctx, p, size);
}
SOUND(counts_by_atomics, FUNCTIONS(counted, malloc, free));

/* ---- what is made once --------------------------------------------------------------------- */

struct table {
    size_t grain;
    struct table *before;
};
static _Atomic(struct table *) table;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const struct table *table_of_all(void)
{
    static struct table made;
    struct table *is = atomic_load_explicit(&table, memory_order_acquire);
    if (is != NULL)
        return is;
    LOCK(lock);
    if (atomic_load_explicit(&table, memory_order_relaxed) == NULL) {
        made.grain = 16;
        atomic_store_explicit(&table, &made, memory_order_release);
    }
    return &made;
}
FUNCTION(malloc, twice_checked)
{
    if (size > PTRDIFF_MAX - BASE_HEADER)
        return NULL;
    return base_finish(malloc(size + table_of_all()->grain), size);
}
SOUND(checks_twice_by_acquire, FUNCTIONS(twice_checked, malloc));

/* The table is read without a lock and replaced now and then; old ones stay. */
enum { NEW_ONE = 64, MOST_NEW = 100 };
static _Atomic(struct table *) published;
static void publish(size_t number)
{
    struct table *made = malloc(sizeof *made);
    if (made == NULL)
        return;
    made->grain = 16 + 16 * (number % 2);
    made->before = atomic_load_explicit(&published, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&published, &made->before, made,
                                                  memory_order_acq_rel, memory_order_relaxed))
        continue;
}
FUNCTION(malloc, published)
{
    static atomic_size_t calls;
    size_t number = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    if (number % NEW_ONE == 0 && number / NEW_ONE < MOST_NEW)
        publish(number / NEW_ONE);
    const struct table *now = atomic_load_explicit(&published, memory_order_acquire);
    size_t grain = now != NULL ? now->grain : 16;
    if (size > PTRDIFF_MAX - 2 * BASE_HEADER)
        return NULL;
    return base_finish(malloc(size + grain), size);
}
SOUND(publishes_what_is_read, FUNCTIONS(published, malloc));

/* ---- caches of threads ---------------------------------------------------------------------- */

/* A thread frees a cell to its owner, which takes all such cells at once.  A thread that ends
 * leaves its place to the next one; a thread without a place uses libc. */
enum { PLACES = 32, CELL = 240 };
struct cell {
    struct cell *next;
    struct place *owner; /* NULL: libc's */
    size_t size;
};
_Static_assert(sizeof(struct cell) <= 2 * BASE_HEADER, "what follows it is aligned");
static struct place {
    atomic_bool taken;
    struct cell *own;
    _Atomic(struct cell *) from_others;
} places[PLACES];
static pthread_key_t key;
static _Thread_local struct place *mine;
static _Thread_local bool asked;

static void leave_place(void *place)
{
    mine = NULL;
    atomic_store_explicit(&((struct place *)place)->taken, false, memory_order_release);
}
__attribute__((constructor)) static void make_key(void)
{
    pthread_key_create(&key, leave_place);
}
static struct place *own_place(void)
{
    for (size_t i = 0; i < PLACES && mine == NULL && !asked; i++) {
        if (!atomic_exchange_explicit(&places[i].taken, true, memory_order_acquire))
            mine = &places[i];
    }
    if (!asked && mine != NULL)
        pthread_setspecific(key, mine);
    asked = true;
    return mine;
}

static struct cell *cell_of(void *p)
{
    return (struct cell *)((char *)p - 2 * BASE_HEADER);
}
static void *given(struct cell *cell, struct place *owner, size_t size)
{
    if (cell == NULL)
        return NULL;
    cell->owner = owner;
    cell->size = size;
    return (char *)cell + 2 * BASE_HEADER;
}
FUNCTION(malloc, handing)
{
    struct place *place = size <= CELL ? own_place() : NULL;
    if (size > PTRDIFF_MAX - 2 * BASE_HEADER)
        return NULL;
    if (place == NULL)
        return given(nep49_advise(malloc(size + 2 * BASE_HEADER), size), NULL, size);
    if (place->own == NULL)
        place->own = atomic_exchange_explicit(&place->from_others, NULL, memory_order_acquire);
    struct cell *cell = place->own;
    if (cell != NULL)
        place->own = cell->next;
    return given(cell != NULL ? cell : malloc(CELL + 2 * BASE_HEADER), place, size);
}
FUNCTION(free, handing)
{
    struct cell *cell = p != NULL ? cell_of(p) : NULL;
    struct place *owner = cell != NULL ? cell->owner : NULL;
    int saved = errno;
    if (owner == NULL) {
        free(cell);
    } else if (owner == mine) {
        cell->next = owner->own;
        owner->own = cell;
    } else {
        cell->next = atomic_load_explicit(&owner->from_others, memory_order_relaxed);
        while (!atomic_compare_exchange_weak_explicit(&owner->from_others, &cell->next, cell,
                                                      memory_order_release, memory_order_relaxed))
            continue;
    }
    errno = saved;
}
DERIVE_CALLOC(handing);
#define handed_size(p) (cell_of(p)->size)
DERIVE_REALLOC(handing, handed_size);
SOUND(hands_over_by_atomics, FUNCTIONS(handing));
