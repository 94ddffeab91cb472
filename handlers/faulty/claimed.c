/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that claim an alignment of 64 and do not always keep it: an object of their own, as the
 * claim is the object's.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "base.h"
#include "shifted.h"

NEP49_EXPORT const char nep49_claims[] = "alignment=64";

enum { CLAIMED = 64 };

/* A block that begins `off` bytes behind a multiple of 64. */
static void *aligned_block(size_t size, size_t off)
{
    char *raw = size <= PTRDIFF_MAX - 4 * CLAIMED ? malloc(size + 3 * CLAIMED) : NULL;
    if (raw == NULL)
        return NULL;
    uintptr_t first = ((uintptr_t)raw + CLAIMED) / CLAIMED * CLAIMED;
    char *p = (char *)first + off;
    struct shifted header = {size, (size_t)(p - raw)};
    memcpy(p - sizeof header, &header, sizeof header);
    return p;
}

static void *aligned_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return aligned_block(size, 0);
}

static void *zeroed_block(size_t nelem, size_t elsize, size_t off)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    void *p = aligned_block(size, off);
    return p != NULL ? memset(p, 0, size) : NULL;
}

static void *aligned_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    return zeroed_block(nelem, elsize, 0);
}

static void *moved_block(void *p, size_t size, size_t off)
{
    void *moved = aligned_block(size, off);
    if (p == NULL || moved == NULL)
        return moved;
    size_t old = shifted_header(p).size;
    memcpy(moved, p, old < size ? old : size);
    shifted_free(NULL, p, old);
    return moved;
}

static void *aligned_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return moved_block(p, size, 0);
}

#define ALIGNED_FUNCTIONS                                                                          \
    .malloc = aligned_malloc, .calloc = aligned_calloc, .realloc = aligned_realloc,                \
    .free = shifted_free

/* What is smaller than 64 bytes needs no more than 16, it thinks. */
static void *small_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return aligned_block(size, size < CLAIMED ? 16 : 0);
}
MUTANT(claimed_alignment_not_when_small, "malloc.claimed-alignment", ALIGNED_FUNCTIONS,
       .malloc = small_malloc);

/* One large block in some hundred comes from a reserve that is aligned to less. */
static void *seldom_malloc(void *ctx, size_t size)
{
    static _Atomic unsigned large;
    (void)ctx;
    return aligned_block(size, size > 100000 && ++large % 777 == 0 ? 32 : 0);
}
MUTANT(claimed_alignment_not_of_one_in_777, "malloc.claimed-alignment", ALIGNED_FUNCTIONS,
       .malloc = seldom_malloc);

/* Large zeroed blocks come right from libc, behind a header. */
static void *large_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    return zeroed_block(nelem, elsize, nelem >= 128 << 10 ? 32 : 0);
}
MUTANT(claimed_alignment_not_of_large_calloc, "malloc.claimed-alignment", ALIGNED_FUNCTIONS,
       .calloc = large_calloc);

/* realloc keeps to libc's alignment where it grows a block to more than twice its size. */
static void *growing_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return moved_block(p, size, p != NULL && size > 2 * shifted_header(p).size ? 48 : 0);
}
MUTANT(claimed_alignment_not_when_growing, "malloc.claimed-alignment", ALIGNED_FUNCTIONS,
       .realloc = growing_realloc);

/* Shrinking leaves a block where it is, unless it shrinks to a half. */
static void *shrinking_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return moved_block(p, size, p != NULL && size <= shifted_header(p).size / 2 + 1 ? 16 : 0);
}
MUTANT(claimed_alignment_not_when_shrinking, "malloc.claimed-alignment", ALIGNED_FUNCTIONS,
       .realloc = shrinking_realloc);

/* realloc(NULL, n) goes another way than malloc(n). */
static void *beginning_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return moved_block(p, size, p == NULL ? 16 : 0);
}
MUTANT(claimed_alignment_not_from_null, "malloc.claimed-alignment", ALIGNED_FUNCTIONS,
       .realloc = beginning_realloc);

/* A forked child has its blocks from a pool that nobody aligned. */
static void *childs_malloc(void *ctx, size_t size)
{
    static _Atomic pid_t first;
    pid_t none = 0, pid = getpid();
    (void)ctx;
    bool is_child = !atomic_compare_exchange_strong(&first, &none, pid) && none != pid;
    return aligned_block(size, is_child ? 32 : 0);
}
MUTANT(claimed_alignment_not_in_a_child, "malloc.claimed-alignment", ALIGNED_FUNCTIONS,
       .malloc = childs_malloc);

/* What cannot be had aligned may be had without. */
static void *yielding_malloc(void *ctx, size_t size)
{
    void *p = aligned_block(size, 0);
    (void)ctx;
    return p != NULL ? p : aligned_block(size, 16);
}
MUTANT(claimed_alignment_not_when_refused, "exhaustion.nth-request", ALIGNED_FUNCTIONS,
       .malloc = yielding_malloc);

/* What realloc moves beyond 96 MiB has pages of its own, and begins behind a header there. */
static void *huge_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return moved_block(p, size, size >= (size_t)96 << 20 ? 16 : 0);
}
MUTANT(claimed_alignment_not_of_huge_realloc, "malloc.claimed-alignment", ALIGNED_FUNCTIONS,
       .realloc = huge_realloc);
