/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sound handlers with unusual locks: a thread that holds one may be stopped at any moment.
 */
#include <signal.h>
#include <stdatomic.h>

#include "base.h"

/* The cell that the next small request gets. */
enum { CELL = 256 - BASE_HEADER };
static void *kept;

#define LOCKED(name)                                                                               \
    FUNCTION(malloc, name)                                                                         \
    {                                                                                              \
        name##_lock();                                                                             \
        void *p = size <= CELL ? kept : NULL;                                                      \
        kept = p != NULL ? NULL : kept;                                                            \
        name##_unlock();                                                                           \
        if (p == NULL)                                                                             \
            p = base_malloc(ctx, size > CELL ? size : CELL);                                       \
        return p != NULL ? base_resize(p, size) : NULL;                                            \
    }                                                                                              \
    FUNCTION(free, name)                                                                           \
    {                                                                                              \
        if (p == NULL)                                                                             \
            return;                                                                                \
        name##_lock();                                                                             \
        bool is_kept = kept == NULL && base_size(p) <= CELL;                                       \
        kept = is_kept ? p : kept;                                                                 \
        name##_unlock();                                                                           \
        base_free(ctx, is_kept ? NULL : p, size);                                                  \
    }                                                                                              \
    DERIVE(name);                                                                                  \
    SOUND(name, FUNCTIONS(name))

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

/* No signal handler that allocates can interrupt the thread that holds the lock. */
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

/* A thread without the GIL takes it first, as callbacks of ctypes do.  The lock alone serves a
 * process without Python, and a forked child, in which the thread that holds the GIL may be gone.
 */
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

/* No other thread holds a lock at a fork. */
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
