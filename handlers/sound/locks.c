/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sound handlers with locks of their own kind: whoever has one may be stopped at any moment.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "base.h"

/* One cell that is kept for the next request, which is what the locks are for. */
enum { CELL = 256 };
static void *kept;

static void *cell_for(size_t size)
{
    void *raw = size <= CELL - BASE_HEADER ? kept : NULL;
    if (raw == NULL)
        return NULL;
    kept = NULL;
    return base_finish(raw, size);
}

static void *made(void *ctx, void *cell, size_t size)
{
    if (cell != NULL)
        return cell;
    return base_malloc(ctx, size > CELL - BASE_HEADER ? size : CELL - BASE_HEADER);
}

static void *sized(void *p, size_t size)
{
    return p != NULL ? base_finish((char *)p - BASE_HEADER, size) : NULL;
}

/* Leaves p with whoever asks next: NULL, or what is to be freed. */
static void *keep(void *p)
{
    if (kept != NULL || base_size(p) > CELL - BASE_HEADER)
        return p;
    kept = (char *)p - BASE_HEADER;
    return NULL;
}

#define LOCKED(name)                                                                               \
    static void *name##_malloc(void *ctx, size_t size)                                             \
    {                                                                                              \
        name##_lock();                                                                             \
        void *cell = cell_for(size);                                                               \
        name##_unlock();                                                                           \
        return sized(made(ctx, cell, size), size);                                                 \
    }                                                                                              \
    static void *name##_calloc(void *ctx, size_t nelem, size_t elsize)                             \
    {                                                                                              \
        size_t size;                                                                               \
        bool fits = !__builtin_mul_overflow(nelem, elsize, &size);                                 \
        void *p = fits ? name##_malloc(ctx, size) : NULL;                                          \
        return p != NULL ? memset(p, 0, size) : NULL;                                              \
    }                                                                                              \
    static void name##_free(void *ctx, void *p, size_t size)                                       \
    {                                                                                              \
        if (p == NULL)                                                                             \
            return;                                                                                \
        name##_lock();                                                                             \
        void *rest = keep(p);                                                                      \
        name##_unlock();                                                                           \
        base_free(ctx, rest, size);                                                                \
    }                                                                                              \
    static void *name##_realloc(void *ctx, void *p, size_t size)                                   \
    {                                                                                              \
        void *moved = name##_malloc(ctx, size);                                                    \
        if (moved != NULL && p != NULL) {                                                          \
            memcpy(moved, p, base_size(p) < size ? base_size(p) : size);                           \
            name##_free(ctx, p, 0);                                                                \
        }                                                                                          \
        return moved;                                                                              \
    }                                                                                              \
    SOUND(name, .malloc = name##_malloc, .calloc = name##_calloc, .realloc = name##_realloc,       \
          .free = name##_free)

/* ---- spinning ---------------------------------------------------------------------------- */

static atomic_flag spun = ATOMIC_FLAG_INIT;
static void spins_lock(void)
{
    while (atomic_flag_test_and_set(&spun))
        continue;
}
static void spins_unlock(void)
{
    atomic_flag_clear(&spun);
}
LOCKED(spins);

/* ---- without signals --------------------------------------------------------------------- */

/* Whoever has the lock cannot be interrupted by a signal handler that allocates. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local sigset_t mask;
static void blocks_signals_lock(void)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_mutex_lock(&lock);
    mask = old;
}
static void blocks_signals_unlock(void)
{
    sigset_t old = mask;
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}
LOCKED(blocks_signals);

/* ---- with the GIL ------------------------------------------------------------------------ */

/* Whoever has none takes it, as callbacks of ctypes do.  The lock comes after it, is held where
 * nobody waits for the GIL, and does where there is no Python, and in a child of fork(), where the
 * thread that has the GIL may be gone. */
int Py_IsInitialized(void) __attribute__((weak));
int PyGILState_Ensure(void) __attribute__((weak));
void PyGILState_Release(int state) __attribute__((weak));
static pthread_mutex_t innermost = PTHREAD_MUTEX_INITIALIZER;
static bool is_child;
static _Thread_local bool has_state;
static _Thread_local int state;
static void takes_the_gil_lock(void)
{
    has_state = !is_child && Py_IsInitialized != NULL && Py_IsInitialized();
    if (has_state)
        state = PyGILState_Ensure();
    pthread_mutex_lock(&innermost);
}
static void takes_the_gil_unlock(void)
{
    bool has = has_state;
    pthread_mutex_unlock(&innermost);
    if (has)
        PyGILState_Release(state);
}
LOCKED(takes_the_gil);

/* A fork must not catch another thread with a lock. */
static void lock_all(void)
{
    spins_lock();
    pthread_mutex_lock(&lock);
    pthread_mutex_lock(&innermost);
}
static void unlock_all(void)
{
    pthread_mutex_unlock(&innermost);
    pthread_mutex_unlock(&lock);
    spins_unlock();
}
static void unlock_all_in_child(void)
{
    is_child = true;
    unlock_all();
}
__attribute__((constructor)) static void guard_locks(void)
{
    pthread_atfork(lock_all, unlock_all, unlock_all_in_child);
}
