/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that change freed memory later, even if a block is there again.
 */
#define _GNU_SOURCE

#include <time.h>
#include <unistd.h>

#include "mapped.h"
#include "slots.h"

/* A thread does the work of free 20 ms later. */
enum { RING = 1 << 16, DELAY = 20000000 };
static struct job {
    void *p;
    uint64_t due;
} jobs[RING];
static size_t first_job, job_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static void (*job_work)(void *p);
static void *run_jobs(void *unused)
{
    for (;;) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        LOCK(lock);
        for (; job_count > 0 && jobs[first_job % RING].due < now(); job_count--)
            job_work(jobs[first_job++ % RING].p);
    }
    return unused;
}
static void do_later(void (*work)(void *p), void *p)
{
    static pid_t pid;
    LOCK(lock);
    if (pid != getpid()) {
        pid = getpid();
        job_count = 0;
        job_work = work;
        pthread_create(&(pthread_t){0}, NULL, run_jobs, NULL);
    }
    if (job_count < RING)
        jobs[(first_job + job_count++) % RING] = (struct job){p, now() + DELAY};
}

static void poison(void *p)
{
    memset(p, 0xdd, 64);
}
BEFORE_IN(slot, free, free_poisons_20_ms_later, "free.leaves-recycled-alone", is_in_slot(p),
          do_later(poison, p));

/* Lets the kernel discard the pages of a kept mapping even if it is in use again. */
static void purge(void *p)
{
    madvise(mapping_of(p) + MAPPED_PAGE, MAPPED_FROM - MAPPED_PAGE, MADV_DONTNEED);
}
BEFORE_IN(kept, free, free_purges_20_ms_later, "free.leaves-recycled-alone", is_mapped(p),
          do_later(purge, p));

/* Caches a freed block, and discards its pages in a call a second later even if malloc returned it
 * meanwhile. */
static struct {
    void *p;
    uint64_t at;
    bool is_free;
} due;
FUNCTION(malloc, due)
{
    LOCK(lock);
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
    LOCK(lock);
    due.p = p == due.p ? NULL : due.p;
    if (p == NULL || base_size(p) < 200000 || base_size(p) > 8 * MIB || (due.p && !due.is_free))
        return base_free(ctx, p, size);
    base_free(ctx, due.p, 0);
    due.p = p;
    due.at = now() + 1000000000u;
    due.is_free = true;
}
MUTANT_DERIVED(pages_of_live_blocks_come_due, "free.leaves-recycled-alone", due);
