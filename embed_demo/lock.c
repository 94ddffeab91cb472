/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A list of all locks, and what fork does with it.
 */
#include "lock.h"

#include <stddef.h>

static struct lock *all;
static pthread_mutex_t all_mutex = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void)
{
    pthread_mutex_lock(&all_mutex);
    for (struct lock *lock = all; lock != NULL; lock = lock->next)
        lock_take(lock);
}

static void after_fork(void)
{
    for (struct lock *lock = all; lock != NULL; lock = lock->next)
        lock_give(lock);
    pthread_mutex_unlock(&all_mutex);
}

static void at_fork(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

/* The link that leads to `lock`, or the one at the end of the list. */
static struct lock **find(const struct lock *lock)
{
    struct lock **link = &all;
    while (*link != NULL && *link != lock)
        link = &(*link)->next;
    return link;
}

void lock_open(struct lock *lock)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, at_fork);
    pthread_mutex_init(&lock->mutex, NULL);
    lock->next = NULL;
    pthread_mutex_lock(&all_mutex);
    *find(NULL) = lock;
    pthread_mutex_unlock(&all_mutex);
}

void lock_close(struct lock *lock)
{
    pthread_mutex_lock(&all_mutex);
    *find(lock) = lock->next;
    pthread_mutex_unlock(&all_mutex);
    pthread_mutex_destroy(&lock->mutex);
}

void lock_take(struct lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
}

void lock_give(struct lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
}
