/* SPDX-License-Identifier: BSD-3-Clause
 *
 * arena.c - blocks are cut one after the other from a region, which is dropped in one go when its
 * last block goes.
 *
 * Each thread has a region of NEP49_ARENA_SIZE bytes (1M unless told) that it cuts from, and needs
 * no lock for that.  A free, by whichever thread, only takes one from the region's count of
 * blocks; what it frees is used again when the count is down to none.  Blocks of more than an
 * eighth of a region are libc's.  Before each block stand its region and its size.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nep49.h"
#include "nep49_advise.h"
#include "nep49_setting.h"

#define VARIABLE "NEP49_ARENA_SIZE"

enum { STEP = 16, LEAST = 4 << 10, USUAL = 1 << 20, MOST = 1 << 30 };

struct header {
    _Alignas(STEP) struct region *region; /* NULL: libc's */
    size_t size;                          /* what was asked for */
};

struct region {
    atomic_size_t users; /* its live blocks, and 1 for the thread that cuts from it */
    char *next, *end;    /* touched by that thread alone */
    atomic_bool is_left; /* by its thread */
    struct region *newer, *older;
    _Alignas(STEP) char space[];
};

_Static_assert(sizeof(struct header) == STEP && _Alignof(max_align_t) <= STEP,
               "a block is aligned as what malloc gave");

static size_t region_size; /* 0: not decided yet */
static size_t largest;     /* block that is cut from a region */
static pthread_key_t key;  /* only so that leave_region is called when a thread ends */

/* In the part of a thread's memory that needs no call to be found; see cache.c. */
static _Thread_local struct region *mine __attribute__((tls_model("initial-exec")));
static _Thread_local char ending __attribute__((tls_model("initial-exec")));

/* All regions, for who asks how many blocks are live, and how many more are libc's. */
static struct {
    pthread_mutex_t lock;
    struct region *newest;
    atomic_size_t large;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void list(struct region *r)
{
    pthread_mutex_lock(&all.lock);
    r->newer = NULL;
    r->older = all.newest;
    if (r->older != NULL)
        r->older->newer = r;
    all.newest = r;
    pthread_mutex_unlock(&all.lock);
}

static void drop(struct region *r)
{
    pthread_mutex_lock(&all.lock);
    *(r->newer != NULL ? &r->newer->older : &all.newest) = r->older;
    if (r->older != NULL)
        r->older->newer = r->newer;
    pthread_mutex_unlock(&all.lock);
    free(r);
}

static void release(struct region *r)
{
    /* What others wrote to their blocks comes before the region is somebody else's memory. */
    if (atomic_fetch_sub_explicit(&r->users, 1, memory_order_acq_rel) == 1)
        drop(r);
}

/* Its thread cuts from it no longer. */
static void leave(struct region *r)
{
    atomic_store_explicit(&r->is_left, true, memory_order_relaxed);
    release(r);
}

/* Other destructors of this thread, run after this one, may still make arrays: by libc. */
static void leave_region(void *arg)
{
    mine = NULL;
    ending = 1;
    leave(arg);
}

/* A region of this thread with `length` bytes left, or NULL. */
static struct region *room_for(size_t length)
{
    struct region *r = mine;

    if (r != NULL && atomic_load_explicit(&r->users, memory_order_acquire) == 1)
        r->next = r->space; /* all blocks are gone: begin again */
    if (r != NULL && (size_t)(r->end - r->next) >= length)
        return r;
    if (ending)
        return NULL;
    struct region *fresh = nep49_advise(malloc(region_size), region_size);
    if (fresh == NULL)
        return NULL;
    if (pthread_setspecific(key, fresh) != 0) {
        free(fresh);
        return NULL;
    }
    atomic_init(&fresh->users, 1);
    atomic_init(&fresh->is_left, false);
    fresh->next = fresh->space;
    fresh->end = (char *)fresh + region_size;
    list(fresh);
    mine = fresh;
    if (r != NULL)
        leave(r);
    return fresh;
}

static size_t length_of(size_t size)
{
    return sizeof(struct header) + ((size + STEP - 1) & -(size_t)STEP);
}

static void *finish(struct header *h, struct region *r, size_t size)
{
    if (h == NULL)
        return NULL;
    *h = (struct header){.region = r, .size = size};
    return h + 1;
}

static void *finish_large(void *start, size_t size)
{
    if (start != NULL)
        atomic_fetch_add_explicit(&all.large, 1, memory_order_relaxed);
    return finish(start, NULL, size);
}

static void *arena_malloc(void *ctx, size_t size)
{
    size_t total;

    (void)ctx;
    if (size <= largest) {
        struct region *r = room_for(length_of(size));
        if (r != NULL) {
            struct header *h = (struct header *)(void *)r->next;
            r->next += length_of(size);
            atomic_fetch_add_explicit(&r->users, 1, memory_order_relaxed);
            return finish(h, r, size);
        }
    }
    if (__builtin_add_overflow(size, sizeof(struct header), &total))
        return NULL;
    return finish_large(nep49_advise(malloc(total), total), size);
}

static void *arena_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size, total;

    if (__builtin_mul_overflow(nelem, elsize, &size) ||
        __builtin_add_overflow(size, sizeof(struct header), &total))
        return NULL;
    if (size >
        largest) /* libc knows which memory is fresh from the kernel, and does not touch it */
        return finish_large(nep49_advise(calloc(1, total), total), size);
    void *block = arena_malloc(ctx, size);
    return block ? memset(block, 0, size) : NULL;
}

static void arena_free(void *ctx, void *ptr, size_t size)
{
    int saved = errno;

    (void)ctx;
    (void)size; /* a guess of NumPy's, and not needed */
    if (ptr == NULL)
        return;
    struct header *h = (struct header *)ptr - 1;
    if (h->region != NULL) {
        release(h->region);
    } else {
        atomic_fetch_sub_explicit(&all.large, 1, memory_order_relaxed);
        free(h);
    }
    errno = saved;
}

/* The block cut last can grow and shrink where it is. */
static int resize_last(struct header *h, size_t new_size)
{
    struct region *r = h->region;
    char *start = (char *)h;

    if (r != mine || start + length_of(h->size) != r->next || new_size > largest ||
        (size_t)(r->end - start) < length_of(new_size))
        return 0;
    r->next = start + length_of(new_size);
    h->size = new_size;
    return 1;
}

static void *arena_realloc(void *ctx, void *ptr, size_t new_size)
{
    size_t total;

    if (ptr == NULL)
        return arena_malloc(ctx, new_size);
    struct header *h = (struct header *)ptr - 1;
    size_t old = h->size;
    if (h->region != NULL && resize_last(h, new_size))
        return ptr;
    if (__builtin_add_overflow(new_size, sizeof(*h), &total))
        return NULL;
    if (h->region == NULL && new_size > largest)
        return finish(realloc(h, total), NULL, new_size);

    void *moved = arena_malloc(ctx, new_size);
    if (moved != NULL) {
        memcpy(moved, ptr, old < new_size ? old : new_size);
        arena_free(ctx, ptr, old);
    }
    return moved;
}

/* ---- how many are live ----------------------------------------------------------------------- */

void nep49_get_statistics(nep49_statistics *figures)
{
    size_t blocks = atomic_load(&all.large);

    pthread_mutex_lock(&all.lock);
    for (struct region *r = all.newest; r != NULL; r = r->older)
        blocks += atomic_load(&r->users) - !atomic_load(&r->is_left);
    pthread_mutex_unlock(&all.lock);
    *figures = (nep49_statistics){blocks, SIZE_MAX, SIZE_MAX, SIZE_MAX};
}

static void before_fork(void)
{
    pthread_mutex_lock(&all.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&all.lock);
}

static PyDataMem_Handler handler = {
    .name = "arena",
    .version = 1,
    .allocator = {NULL, arena_malloc, arena_calloc, arena_realloc, arena_free},
};

/* Decides once: threads have their regions when it is called again. */
PyDataMem_Handler *nep49_get_handler(const char **why)
{
    const char *text = getenv(VARIABLE);
    size_t size = nep49_parse_bytes(text, USUAL);

    if (region_size != 0)
        return &handler;
    if (size < LEAST || size > MOST)
        return nep49_refuse(
            why, VARIABLE "='%.40s': only a number of bytes from 4K to 1G is accepted", text);
    if (pthread_key_create(&key, leave_region) != 0)
        return nep49_refuse(why, "no thread-specific key is left in this process");
    if (pthread_atfork(before_fork, after_fork, after_fork) != 0)
        return nep49_refuse(why, "out of memory");
    largest = size / 8;
    region_size = size & -(size_t)STEP;
    return &handler;
}
