/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants with a data race that only a tool finds: it does harm once in a million calls, or with
 * another compiler.  tests/data_races.py compiles this file with -fsanitize=thread as well.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "mutant.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- counters -------------------------------------------------------------------------------- */

BEFORE(malloc, counts_without_lock, "threads.no-data-race", true, static size_t calls; calls++);

BEFORE(malloc, notes_the_largest_without_lock, "threads.no-data-race",
       size >= MIB && size < PTRDIFF_MAX / 2, static size_t largest;
       if (size > largest) largest = size);

/* The statistics are written under the lock and read without it. */
static size_t live, most_live;
FUNCTION(malloc, live)
{
    pthread_mutex_lock(&lock);
    live++;
    pthread_mutex_unlock(&lock);
    return base_malloc(ctx, size);
}
FUNCTION(free, live)
{
    static _Thread_local size_t seen;
    seen = live > seen ? live : seen;
    pthread_mutex_lock(&lock);
    live--;
    most_live = seen > most_live ? seen : most_live;
    pthread_mutex_unlock(&lock);
    base_free(ctx, p, size);
}
MUTANT(reads_statistics_without_lock, "threads.no-data-race", FUNCTIONS(live, malloc, free));

/* The counter is in memory of the heap. */
static size_t *asked;
FUNCTION(malloc, asking)
{
    *asked += size;
    return base_malloc(ctx, size);
}
MUTANT_GETTER(counts_on_the_heap_without_lock, "threads.no-data-race")
{
    static PyDataMem_Handler handler = {.name = "counts_on_the_heap_without_lock",
                                        .version = 1,
                                        .allocator = {FUNCTIONS(base), FUNCTIONS(asking, malloc)}};
    if (asked == NULL)
        asked = calloc(1, sizeof *asked);
    *why = "there is no memory";
    return asked != NULL ? &handler : NULL;
}

/* ---- initialization -------------------------------------------------------------------------- */

DEFECT(malloc, is_made_ready_without_lock, "threads.no-data-race")
{
    static size_t page;
    if (page == 0)
        page = (size_t)sysconf(_SC_PAGESIZE);
    return base_malloc(ctx, size < page ? size : size + 1);
}

/* The pointer is read without the lock that it is written with. */
static size_t *table;
static void make_table(void)
{
    static size_t made;
    pthread_mutex_lock(&lock);
    if (table == NULL) {
        made = 16;
        table = &made;
    }
    pthread_mutex_unlock(&lock);
}
DEFECT(malloc, checks_twice_without_atomics, "threads.no-data-race")
{
    if (table == NULL)
        make_table();
    return base_malloc(ctx, size + *table);
}

/* ---- a list and a cell ----------------------------------------------------------------------- */

/* Two classes, with a list each.  free counts the blocks of the second one after the lock. */
enum { CLASSES = 2, CELL = 120 };
struct cell {
    struct cell *next;
};
static struct cell *cells[CLASSES];
static size_t listed[CLASSES];
static size_t class_of(size_t size)
{
    return (size + BASE_HEADER - 1) / CELL;
}
FUNCTION(malloc, class)
{
    size_t class = class_of(size);
    if (class >= CLASSES)
        return base_malloc(ctx, size);
    pthread_mutex_lock(&lock);
    struct cell *cell = cells[class];
    if (cell != NULL) {
        cells[class] = cell->next;
        listed[class]--;
    }
    pthread_mutex_unlock(&lock);
    return base_finish(cell != NULL ? cell : malloc((class + 1) * CELL), size);
}
FUNCTION(free, class)
{
    size_t class = p != NULL ? class_of(base_size(p)) : CLASSES;
    if (class >= CLASSES)
        return base_free(ctx, p, size);
    struct cell *cell = (struct cell *)((char *)p - BASE_HEADER);
    pthread_mutex_lock(&lock);
    cell->next = cells[class];
    cells[class] = cell;
    if (class == 0)
        listed[class]++;
    pthread_mutex_unlock(&lock);
    if (class != 0)
        listed[class]++;
}
MUTANT_DERIVED(one_class_is_counted_without_lock, "threads.no-data-race", class);

/* A flag in the place of a lock is read and then set.  What it protects is atomic, so that nothing
 * else fails. */
static volatile bool is_taken;
static void *_Atomic kept;
static void *exchange(void *raw)
{
    is_taken = true;
    raw = atomic_exchange(&kept, raw);
    is_taken = false;
    return raw;
}
FUNCTION(malloc, flagged)
{
    void *raw = size == CELL && !is_taken ? exchange(NULL) : NULL;
    return raw != NULL ? base_finish(raw, size) : base_malloc(ctx, size);
}
FUNCTION(free, flagged)
{
    if (p == NULL || base_size(p) != CELL || is_taken)
        return base_free(ctx, p, size);
    free(exchange((char *)p - BASE_HEADER));
}
MUTANT(flag_is_tested_and_set, "threads.no-data-race", FUNCTIONS(flagged, malloc, free));
