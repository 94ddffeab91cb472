/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that numpy.without-gil finds, in a Python without GIL only: a list of free blocks that is
 * safe while the GIL serializes its callers.
 */
#include <pthread.h>

#include "mutant.h"
#include "python.h"

enum { LISTED = 256 };
static struct listed {
    struct listed *next;
} * first;

FUNCTION(malloc, list)
{
    struct listed *block = first;
    if (size > LISTED - BASE_HEADER)
        return base_malloc(NULL, size);
    if (block == NULL)
        return base_finish(malloc(LISTED), size);
    first = block->next;
    return base_finish(block, size);
}
FUNCTION(free, list)
{
    if (p == NULL || base_size(p) > LISTED - BASE_HEADER) {
        base_free(NULL, p, 0);
        return;
    }
    struct listed *block = (struct listed *)((char *)p - BASE_HEADER);
    block->next = first;
    first = block;
}
DERIVE_REALLOC(list, base_size);

/* Calls these functions between two statements. */
#define LISTING(defect, LOCK, UNLOCK)                                                              \
    FUNCTION(malloc, defect)                                                                       \
    {                                                                                              \
        LOCK;                                                                                      \
        void *p = list_malloc(ctx, size);                                                          \
        UNLOCK;                                                                                    \
        return p;                                                                                  \
    }                                                                                              \
    FUNCTION(realloc, defect)                                                                      \
    {                                                                                              \
        LOCK;                                                                                      \
        p = list_realloc(ctx, p, size);                                                            \
        UNLOCK;                                                                                    \
        return p;                                                                                  \
    }                                                                                              \
    FUNCTION(free, defect)                                                                         \
    {                                                                                              \
        LOCK;                                                                                      \
        list_free(ctx, p, size);                                                                   \
        UNLOCK;                                                                                    \
    }                                                                                              \
    DERIVE_CALLOC(defect);                                                                         \
    MUTANT(defect, "numpy.without-gil", FUNCTIONS(defect))

/* Uses the GIL as its lock. */
static int take_gil(void)
{
    return is_python_up() ? PyGILState_Ensure() : -1;
}
static void release_gil(int state)
{
    if (state >= 0)
        PyGILState_Release(state);
}
LISTING(locks_by_the_gil, int state = take_gil(), release_gil(state));

/* Takes a lock only in threads that do not hold the GIL. */
static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;
static bool lock_without_gil(void)
{
    bool locks = !has_gil();
    if (locks)
        pthread_mutex_lock(&own_lock);
    return locks;
}
static void unlock(bool locked)
{
    if (locked)
        pthread_mutex_unlock(&own_lock);
}
LISTING(locks_where_the_gil_is_not_held, bool locked = lock_without_gil(), unlock(locked));
