/* SPDX-License-Identifier: BSD-3-Clause
 *
 * aligned.c - every block aligned to a power of two, for vector loads, DMA or huge pages.
 *
 * NEP49_ALIGNMENT says to what: 16 to 2097152 bytes (2 MiB), 64 unless told.  libc's malloc is
 * asked for a little more, the block begins at the first aligned place in it, and just before
 * the block stands what free and realloc have to know:
 *
 *     base              block - 16         block, aligned
 *     | up to alignment | base, size       | size bytes       | rest |
 *
 * Small blocks for which that little more is too much for glibc's fast path are kept here when
 * they are freed, a few of them, to be given out again.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nep49.h"
#include "nep49_advise.h"
#include "nep49_setting.h"

#define VARIABLE "NEP49_ALIGNMENT"

enum { LOWEST = 16, USUAL = 64, HIGHEST = 2 << 20 };

/* What glibc keeps at hand for each thread, without a lock: requests of up to so many bytes. */
enum { AT_HAND = 1032, SMALL = 1024, KEPT = 8 };

struct prefix {
    _Alignas(LOWEST) void *base; /* what libc gave, and wants back */
    size_t size;                 /* what was asked for: how much realloc has to move */
};

struct context {
    size_t alignment;
    size_t extra; /* what a block costs beside its own bytes, at most */
};

_Static_assert(sizeof(struct prefix) == LOWEST, "no alignment that we offer misaligns a prefix");
_Static_assert(_Alignof(max_align_t) <= LOWEST, "the lowest alignment is at least malloc's");

/* Memory of small blocks that are beyond AT_HAND with what they cost: all of the same length, so
 * that any of it will do.  Exchanging one pointer needs no lock, and a fork cannot come between. */
static _Atomic(void *) kept[KEPT];

static bool is_kept(const struct context *c, size_t size)
{
    return size <= SMALL && size + c->extra > AT_HAND;
}

/* What to ask libc for, or 0 where there is no such number. */
static size_t total_for(const struct context *c, size_t size)
{
    size_t total;

    if (is_kept(c, size))
        return SMALL + c->extra;
    return __builtin_add_overflow(size, c->extra, &total) ? 0 : total;
}

static void *take_kept(void)
{
    for (size_t i = 0; i < KEPT; i++) {
        void *base = atomic_load_explicit(&kept[i], memory_order_relaxed);
        if (base != NULL && (base = atomic_exchange(&kept[i], NULL)) != NULL)
            return base;
    }
    return NULL;
}

static bool keep(void *base)
{
    for (size_t i = 0; i < KEPT; i++) {
        void *none = NULL;
        if (atomic_load_explicit(&kept[i], memory_order_relaxed) == NULL &&
            atomic_compare_exchange_strong(&kept[i], &none, base))
            return true;
    }
    return false;
}

/* How far into the memory at base the block begins.  Never more than extra. */
static size_t shift_in(const struct context *c, const void *base)
{
    uintptr_t first = (uintptr_t)base + sizeof(struct prefix);

    return sizeof(struct prefix) + (-first & (c->alignment - 1));
}

static void *finish(void *base, size_t shift, size_t size)
{
    char *block = (char *)base + shift;

    ((struct prefix *)(void *)block)[-1] = (struct prefix){.base = base, .size = size};
    return block;
}

static void *aligned_malloc(void *ctx, size_t size)
{
    const struct context *c = ctx;
    size_t total = total_for(c, size);
    void *base = is_kept(c, size) ? take_kept() : NULL;

    if (base == NULL && total != 0)
        base = nep49_advise(malloc(total), total);
    return base ? finish(base, shift_in(c, base), size) : NULL;
}

/* libc's calloc knows which memory is fresh from the kernel, and does not touch it.  Of other
 * memory it clears all, and takes none that is at hand: for small blocks malloc is faster. */
static void *aligned_calloc(void *ctx, size_t nelem, size_t elsize)
{
    const struct context *c = ctx;
    size_t size, total;

    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    if (size <= SMALL) {
        void *block = aligned_malloc(ctx, size);
        return block ? memset(block, 0, size) : NULL;
    }
    total = total_for(c, size);
    void *base = total ? nep49_advise(calloc(1, total), total) : NULL;
    return base ? finish(base, shift_in(c, base), size) : NULL;
}

/* libc keeps the bytes where they were, counted from base.  Where the new base is aligned
 * otherwise than the old one they have to move, and both places lie within total. */
static void *aligned_realloc(void *ctx, void *ptr, size_t new_size)
{
    const struct context *c = ctx;
    size_t total = total_for(c, new_size);

    if (ptr == NULL)
        return aligned_malloc(ctx, new_size);

    struct prefix old = ((struct prefix *)ptr)[-1];
    size_t old_shift = (size_t)((char *)ptr - (char *)old.base);
    char *base = total ? realloc(old.base, total) : NULL;
    if (base == NULL)
        return NULL; /* and the old block is as it was */

    size_t shift = shift_in(c, base);
    if (shift != old_shift)
        memmove(base + shift, base + old_shift, old.size < new_size ? old.size : new_size);
    return finish(base, shift, new_size); /* last: the prefix may lie where old bytes were */
}

static void aligned_free(void *ctx, void *ptr, size_t size)
{
    (void)size; /* a guess of NumPy's, and not needed */
    if (ptr == NULL)
        return;
    struct prefix p = ((struct prefix *)ptr)[-1];
    if (!is_kept(ctx, p.size) || !keep(p.base))
        free(p.base);
}

static struct context context; /* alignment 0: not decided yet */

static PyDataMem_Handler handler = {
    .name = "aligned",
    .version = 1,
    .allocator = {&context, aligned_malloc, aligned_calloc, aligned_realloc, aligned_free},
};

NEP49_EXPORT char nep49_claims[sizeof("alignment=2097152")];

/* The alignment that text asks for, or 0 where it is none that we can do. */
static size_t parse_alignment(const char *text)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0') /* strtoul lets blanks and signs pass */
        return 0;
    return n >= LOWEST && n <= HIGHEST && (n & (n - 1)) == 0 ? n : 0;
}

/* Decides once: blocks may be alive when it is called again. */
PyDataMem_Handler *nep49_get_handler(const char **why)
{
    const char *text = getenv(VARIABLE);
    size_t alignment = text ? parse_alignment(text) : USUAL;

    if (context.alignment != 0)
        return &handler;
    if (alignment == 0)
        return nep49_refuse(why, VARIABLE "='%.40s': only a power of two from %d to %d is accepted",
                            text, LOWEST, HIGHEST);
    /* base is aligned for max_align_t, so that less than a whole alignment is skipped. */
    context.extra = alignment + sizeof(struct prefix) - _Alignof(max_align_t);
    context.alignment = alignment;
    snprintf(nep49_claims, sizeof(nep49_claims), "alignment=%zu", alignment);
    return &handler;
}
