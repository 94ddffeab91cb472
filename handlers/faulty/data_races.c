/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants with a data race that only a tool sees: it harms once in a million calls, or with the
 * next compiler.  tests/data_races.py compiles this file with -fsanitize=thread as well.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- counters ----------------------------------------------------------------------------- */

static size_t calls, live;
static void *counted_malloc(void *ctx, size_t size)
{
    calls++;
    return base_malloc(ctx, size);
}
MUTANT(counts_without_lock, "threads.no-data-race", .malloc = counted_malloc);

/* Written under the lock, and read without it, for a statistic that need not be exact. */
static void *live_malloc(void *ctx, size_t size)
{
    pthread_mutex_lock(&lock);
    live++;
    pthread_mutex_unlock(&lock);
    return base_malloc(ctx, size);
}
static size_t most_live;
static void live_free(void *ctx, void *p, size_t size)
{
    static _Thread_local size_t seen;
    seen = live > seen ? live : seen;
    pthread_mutex_lock(&lock);
    live--;
    most_live = seen > most_live ? seen : most_live;
    pthread_mutex_unlock(&lock);
    base_free(ctx, p, size);
}
MUTANT(reads_statistics_without_lock, "threads.no-data-race", .malloc = live_malloc,
       .free = live_free);

/* ---- what is made once --------------------------------------------------------------------- */

static size_t page;
static void *lazy_malloc(void *ctx, size_t size)
{
    if (page == 0)
        page = (size_t)sysconf(_SC_PAGESIZE);
    return base_malloc(ctx, size < page ? size : size + 1);
}
MUTANT(is_made_ready_without_lock, "threads.no-data-race", .malloc = lazy_malloc);

struct table {
    size_t grain;
};
static struct table *table;
static void make_table(void)
{
    static struct table made;
    pthread_mutex_lock(&lock);
    if (table == NULL) {
        made.grain = 16;
        table = &made;
    }
    pthread_mutex_unlock(&lock);
}
static void *twice_checked_malloc(void *ctx, size_t size)
{
    if (table == NULL)
        make_table();
    return base_malloc(ctx, size + table->grain);
}
MUTANT(checks_twice_without_atomics, "threads.no-data-race", .malloc = twice_checked_malloc);

/* ---- a list and a cell --------------------------------------------------------------------- */

/* Two size classes with a list under the lock for each; how many are in the second's is counted
 * behind that, where one is given back. */
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
static void *class_malloc(void *ctx, size_t size)
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
static void class_free(void *ctx, void *p, size_t size)
{
    size_t class = p != NULL ? class_of(base_size(p)) : CLASSES;
    if (class >= CLASSES) {
        base_free(ctx, p, size);
        return;
    }
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
static void *class_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : class_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void *class_realloc(void *ctx, void *p, size_t size)
{
    void *moved = class_malloc(ctx, size);
    if (moved != NULL && p != NULL) {
        memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
        class_free(ctx, p, 0);
    }
    return moved;
}
MUTANT(one_class_is_counted_without_lock, "threads.no-data-race", .malloc = class_malloc,
       .calloc = class_calloc, .realloc = class_realloc, .free = class_free);

/* A flag in the place of a lock: tested, and then set.  What it stands for is atomic, so that
 * nothing else comes of it. */
static volatile bool taken;
static void *_Atomic kept;
static void *flagged_malloc(void *ctx, size_t size)
{
    void *raw = NULL;
    if (size == CELL && !taken) {
        taken = true;
        raw = atomic_exchange(&kept, NULL);
        taken = false;
    }
    return raw != NULL ? base_finish(raw, size) : base_malloc(ctx, size);
}
static void flagged_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && base_size(p) == CELL && !taken) {
        taken = true;
        void *raw = atomic_exchange(&kept, (char *)p - BASE_HEADER);
        taken = false;
        free(raw);
        return;
    }
    base_free(ctx, p, size);
}
MUTANT(flag_is_tested_and_set, "threads.no-data-race", .malloc = flagged_malloc,
       .free = flagged_free);

/* ---- large blocks alone, and a list ---------------------------------------------------------- */

enum { HUGE_FROM = 1 << 20 };
static size_t largest;
static void *largest_malloc(void *ctx, size_t size)
{
    if (size >= HUGE_FROM && size < PTRDIFF_MAX / 2 && size > largest)
        largest = size;
    return base_malloc(ctx, size);
}
MUTANT(notes_the_largest_without_lock, "threads.no-data-race", .malloc = largest_malloc);

/* Statistics in memory of the handler's own, which whoever loads it has made. */
struct statistics {
    size_t asked;
};
static struct statistics *statistics;
static void *statistical_malloc(void *ctx, size_t size)
{
    statistics->asked += size;
    return base_malloc(ctx, size);
}
MUTANT_GETTER(counts_on_the_heap_without_lock, "threads.no-data-race")
{
    static PyDataMem_Handler handler = {
        .name = "counts_on_the_heap_without_lock",
        .version = 1,
        .allocator = {BASE_FUNCTIONS, .malloc = statistical_malloc}};
    if (statistics == NULL)
        statistics = calloc(1, sizeof *statistics);
    *why = "there is no memory";
    return statistics != NULL ? &handler : NULL;
}

/* Small blocks are put into a list under the lock, and taken from it without: two threads may be
 * given the same, and each overwrites what the other wrote.  The link has a place of its own. */
static void *unlocked_malloc(void *ctx, size_t size)
{
    struct cell *cell = size <= CELL ? cells[0] : NULL;
    if (size > CELL)
        return base_malloc(ctx, size);
    if (cell != NULL)
        cells[0] = cell->next;
    if (cell == NULL)
        cell = malloc(2 * BASE_HEADER + CELL);
    return cell != NULL ? base_finish((char *)cell + BASE_HEADER, size) : NULL;
}
static void *unlocked_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : unlocked_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void unlocked_free(void *ctx, void *p, size_t size)
{
    if (p == NULL || base_size(p) > CELL) {
        base_free(ctx, p, size);
        return;
    }
    struct cell *cell = (struct cell *)((char *)p - 2 * BASE_HEADER);
    pthread_mutex_lock(&lock);
    cell->next = cells[0];
    cells[0] = cell;
    pthread_mutex_unlock(&lock);
}
static void *unlocked_realloc(void *ctx, void *p, size_t size)
{
    void *moved = unlocked_malloc(ctx, size);
    if (moved != NULL && p != NULL) {
        memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
        unlocked_free(ctx, p, 0);
    }
    return moved;
}
MUTANT(takes_from_a_list_without_lock, "threads.no-data-race threads.concurrent",
       .malloc = unlocked_malloc, .calloc = unlocked_calloc, .realloc = unlocked_realloc,
       .free = unlocked_free);
