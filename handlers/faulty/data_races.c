/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants with a data race that only a tool finds: it does harm once in a million calls, or with
 * another compiler.  tests/data_races.py compiles this file with -fsanitize=thread as well.
 */
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
HOOK_BEFORE(malloc, asking, true, *asked += size);
MUTANT_GETTER(counts_on_the_heap_without_lock, "threads.no-data-race")
{
    static PyDataMem_Handler handler =
        HANDLER(counts_on_the_heap_without_lock, base, FUNCTIONS(asking, malloc));
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
    LOCK(lock);
    made = 16;
    table = &made;
}
DEFECT(malloc, checks_twice_without_atomics, "threads.no-data-race")
{
    if (table == NULL)
        make_table();
    return base_malloc(ctx, size + *table);
}
