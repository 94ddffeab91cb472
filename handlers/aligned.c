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
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nep49.h"

#define VARIABLE "NEP49_ALIGNMENT"

enum { LOWEST = 16, USUAL = 64, HIGHEST = 2 << 20 };

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
    size_t total;

    if (__builtin_add_overflow(size, c->extra, &total))
        return NULL;
    void *base = malloc(total);
    return base ? finish(base, shift_in(c, base), size) : NULL;
}

/* libc's calloc knows which memory is fresh from the kernel, and does not touch it; of other
 * memory it clears all, and most of a small block's is there for the alignment alone. */
static void *aligned_calloc(void *ctx, size_t nelem, size_t elsize)
{
    const struct context *c = ctx;
    size_t size, total;

    if (__builtin_mul_overflow(nelem, elsize, &size) ||
        __builtin_add_overflow(size, c->extra, &total))
        return NULL;
    if (size < c->extra) {
        void *block = aligned_malloc(ctx, size);
        return block ? memset(block, 0, size) : NULL;
    }
    void *base = calloc(1, total);
    return base ? finish(base, shift_in(c, base), size) : NULL;
}

/* libc keeps the bytes where they were, counted from base.  Where the new base is aligned
 * otherwise than the old one they have to move, and both places lie within total. */
static void *aligned_realloc(void *ctx, void *ptr, size_t new_size)
{
    const struct context *c = ctx;
    size_t total;

    if (ptr == NULL)
        return aligned_malloc(ctx, new_size);
    if (__builtin_add_overflow(new_size, c->extra, &total))
        return NULL;

    struct prefix old = ((struct prefix *)ptr)[-1];
    size_t old_shift = (size_t)((char *)ptr - (char *)old.base);
    char *base = realloc(old.base, total);
    if (base == NULL)
        return NULL; /* and the old block is as it was */

    size_t shift = shift_in(c, base);
    if (shift != old_shift)
        memmove(base + shift, base + old_shift, old.size < new_size ? old.size : new_size);
    return finish(base, shift, new_size); /* last: the prefix may lie where old bytes were */
}

static void aligned_free(void *ctx, void *ptr, size_t size)
{
    (void)ctx;
    (void)size; /* a guess of NumPy's, and not needed */
    if (ptr != NULL)
        free(((struct prefix *)ptr)[-1].base);
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
    static char refusal[160];
    const char *text = getenv(VARIABLE);
    size_t alignment = text ? parse_alignment(text) : USUAL;

    if (context.alignment != 0)
        return &handler;
    if (alignment == 0) {
        snprintf(refusal, sizeof(refusal),
                 "%s='%.40s': only a power of two from %d to %d is accepted", VARIABLE, text,
                 LOWEST, HIGHEST);
        for (char *c = refusal; *c != '\0'; c++)
            *c = (unsigned char)*c < ' ' ? '?' : *c; /* one line, whatever the value */
        *why = refusal;
        return NULL;
    }
    /* base is aligned for max_align_t, so that less than a whole alignment is skipped. */
    context.extra = alignment + sizeof(struct prefix) - _Alignof(max_align_t);
    context.alignment = alignment;
    snprintf(nep49_claims, sizeof(nep49_claims), "alignment=%zu", alignment);
    return &handler;
}
