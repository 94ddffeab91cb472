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

/* Caches freed blocks, and discards their pages in a call a second later even if malloc returned
 * the block meanwhile. */
enum { DUE_FROM = 200000, DUE_MOST = 8 << 20, DUE_PLACES = 16 };
static struct {
    pthread_mutex_t lock;
    struct due {
        void *p;
        uint64_t at;
        bool is_free;
    } at[DUE_PLACES];
} due = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void give_pages_back(void)
{
    for (struct due *d = due.at; d < due.at + DUE_PLACES; d++) {
        if (d->p == NULL || d->at > now())
            continue;
        uintptr_t from = ((uintptr_t)d->p + 4095) & ~4095ul;
        madvise((void *)from, (base_size(d->p) & ~4095ul) - 4096, MADV_DONTNEED);
        if (d->is_free)
            base_free(NULL, d->p, 0);
        d->p = NULL;
    }
}
FUNCTION(malloc, due)
{
    void *p = NULL;
    pthread_mutex_lock(&due.lock);
    give_pages_back();
    for (struct due *d = due.at; d < due.at + DUE_PLACES && p == NULL; d++) {
        if (d->p != NULL && d->is_free && base_size(d->p) == size) {
            p = d->p;
            d->is_free = false;
        }
    }
    pthread_mutex_unlock(&due.lock);
    return p != NULL ? p : base_malloc(ctx, size);
}
static void forget_due(const void *p)
{
    for (struct due *d = due.at; d < due.at + DUE_PLACES; d++) {
        if (d->p == p)
            d->p = NULL;
    }
}
FUNCTION(free, due)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&due.lock);
    forget_due(p);
    struct due *d = due.at;
    while (d < due.at + DUE_PLACES && d->p != NULL)
        d++;
    bool keeps = d < due.at + DUE_PLACES && base_size(p) >= DUE_FROM && base_size(p) <= DUE_MOST;
    if (keeps)
        *d = (struct due){p, now() + 1000000000u, true};
    pthread_mutex_unlock(&due.lock);
    if (!keeps)
        base_free(ctx, p, size);
}
FUNCTION(realloc, due)
{
    pthread_mutex_lock(&due.lock);
    if (p != NULL)
        forget_due(p);
    pthread_mutex_unlock(&due.lock);
    return base_realloc(ctx, p, size);
}
MUTANT(pages_of_live_blocks_come_due, "free.leaves-recycled-alone",
       FUNCTIONS(due, malloc, realloc, free));
