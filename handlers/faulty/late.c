/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that change freed memory later, even if a block is there again.
 */
#define _GNU_SOURCE

#include <time.h>
#include <unistd.h>

#include "mapped.h"
#include "mutant.h"
#include "slots.h"

/* A thread does the work of free 20 ms later. */
enum { RING = 1 << 16, DELAY = 20000000 };
struct job {
    void *p;
    uint64_t due;
};
static struct {
    pthread_mutex_t lock;
    pid_t pid;
    void (*work)(void *p);
    struct job at[RING];
    size_t first, count;
} jobs = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *run_jobs(void *unused)
{
    for (;;) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        pthread_mutex_lock(&jobs.lock);
        for (; jobs.count > 0 && jobs.at[jobs.first % RING].due < now(); jobs.count--)
            jobs.work(jobs.at[jobs.first++ % RING].p);
        pthread_mutex_unlock(&jobs.lock);
    }
    return unused;
}

static void do_later(void (*work)(void *p), void *p)
{
    pthread_t thread;
    LOCK(jobs.lock);
    if (jobs.pid != getpid()) {
        jobs.pid = getpid();
        jobs.work = work;
        jobs.count = 0;
        if (pthread_create(&thread, NULL, run_jobs, NULL) == 0)
            pthread_detach(thread);
    }
    if (jobs.count < RING)
        jobs.at[(jobs.first + jobs.count++) % RING] = (struct job){p, now() + DELAY};
}

static void poison(void *p)
{
    memset(p, 0xdd, 64);
}
BEFORE_IN(slot, free, free_poisons_20_ms_later, "free.leaves-recycled-alone", is_in_slot(p),
          do_later(poison, p));

/* Caches one mapping, and lets the kernel discard its pages even if it is in use again. */
static void *cold;
static void purge(void *p)
{
    madvise((char *)p - BASE_HEADER + MAPPED_PAGE, MAPPED_FROM - MAPPED_PAGE, MADV_DONTNEED);
}
FUNCTION(malloc, purging)
{
    void *p = is_for_mapping(size) ? swap(&cold, NULL) : NULL;
    if (p != NULL && mapped_length(p) >= pages_for(size))
        return base_resize(p, size);
    mapped_free(ctx, p, 0);
    return mapped_malloc(ctx, size);
}
FUNCTION(free, purging)
{
    if (is_mapped(p)) {
        do_later(purge, p);
        p = swap(&cold, p);
    }
    mapped_free(ctx, p, size);
}
MUTANT(free_purges_20_ms_later, "free.leaves-recycled-alone", FUNCTIONS(mapped),
       FUNCTIONS(purging, malloc, free));

/* ---- pages that come due --------------------------------------------------------------------- */

/* Caches a freed block, and discards its pages in a call a second later even if malloc returned it
 * meanwhile. */
static struct {
    pthread_mutex_t lock;
    void *p;
    uint64_t at;
    bool is_free;
} due = {.lock = PTHREAD_MUTEX_INITIALIZER};

FUNCTION(malloc, due)
{
    LOCK(due.lock);
    if (due.p != NULL && due.at <= now()) {
        uintptr_t from = ((uintptr_t)due.p + 4095) & ~4095ul;
        madvise((void *)from, (base_size(due.p) & ~4095ul) - 4096, MADV_DONTNEED);
        base_free(ctx, due.is_free ? due.p : NULL, 0);
        due.p = NULL;
    }
    if (due.p == NULL || !due.is_free || base_size(due.p) != size)
        return base_malloc(ctx, size);
    due.is_free = false;
    return due.p;
}
FUNCTION(free, due)
{
    LOCK(due.lock);
    due.p = p == due.p ? NULL : due.p;
    if (p == NULL || base_size(p) < 200000 || base_size(p) > 8 << 20 || (due.p && !due.is_free))
        return base_free(ctx, p, size);
    base_free(ctx, due.p, 0);
    due.p = p;
    due.at = now() + 1000000000u;
    due.is_free = true;
}
FUNCTION(realloc, due)
{
    LOCK(due.lock);
    due.p = p == due.p ? NULL : due.p;
    return base_realloc(ctx, p, size);
}
MUTANT(pages_of_live_blocks_come_due, "free.leaves-recycled-alone",
       FUNCTIONS(due, malloc, realloc, free));
