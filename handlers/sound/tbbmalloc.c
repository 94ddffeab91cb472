/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A sound handler over oneTBB's malloc.  Another library (tbbmalloc_proxy) defines malloc itself,
 * so nothing else in the program changes.
 *
 * oneTBB has no fork handlers, and a child would wait forever for a lock that another thread held.
 * So a fork waits until no thread is inside.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* a lock that prefers writers */
#endif
#include <tbb/scalable_allocator.h>

#include "base.h"

/* Calls share the lock; a fork has it alone and is next in line, however many calls there are. */
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
/* The child's thread has another number than the one that took the lock, and cannot release it. */
static void after_fork_in_child(void)
{
    inside = (pthread_rwlock_t)UNUSED_LOCK;
}
__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

FUNCTION(realloc, tbb)
{
    if (size > PTRDIFF_MAX)
        return NULL;
    pthread_rwlock_rdlock(&inside);
    void *moved = scalable_realloc(p, size + (size == 0)); /* size 0 would free the block */
    pthread_rwlock_unlock(&inside);
    return moved;
}
FUNCTION_RETURNS(malloc, tbb, tbb_realloc(ctx, NULL, size));
FUNCTION(calloc, tbb)
{
    size_t size = product(nelem, elsize);
    if (size > PTRDIFF_MAX)
        return NULL;
    pthread_rwlock_rdlock(&inside);
    void *p = scalable_calloc(1, size);
    pthread_rwlock_unlock(&inside);
    return p;
}
FUNCTION(free, tbb)
{
    int saved = errno;
    pthread_rwlock_rdlock(&inside);
    scalable_free(p);
    pthread_rwlock_unlock(&inside);
    errno = saved;
}

NEP49_EXPORT PyDataMem_Handler nep49_handler = {
    .name = "tbbmalloc", .version = 1, .allocator = {FUNCTIONS(tbb)}};
