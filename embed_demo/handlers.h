/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two memory handlers for NumPy, in C without Python: a tracker, which forwards each call to
 * another handler and counts, and an arena, which cuts its blocks from one region of memory.
 *
 * One lock protects both: any thread may free an array, and NumPy sometimes calls realloc without
 * the GIL.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEP49_WITHOUT_NUMPY 1 /* unless NumPy's headers are included already */
#include "nep49.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void lock(void)
{
    pthread_mutex_lock(&mutex);
}

static void unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

/* A forked child has no other thread, which could hold the lock: so fork takes it first. */
static void __attribute__((constructor)) survive_fork(void)
{
    pthread_atfork(lock, unlock, unlock);
}

/* ---- the tracker ---------------------------------------------------------------------------- */

enum function { MALLOC, CALLOC, REALLOC, FREE, FUNCTIONS };

struct tally {
    unsigned long calls[FUNCTIONS];
    unsigned long null_frees;  /* calls of free with NULL */
    unsigned long wrong_sizes; /* calls of free with a size that the block does not have */
    unsigned long foreign;     /* pointers passed in that are not live blocks of this tracker */
    unsigned long outside;     /* blocks that do not lie between low and high */
    size_t requested;          /* bytes; each realloc counts its new size in full */
    size_t blocks, bytes;      /* that are live */
    size_t peak;               /* the most bytes that were live at once */
};

struct tracker {
    PyDataMem_Handler handler;  /* the one to install; its ctx is this struct */
    PyDataMemAllocator backing; /* where the memory comes from */
    char owner[32];             /* for the table */
    const char *low, *high;     /* where all blocks should be, or NULL */
    struct tally now, at_exit;
    struct tracker *next;
};

/* A live block, in a hash table by its address.  The size is kept here because the one that NumPy
 * passes to free is sometimes wrong.  A header before the block would break its alignment. */
struct block {
    struct block *next;
    char *address;
    size_t size;
    struct tracker *tracker;
};

enum { BUCKET_BITS = 14 };
static struct block *buckets[1 << BUCKET_BITS];
static struct tracker *trackers;

/* Returns the link that points to the entry of `address`, or the last link of its bucket. */
static struct block **find(const void *address)
{
    uint64_t hash = ((uintptr_t)address >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    struct block **link = &buckets[hash >> (64 - BUCKET_BITS)];
    while (*link != NULL && (*link)->address != address)
        link = &(*link)->next;
    return link;
}

static void insert(struct tracker *t, struct block *block, char *address, size_t size)
{
    struct block **link = find(address);
    struct tally *c = &t->now;
    *block = (struct block){*link, address, size, t};
    *link = block;
    c->blocks++;
    c->bytes += size;
    c->peak = c->bytes > c->peak ? c->bytes : c->peak;
    c->outside += t->low != NULL && (address < t->low || address + size > t->high);
}

/* Takes a block out of the table, before its memory can be given to another thread.  NULL if the
 * pointer is NULL, or not a live block of this tracker. */
static struct block *take_out(struct tracker *t, const void *address)
{
    struct block **link = find(address), *block = *link;
    if (block == NULL || block->tracker != t) {
        t->now.foreign += address != NULL;
        return NULL;
    }
    *link = block->next;
    t->now.blocks--;
    t->now.bytes -= block->size;
    return block;
}

/* malloc, calloc and realloc.  The entry is allocated first, so that every block that exists has
 * one. If realloc fails, the old block is unchanged, and so is its entry. */
static void *allocate(struct tracker *t, enum function function, void *old, size_t nelem,
                      size_t size)
{
    const PyDataMemAllocator *b = &t->backing;
    lock();
    struct block *old_block = function == REALLOC ? take_out(t, old) : NULL;
    unlock();
    struct block *block = old_block != NULL ? old_block : malloc(sizeof *block);
    void *address = block == NULL        ? NULL
                    : function == MALLOC ? b->malloc(b->ctx, size)
                    : function == CALLOC ? b->calloc(b->ctx, nelem, size)
                                         : b->realloc(b->ctx, old, size);
    lock();
    t->now.calls[function]++;
    t->now.requested += address != NULL ? nelem * size : 0;
    if (address != NULL)
        insert(t, block, address, nelem * size);
    else if (old_block != NULL)
        insert(t, old_block, old, old_block->size);
    else
        free(block);
    unlock();
    return address;
}

static void *tracker_malloc(void *ctx, size_t size)
{
    return allocate(ctx, MALLOC, NULL, 1, size);
}

static void *tracker_calloc(void *ctx, size_t nelem, size_t elsize)
{
    return allocate(ctx, CALLOC, NULL, nelem, elsize);
}

static void *tracker_realloc(void *ctx, void *ptr, size_t new_size)
{
    return allocate(ctx, REALLOC, ptr, 1, new_size);
}

static void tracker_free(void *ctx, void *ptr, size_t size)
{
    struct tracker *t = ctx;
    lock();
    struct block *block = take_out(t, ptr);
    t->now.calls[FREE]++;
    t->now.null_frees += ptr == NULL;
    t->now.wrong_sizes += block != NULL && block->size != size;
    unlock();
    free(block);
    t->backing.free(t->backing.ctx, ptr, size);
}

/* Puts a tracker, which is all zero, in front of the handler `backing`.  Arrays can outlive the
 * interpreter, so the struct has to live as long as the process. */
static void tracker_open(struct tracker *t, const PyDataMem_Handler *backing, const char *owner)
{
    struct tracker **last = &trackers;
    t->backing = backing->allocator;
    t->handler = (PyDataMem_Handler){
        "", 1, {t, tracker_malloc, tracker_calloc, tracker_realloc, tracker_free}};
    snprintf(t->handler.name, sizeof t->handler.name, "%.126s", backing->name);
    snprintf(t->owner, sizeof t->owner, "%s", owner);
    lock();
    while (*last != NULL)
        last = &(*last)->next;
    *last = t;
    unlock();
}

/* ---- the arena ------------------------------------------------------------------------------ */

/* Blocks are of 128 bytes, 256, and so on: size classes, each with a list of free blocks.  If that
 * is empty, the next piece of the region is used. */
enum { ALIGNMENT = 64, CLASSES = 56 };
#define CLASS_SIZE(number) ((size_t)128 << (number))

struct header {
    _Alignas(ALIGNMENT) size_t size; /* that was asked for */
    unsigned number;                 /* of the size class */
    struct header *next;             /* if the block is free */
};

struct arena {
    PyDataMem_Handler handler;         /* the one to install; its ctx is this struct */
    const PyDataMemAllocator *backing; /* where the region comes from */
    void *region;
    char *base, *end, *unused; /* of the region, from the first aligned address */
    struct header *free[CLASSES];
};

/* The smallest class that holds `size` bytes and a header; CLASSES if there is none. */
static unsigned class_of(size_t size)
{
    size_t whole = size + sizeof(struct header);
    return size > PTRDIFF_MAX ? CLASSES : whole <= 128 ? 0 : 57 - __builtin_clzl(whole - 1);
}

static void *arena_malloc(void *ctx, size_t size)
{
    struct arena *a = ctx;
    unsigned number = class_of(size);
    struct header *block = NULL;
    if (number >= CLASSES)
        return NULL;
    lock();
    if (a->free[number] != NULL) {
        block = a->free[number];
        a->free[number] = block->next;
    } else if (CLASS_SIZE(number) <= (size_t)(a->end - a->unused)) {
        block = (struct header *)(void *)a->unused;
        a->unused += CLASS_SIZE(number);
    }
    unlock();
    if (block == NULL)
        return NULL;
    block->size = size;
    block->number = number;
    return block + 1;
}

static void *arena_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    void *ptr = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : arena_malloc(ctx, size);
    return ptr != NULL ? memset(ptr, 0, size) : NULL; /* most blocks were used before */
}

static void arena_free(void *ctx, void *ptr, size_t size)
{
    struct arena *a = ctx;
    (void)size; /* sometimes wrong */
    if (ptr == NULL)
        return;
    struct header *block = (struct header *)ptr - 1;
    lock();
    block->next = a->free[block->number];
    a->free[block->number] = block;
    unlock();
}

static void *arena_realloc(void *ctx, void *ptr, size_t new_size)
{
    struct header *block = ptr != NULL ? (struct header *)ptr - 1 : NULL;
    if (block != NULL && class_of(new_size) == block->number) {
        block->size = new_size;
        return ptr;
    }
    void *moved = arena_malloc(ctx, new_size);
    if (moved != NULL && block != NULL) {
        memcpy(moved, ptr, block->size < new_size ? block->size : new_size);
        arena_free(ctx, ptr, block->size);
    }
    return moved;
}

/* Takes `size` bytes from `backing`.  0, or -1 if there is no memory. */
static int arena_open(struct arena *a, const PyDataMemAllocator *backing, size_t size)
{
    *a = (struct arena){.backing = backing};
    a->region = backing->malloc(backing->ctx, size + ALIGNMENT);
    if (a->region == NULL)
        return -1;
    a->base = a->unused = (char *)a->region + -(uintptr_t)a->region % ALIGNMENT;
    a->end = a->base + size;
    a->handler =
        (PyDataMem_Handler){"arena", 1, {a, arena_malloc, arena_calloc, arena_realloc, arena_free}};
    return 0;
}

/* Gives the region back: no block in it may be used any more. */
static void arena_close(struct arena *a)
{
    a->backing->free(a->backing->ctx, a->region, (size_t)(a->end - a->base) + ALIGNMENT);
}
