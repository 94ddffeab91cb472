/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hugepage.c - large blocks lie in huge pages of 2 MiB, smaller ones are libc's.
 *
 * From NEP49_HUGEPAGE_FROM bytes on (4M unless told; K, M and G are understood) a block gets a
 * mapping of its own that begins at a multiple of 2 MiB, and the kernel is asked for huge pages.
 * With NEP49_HUGEPAGE_POOL=1 they come out of the pool that the administrator set aside
 * (vm.nr_hugepages), as long as it has any.  Each mapping begins with a header:
 *
 *     at 2 MiB        + 64                    + length
 *     |        header | size bytes | up to a page |
 *
 * libc's blocks have the same header, so that free finds out which it is.  A few mappings are kept
 * when they are freed, and given out again: a temporary mostly has the size of the one before.
 */
#define _GNU_SOURCE /* mremap, MAP_HUGETLB */

#include <errno.h>
#include <linux/mman.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nep49.h"
#include "nep49_kept.h"
#include "nep49_setting.h"

#define FROM "NEP49_HUGEPAGE_FROM"
#define POOL "NEP49_HUGEPAGE_POOL"

enum { PAGE = 4096, HUGE = 2 << 20, FIRST = 64 /* place of a block in its mapping */ };

enum kind { LIBC, ADVISED, POOLED };

struct header {
    _Alignas(16) size_t size; /* what was asked for */
    size_t length;            /* of the mapping, where there is one */
    enum kind kind;
};

_Static_assert(sizeof(struct header) <= FIRST, "the header fits in before the block");
_Static_assert(sizeof(struct header) % _Alignof(max_align_t) == 0, "and leaves libc's aligned");

static struct {
    size_t from; /* 0: not decided yet */
    bool pool;
} settings;

static void *finish(void *block, size_t size, size_t length, enum kind kind)
{
    ((struct header *)block)[-1] = (struct header){.size = size, .length = length, .kind = kind};
    return block;
}

static void *finish_libc(struct header *h, size_t size)
{
    return h ? finish(h + 1, size, 0, LIBC) : NULL;
}

static size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) & ~(unit - 1);
}

/* `length` bytes of address space that begin at a multiple of HUGE, or NULL.  What was mapped on
 * both sides of it to find such a place goes back at once. */
static char *reserve(size_t length, int protection)
{
    size_t slack = HUGE - PAGE;
    char *raw =
        mmap(NULL, length + slack, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED)
        return NULL;

    size_t before = -(uintptr_t)raw & (HUGE - 1);
    if (before > 0)
        munmap(raw, before);
    if (before < slack)
        munmap(raw + before + length, slack - before);
    return raw + before;
}

/* A fresh mapping is all zero, so this is calloc as well.  The tail that fills no huge page is
 * left to ordinary ones: rounded up to a huge page, a block would take up to 2 MiB too much. */
static void *map_block(size_t size)
{
    size_t length = round_up(size + FIRST, PAGE); /* size is at most PTRDIFF_MAX */

    if (settings.pool) {
        size_t whole = round_up(length, HUGE);
        char *start = mmap(NULL, whole, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_HUGE_2MB, -1, 0);
        if (start != MAP_FAILED)
            return finish(start + FIRST, size, whole, POOLED);
    }
    char *start = reserve(length, PROT_READ | PROT_WRITE);
    if (start == NULL)
        return NULL;
    madvise(start, length, MADV_HUGEPAGE); /* refused, it is still memory */
    return finish(start + FIRST, size, length, ADVISED);
}

/* Grows or shrinks a mapping: where it is if the kernel has room there, else by moving its pages,
 * uncopied, to another multiple of HUGE (elsewhere every huge page would be split). */
static void *remap_block(struct header *h, size_t new_size)
{
    size_t length = round_up(new_size + FIRST, PAGE);
    char *start = (char *)(h + 1) - FIRST;

    if (length == h->length || mremap(start, h->length, length, 0) != MAP_FAILED)
        return finish(start + FIRST, new_size, length, ADVISED);
    char *place = reserve(length, PROT_NONE);
    if (place == NULL)
        return NULL;
    if (mremap(start, h->length, length, MREMAP_MAYMOVE | MREMAP_FIXED, place) == MAP_FAILED) {
        unsigned char there;
        if (mincore(place, PAGE, &there) ==
            0) /* the kernel may have taken it away before failing */
            munmap(place, length);
        return NULL;
    }
    return finish(place + FIRST, new_size, length, ADVISED);
}

static void *hugepage_malloc(void *ctx, size_t size)
{
    (void)ctx;
    if (size > PTRDIFF_MAX - 2 * (size_t)HUGE)
        return NULL;
    if (size >= settings.from) {
        size_t length = round_up(size + FIRST, PAGE);
        char *start = nep49_take_kept(length, munmap);
        return start ? finish(start + FIRST, size, length, ADVISED) : map_block(size);
    }
    return finish_libc(malloc(size + sizeof(struct header)), size);
}

static void *hugepage_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;

    (void)ctx;
    if (__builtin_mul_overflow(nelem, elsize, &size) || size > PTRDIFF_MAX - 2 * (size_t)HUGE)
        return NULL;
    if (size >= settings.from)
        return map_block(size);
    return finish_libc(calloc(1, size + sizeof(struct header)), size);
}

static void hugepage_free(void *ctx, void *ptr, size_t size)
{
    (void)ctx;
    (void)size; /* a guess of NumPy's, and not needed */
    if (ptr == NULL)
        return;
    struct header *h = (struct header *)ptr - 1;
    int saved = errno;
    if (h->kind == LIBC)
        free(h);
    else if (h->kind == ADVISED)
        nep49_keep((char *)ptr - FIRST, h->length, munmap);
    else
        munmap((char *)ptr - FIRST, h->length);
    errno = saved;
}

static void *hugepage_realloc(void *ctx, void *ptr, size_t new_size)
{
    if (ptr == NULL)
        return hugepage_malloc(ctx, new_size);
    if (new_size > PTRDIFF_MAX - 2 * (size_t)HUGE)
        return NULL;

    struct header *h = (struct header *)ptr - 1;
    bool large = new_size >= settings.from;
    if (h->kind == LIBC && !large)
        return finish_libc(realloc(h, new_size + sizeof(*h)), new_size);
    if (h->kind == ADVISED && large)
        return remap_block(h, new_size);

    size_t old = h->size;
    void *moved = hugepage_malloc(ctx, new_size);
    if (moved != NULL) {
        memcpy(moved, ptr, old < new_size ? old : new_size);
        hugepage_free(ctx, ptr, old);
    }
    return moved;
}

static PyDataMem_Handler handler = {
    .name = "hugepage",
    .version = 1,
    .allocator = {NULL, hugepage_malloc, hugepage_calloc, hugepage_realloc, hugepage_free},
};

NEP49_EXPORT char nep49_claims[64];

/* Decides once: blocks may be alive when it is called again. */
PyDataMem_Handler *nep49_get_handler(const char **why)
{
    const char *from = getenv(FROM), *pool = getenv(POOL);
    size_t bytes = nep49_parse_bytes(from, 2 * HUGE);

    if (settings.from != 0)
        return &handler;
    if (bytes == 0)
        return nep49_refuse(
            why, FROM "='%.40s': only a number of bytes from 1 on is accepted, as in 4M", from);
    if (pool != NULL && strcmp(pool, "0") != 0 && strcmp(pool, "1") != 0)
        return nep49_refuse(why, POOL "='%.40s': only 0 and 1 are accepted", pool);
    if (sysconf(_SC_PAGESIZE) != PAGE)
        return nep49_refuse(why,
                            "it is written for pages of 4096 bytes, and this kernel has others");
    settings.pool = pool != NULL && *pool == '1';
    settings.from = bytes;
    snprintf(nep49_claims, sizeof(nep49_claims), "hugepage=%zu", bytes);
    return &handler;
}
