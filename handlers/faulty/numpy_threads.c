/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that numpy.without-gil catches: a list of free blocks that is safe as long as the GIL is
 * a lock.  They are sound in a Python that has one, and killed in those without alone.
 */
#include "meddle.h"

#include <pthread.h>

enum { LISTED = 256 };
static struct listed {
    struct listed *next;
} * first;

static void *list_malloc(size_t size)
{
    struct listed *block = first;
    if (size > LISTED - BASE_HEADER)
        return base_malloc(NULL, size);
    if (block == NULL)
        return base_finish(malloc(LISTED), size);
    first = block->next;
    return base_finish(block, size);
}

static void list_free(void *p)
{
    if (p == NULL || base_size(p) > LISTED - BASE_HEADER) {
        base_free(NULL, p, 0);
        return;
    }
    struct listed *block = (struct listed *)((char *)p - BASE_HEADER);
    block->next = first;
    first = block;
}

static void *list_realloc(void *p, size_t size)
{
    void *moved = list_malloc(size);
    if (p != NULL && moved != NULL) {
        memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
        list_free(p);
    }
    return moved;
}

/* A handler whose functions do so between LOCK and UNLOCK. */
#define LISTING(name, LOCK, UNLOCK)                                                                \
    static void *name##_malloc(void *ctx, size_t size)                                             \
    {                                                                                              \
        (void)ctx;                                                                                 \
        LOCK;                                                                                      \
        void *p = list_malloc(size);                                                               \
        UNLOCK;                                                                                    \
        return p;                                                                                  \
    }                                                                                              \
    static void *name##_calloc(void *ctx, size_t nelem, size_t elsize)                             \
    {                                                                                              \
        size_t size;                                                                               \
        bool fits = !__builtin_mul_overflow(nelem, elsize, &size) && size <= LISTED - BASE_HEADER; \
        void *p = fits ? name##_malloc(ctx, size) : NULL;                                          \
        return !fits ? base_calloc(ctx, nelem, elsize) : p != NULL ? memset(p, 0, size) : NULL;    \
    }                                                                                              \
    static void *name##_realloc(void *ctx, void *p, size_t size)                                   \
    {                                                                                              \
        (void)ctx;                                                                                 \
        LOCK;                                                                                      \
        p = list_realloc(p, size);                                                                 \
        UNLOCK;                                                                                    \
        return p;                                                                                  \
    }                                                                                              \
    static void name##_free(void *ctx, void *p, size_t size)                                       \
    {                                                                                              \
        (void)ctx, (void)size;                                                                     \
        LOCK;                                                                                      \
        list_free(p);                                                                              \
        UNLOCK;                                                                                    \
    }                                                                                              \
    MUTANT(name, "numpy.without-gil", .malloc = name##_malloc, .calloc = name##_calloc,            \
           .realloc = name##_realloc, .free = name##_free)

/* The GIL is the lock. */
static int take_gil(void)
{
    int (*is_up)(void) = PYTHON(int (*)(void), "Py_IsInitialized");
    bool has_one = is_up != NULL && is_up();
    return has_one ? PYTHON(int (*)(void), "PyGILState_Ensure")() : -1;
}

static void give_gil_back(int state)
{
    if (state >= 0)
        PYTHON(void (*)(int), "PyGILState_Release")(state);
}
LISTING(locks_by_the_gil, int state = take_gil(), give_gil_back(state));

/* A lock of its own, for the threads alone that have not got the GIL.  With the GIL it is safe
 * beside others of its kind, and not beside realloc without: that is for others to find. */
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
