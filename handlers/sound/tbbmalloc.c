/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A sound handler over oneTBB's malloc.  The library that defines malloc itself is another one
 * (tbbmalloc_proxy), so nothing else in the program changes.
 *
 * It has no fork handlers, and a child would wait for ever for what another thread held: so a fork
 * waits until nobody is inside.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* a lock that prefers writers */
#endif
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <tbb/scalable_allocator.h>

#include "nep49.h"

/* Calls share it, and a fork has it for itself, next in line however many calls there are. */
#define UNUSED_LOCK PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP
static pthread_rwlock_t inside = UNUSED_LOCK;

static void before_fork(void)
{
    pthread_rwlock_wrlock(&inside);
}

static void after_fork_in_parent(void)
{
    pthread_rwlock_unlock(&inside);
}

/* The thread that took it has another number here, and could not give it back. */
static void after_fork_in_child(void)
{
    inside = (pthread_rwlock_t)UNUSED_LOCK;
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static void *tbb_realloc(void *ctx, void *ptr, size_t new_size)
{
    (void)ctx;
    if (new_size > PTRDIFF_MAX)
        return NULL;
    pthread_rwlock_rdlock(&inside);
    /* of size 0 it frees, and the caller would then own nothing */
    void *moved = scalable_realloc(ptr, new_size + (new_size == 0));
    pthread_rwlock_unlock(&inside);
    return moved;
}

static void *tbb_malloc(void *ctx, size_t size)
{
    return tbb_realloc(ctx, NULL, size);
}

static void *tbb_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;

    (void)ctx;
    if (__builtin_mul_overflow(nelem, elsize, &size) || size > PTRDIFF_MAX)
        return NULL;
    pthread_rwlock_rdlock(&inside);
    void *p = scalable_calloc(1, size);
    pthread_rwlock_unlock(&inside);
    return p;
}

static void tbb_free(void *ctx, void *ptr, size_t size)
{
    int saved = errno;

    (void)ctx;
    (void)size;
    pthread_rwlock_rdlock(&inside);
    scalable_free(ptr);
    pthread_rwlock_unlock(&inside);
    errno = saved;
}

NEP49_EXPORT PyDataMem_Handler nep49_handler = {
    .name = "tbbmalloc",
    .version = 1,
    .allocator = {NULL, tbb_malloc, tbb_calloc, tbb_realloc, tbb_free},
};
