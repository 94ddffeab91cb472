/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The four functions of a handler, each of which calls its namesake in the handler behind and
 * notes what came of it, in one hash table for the live blocks of all trackers, under one lock.
 *
 * The size that NumPy gives to free is a guess and now and then wrong, so the true one is kept
 * here, by address.  It could stand in a header before the block; but that would move the block,
 * and with it the alignment that the handler behind has promised.
 */
#include "handlers.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct block {
    struct block *next; /* in its bucket */
    void *address;
    size_t size;
    struct tracker *tracker;
};

enum { BUCKET_BITS = 14 };
static struct block *buckets[1 << BUCKET_BITS];
static struct tracker *all;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void tracker_lock(void)
{
    pthread_mutex_lock(&mutex);
}

void tracker_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

/* A process can be forked while another thread is in here.  The child has no such thread, and must
 * not inherit a lock that nobody will open: so fork takes it first, and both sides give it back. */
static void __attribute__((constructor)) survive_fork(void)
{
    pthread_atfork(tracker_lock, tracker_unlock, tracker_unlock);
}

/* The link that leads to the entry of `address`, or the one at the end of its bucket. */
static struct block **find(const void *address)
{
    uint64_t hash = ((uintptr_t)address >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    struct block **link = &buckets[hash >> (64 - BUCKET_BITS)];
    while (*link != NULL && (*link)->address != address)
        link = &(*link)->next;
    return link;
}

/* Makes `block` the entry of a live block. */
static void enter(struct tracker *t, struct block *block, char *address, size_t size)
{
    struct block **link = find(address);
    struct figures *f = &t->now;
    *block = (struct block){.next = *link, .address = address, .size = size, .tracker = t};
    *link = block;
    f->blocks++;
    f->bytes += size;
    f->peak = f->bytes > f->peak ? f->bytes : f->peak;
    f->lowest = f->lowest == NULL || address < f->lowest ? address : f->lowest;
    f->highest = address + size > f->highest ? address + size : f->highest;
}

/* Takes the entry of a block out, before its memory can be given to another thread.  NULL for a
 * NULL, and for what is not this handler's. */
static struct block *take_out(struct tracker *t, const void *address)
{
    struct block **link = find(address);
    struct block *block = *link;
    if (block == NULL || block->tracker != t) {
        t->now.strangers += address != NULL;
        return NULL;
    }
    *link = block->next;
    t->now.blocks--;
    t->now.bytes -= block->size;
    return block;
}

/* Notes that `size` bytes were asked for and `address` came of it.  `block` is for its entry. */
static void *note(struct tracker *t, int function, struct block *block, void *address, size_t size)
{
    tracker_lock();
    t->now.calls[function]++;
    if (address != NULL) {
        enter(t, block, address, size);
        t->now.given += size;
        block = NULL;
    }
    tracker_unlock();
    free(block);
    return address;
}

/* The entry is allocated first, so that a block that exists can always be entered. */
static void *tracker_malloc(void *ctx, size_t size)
{
    struct tracker *t = ctx;
    struct block *block = malloc(sizeof *block);
    void *address = block != NULL ? t->behind.malloc(t->behind.ctx, size) : NULL;
    return note(t, CALLS_MALLOC, block, address, size);
}

static void *tracker_calloc(void *ctx, size_t nelem, size_t elsize)
{
    struct tracker *t = ctx;
    struct block *block = malloc(sizeof *block);
    void *address = block != NULL ? t->behind.calloc(t->behind.ctx, nelem, elsize) : NULL;
    return note(t, CALLS_CALLOC, block, address, nelem * elsize);
}

/* Where it fails, the old block is as it was, and so is its entry. */
static void *tracker_realloc(void *ctx, void *ptr, size_t new_size)
{
    struct tracker *t = ctx;
    tracker_lock();
    struct block *block = take_out(t, ptr);
    tracker_unlock();
    bool had_one = block != NULL;
    if (!had_one)
        block = malloc(sizeof *block);
    void *address = block != NULL ? t->behind.realloc(t->behind.ctx, ptr, new_size) : NULL;
    if (address == NULL && had_one) {
        tracker_lock();
        enter(t, block, ptr, block->size);
        tracker_unlock();
        block = NULL;
    }
    return note(t, CALLS_REALLOC, block, address, new_size);
}

/* Hands `size` on as it came: the handler behind keeps the contract, and does not rely on it. */
static void tracker_free(void *ctx, void *ptr, size_t size)
{
    struct tracker *t = ctx;
    tracker_lock();
    struct block *block = take_out(t, ptr);
    t->now.calls[CALLS_FREE]++;
    t->now.null_frees += ptr == NULL;
    t->now.wrong_sizes += block != NULL && block->size != size;
    tracker_unlock();
    free(block);
    t->behind.free(t->behind.ctx, ptr, size);
}

void tracker_open(struct tracker *tracker, const PyDataMem_Handler *behind, const char *owner)
{
    tracker->behind = behind->allocator;
    tracker->handler.version = 1;
    tracker->handler.allocator = (PyDataMemAllocator){
        tracker, tracker_malloc, tracker_calloc, tracker_realloc, tracker_free,
    };
    snprintf(tracker->handler.name, sizeof tracker->handler.name, "%.126s", behind->name);
    snprintf(tracker->owner, sizeof tracker->owner, "%s", owner);
    tracker_lock();
    struct tracker **last = &all;
    while (*last != NULL)
        last = &(*last)->next;
    *last = tracker;
    tracker_unlock();
}

struct tracker *tracker_first(void)
{
    return all;
}

struct figures tracker_read(struct tracker *tracker)
{
    tracker_lock();
    struct figures figures = tracker->now;
    tracker_unlock();
    return figures;
}

struct tracker *tracker_of(const void *address, size_t *size)
{
    tracker_lock();
    const struct block *block = *find(address);
    struct tracker *tracker = block != NULL ? block->tracker : NULL;
    if (block != NULL)
        *size = block->size;
    tracker_unlock();
    return tracker;
}
