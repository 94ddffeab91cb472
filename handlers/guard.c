/* SPDX-License-Identifier: BSD-3-Clause
 *
 * guard.c - a write past the end of an array, or a use of one that is gone, stops the program at
 * the very instruction, in Python, C or Fortran.
 *
 * Each block has pages of its own, and ends where one begins that cannot be touched; with
 * NEP49_GUARD=before it begins where such a page ends.
 *
 *     after     | ... header | size bytes | to 16 ||  no access  |
 *     before    | header ... ||  no access  || size bytes | rest |
 *
 * The pages of freed blocks cannot be touched either.  Their addresses are given out again when
 * NEP49_GUARD_KEEP bytes (256M unless told) of later ones, or 1024 of them, have been freed.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, dprintf */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nep49.h"
#include "nep49_setting.h"

#define SIDE "NEP49_GUARD"
#define KEEP "NEP49_GUARD_KEEP"

enum { PAGE = 4096, STEP = 16 /* malloc's alignment */, FILLER = 0xa5, MOST_KEPT = 1024 };
enum { LEAST_CLAIMED = 16 << 20 /* with less kept, a freed address is soon another block's */ };

struct header {
    _Alignas(STEP) char *map;
    size_t length; /* of the mapping, the page without access included */
    size_t size;   /* what was asked for */
    size_t check;
};

struct context {
    bool before;
    size_t most_bytes; /* 0: nothing is kept */
    long most_live;    /* blocks: the kernel counts two mappings for each, and has a limit */
    atomic_long live;
    pthread_mutex_t lock; /* of all below */
    size_t first, count, bytes;
    struct freed {
        char *map;
        size_t length;
    } kept[MOST_KEPT]; /* a ring: the oldest is kept[first] */
};

static size_t check_word(const struct header *h)
{
    return ((uintptr_t)h ^ (uintptr_t)h->map) * 0x9e3779b97f4a7c15u + h->length * 31 + h->size;
}

/* ---- freed blocks ---------------------------------------------------------------------------- */

static void drop_oldest(struct context *c)
{
    struct freed *oldest = &c->kept[c->first];

    munmap(oldest->map, oldest->length);
    c->bytes -= oldest->length;
    c->first = (c->first + 1) % MOST_KEPT;
    c->count--;
}

static void drop_all(struct context *c)
{
    pthread_mutex_lock(&c->lock);
    while (c->count > 0)
        drop_oldest(c);
    pthread_mutex_unlock(&c->lock);
}

/* Mapped anew without access: the memory goes back to the kernel, the addresses do not. */
static void keep(struct context *c, char *map, size_t length)
{
    if (length > c->most_bytes ||
        mmap(map, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
             0) == MAP_FAILED) {
        munmap(map, length);
        return;
    }
    pthread_mutex_lock(&c->lock);
    while (c->count == MOST_KEPT || c->bytes + length > c->most_bytes)
        drop_oldest(c);
    c->kept[(c->first + c->count) % MOST_KEPT] = (struct freed){map, length};
    c->count++;
    c->bytes += length;
    pthread_mutex_unlock(&c->lock);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* What is wrong is the caller's doing, and was some time ago; going on would hide it. */
static _Noreturn void stop(const void *block, const char *what)
{
    dprintf(STDERR_FILENO, "guard: the block at %p: %s\n", block, what);
    abort();
}

static struct header *header_of(const struct context *c, char *block)
{
    struct header *h =
        (struct header *)(void *)(c->before ? block - 2 * PAGE : block) - (c->before ? 0 : 1);

    if (h->check != check_word(h))
        stop(block, "its header was written over, or it is none of this handler's");
    return h;
}

/* Where a page begins, nothing but that page stops a write; up to there we can only look later. */
static size_t filler(const struct context *c, const struct header *h)
{
    size_t rest = -h->size & ((c->before ? PAGE : STEP) - 1);

    return rest < STEP ? rest : STEP;
}

/* `length` bytes of address space without access, or NULL. */
static char *reserve(struct context *c, size_t length)
{
    for (int try = 0; try < 2; try++) {
        char *map = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (map != MAP_FAILED)
            return map;
        drop_all(c); /* there is memory before there are guards */
    }
    return NULL;
}

static void *guard_malloc(void *ctx, size_t size)
{
    struct context *c = ctx;
    size_t head = c->before ? 2 * PAGE : sizeof(struct header), length;

    if (size > PTRDIFF_MAX - 8 * PAGE)
        return NULL;
    if (atomic_fetch_add(&c->live, 1) >= c->most_live)
        goto refused;
    size_t rounded = (size + STEP - 1) & -(size_t)STEP;
    length = (head + rounded + PAGE - 1) & -(size_t)PAGE;
    char *map = reserve(c, length += c->before ? 0 : PAGE);
    if (map == NULL)
        goto refused;

    char *block = c->before ? map + head : map + length - PAGE - rounded;
    bool open = c->before
                    ? mprotect(map, PAGE, PROT_READ | PROT_WRITE) == 0 &&
                          (size == 0 || mprotect(block, length - head, PROT_READ | PROT_WRITE) == 0)
                    : mprotect(map, length - PAGE, PROT_READ | PROT_WRITE) == 0;
    if (!open) {
        munmap(map, length);
        goto refused;
    }
    struct header *h = (struct header *)(void *)(c->before ? map : block - sizeof(*h));
    *h = (struct header){.map = map, .length = length, .size = size};
    h->check = check_word(h);
    memset(block + size, FILLER, filler(c, h));
    return block;

refused:
    atomic_fetch_sub(&c->live, 1);
    return NULL;
}

/* Fresh pages are all zero. */
static void *guard_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;

    return __builtin_mul_overflow(nelem, elsize, &size) ? NULL : guard_malloc(ctx, size);
}

static void guard_free(void *ctx, void *ptr, size_t size)
{
    struct context *c = ctx;
    int saved = errno;

    (void)size; /* a guess of NumPy's, and not needed */
    if (ptr == NULL)
        return;
    struct header h = *header_of(c, ptr);
    for (size_t i = 0; i < filler(c, &h); i++) {
        if (((unsigned char *)ptr)[h.size + i] != FILLER)
            stop(ptr, "somebody wrote past its end");
    }
    keep(c, h.map, h.length);
    atomic_fetch_sub(&c->live, 1);
    errno = saved;
}

/* Always elsewhere, so that whoever kept the old address is found out. */
static void *guard_realloc(void *ctx, void *ptr, size_t new_size)
{
    char *moved = guard_malloc(ctx, new_size);

    if (ptr == NULL || moved == NULL)
        return moved;
    size_t old = header_of(ctx, ptr)->size;
    memcpy(moved, ptr, old < new_size ? old : new_size);
    guard_free(ctx, ptr, old);
    return moved;
}

static struct context context = {.lock = PTHREAD_MUTEX_INITIALIZER}; /* most_live 0: not decided */

static PyDataMem_Handler handler = {
    .name = "guard",
    .version = 1,
    .allocator = {&context, guard_malloc, guard_calloc, guard_realloc, guard_free},
};

NEP49_EXPORT char nep49_claims[sizeof("guard=before")];

static void before_fork(void)
{
    pthread_mutex_lock(&context.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&context.lock);
}

/* What the kernel allows, less what the program needs for itself and what is kept. */
static long count_most_live(void)
{
    long most = 65530;
    FILE *file = fopen("/proc/sys/vm/max_map_count", "re");

    if (file != NULL) {
        if (fscanf(file, "%ld", &most) != 1)
            most = 65530;
        fclose(file);
    }
    most = (most - 4000 - MOST_KEPT) / 2;
    return most > 1 ? most : 1;
}

/* Decides once: blocks may be alive when it is called again. */
PyDataMem_Handler *nep49_get_handler(const char **why)
{
    const char *side = getenv(SIDE), *kept = getenv(KEEP);
    bool keeps_none = kept != NULL && strcmp(kept, "0") == 0;
    size_t bytes = keeps_none ? 0 : nep49_parse_bytes(kept, 256 << 20);

    if (context.most_live != 0)
        return &handler;
    if (side != NULL && strcmp(side, "after") != 0 && strcmp(side, "before") != 0)
        return nep49_refuse(why, SIDE "='%.40s': only after and before are accepted", side);
    if (bytes == 0 && !keeps_none)
        return nep49_refuse(why, KEEP "='%.40s': only a number of bytes is accepted, as in 256M",
                            kept);
    if (sysconf(_SC_PAGESIZE) != PAGE)
        return nep49_refuse(why,
                            "it is written for pages of 4096 bytes, and this kernel has others");
    if (pthread_atfork(before_fork, after_fork, after_fork) != 0)
        return nep49_refuse(why, "out of memory");
    context.before = side != NULL && strcmp(side, "before") == 0;
    context.most_bytes = bytes;
    context.most_live = count_most_live();
    if (bytes >= LEAST_CLAIMED)
        snprintf(nep49_claims, sizeof(nep49_claims), "guard=%s",
                 context.before ? "before" : "after");
    return &handler;
}
