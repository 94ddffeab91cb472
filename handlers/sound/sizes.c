/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sound handlers that are unusual in what they hand out.
 */
#include <stdatomic.h>

#include "base.h"

/* realloc that never stays where it is. */
FUNCTION(realloc, moving)
{
    void *moved = base_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    size_t old = base_size(p);
    memcpy(moved, p, old < size ? old : size);
    memset(p, 0xdd, old);
    base_free(ctx, p, 0);
    return moved;
}
SOUND(always_moves, FUNCTIONS(moving, realloc));

/* NULL for size 0, as C allows. */
FUNCTION(malloc, null)
{
    return size == 0 ? NULL : base_malloc(ctx, size);
}

FUNCTION(calloc, null)
{
    return nelem == 0 || elsize == 0 ? NULL : base_calloc(ctx, nelem, elsize);
}
SOUND(null_for_zero, FUNCTIONS(null, malloc, calloc));

/* Memory is wiped before it goes back. */
FUNCTION(free, wiping)
{
    if (p != NULL)
        memset(p, 0xcc, base_size(p));
    base_free(ctx, p, size);
}

#define wiping_malloc base_malloc
DERIVE_REALLOC(wiping, base_size);
SOUND(wipes, FUNCTIONS(wiping, realloc, free));

/* Every block is a multiple of the page and aligned to it. */
enum { PAGE = 4096 };

FUNCTION(malloc, page)
{
    if (size > PTRDIFF_MAX - 2 * PAGE)
        return NULL;
    char *raw = aligned_alloc(PAGE, (size + 2 * PAGE - 1) / PAGE * PAGE);
    if (raw == NULL)
        return NULL;
    memcpy(raw, &size, sizeof size);
    return raw + PAGE;
}

DERIVE_CALLOC(page);

FUNCTION(free, page)
{
    if (p != NULL)
        free((char *)p - PAGE);
}

static size_t page_size(const void *p)
{
    size_t size;
    memcpy(&size, (const char *)p - PAGE, sizeof size);
    return size;
}
DERIVE_REALLOC(page, page_size);
SOUND(page_aligned, FUNCTIONS(page));

/* A header of a megabyte, of which only the last bytes are ever touched. */
enum { MEGABYTE = 1 << 20 };

static void *far_finish(char *raw, size_t size)
{
    if (raw == NULL)
        return NULL;
    memcpy(raw + MEGABYTE - BASE_HEADER, &size, sizeof size);
    return raw + MEGABYTE;
}

FUNCTION(malloc, far)
{
    return size > PTRDIFF_MAX - MEGABYTE ? NULL : far_finish(malloc(size + MEGABYTE), size);
}

FUNCTION(calloc, far)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size) || size > PTRDIFF_MAX - MEGABYTE)
        return NULL;
    return far_finish(calloc(1, size + MEGABYTE), size);
}

FUNCTION(realloc, far)
{
    if (size > PTRDIFF_MAX - MEGABYTE)
        return NULL;
    return far_finish(realloc(p != NULL ? (char *)p - MEGABYTE : NULL, size + MEGABYTE), size);
}

FUNCTION(free, far)
{
    if (p != NULL)
        free((char *)p - MEGABYTE);
}
SOUND(megabyte_header, FUNCTIONS(far));

/* A quota for all blocks together, which is its context. */
static const size_t quotas[] = {16 << 20, 32 << 20, 64 << 20};
static atomic_size_t in_use;

static bool within_quota(const void *ctx, size_t size)
{
    const size_t quota = *(const size_t *)ctx;
    if (size > quota)
        return false;
    if (atomic_fetch_add(&in_use, size) + size <= quota)
        return true;
    atomic_fetch_sub(&in_use, size);
    return false;
}

FUNCTION(malloc, quota)
{
    if (!within_quota(ctx, size))
        return NULL;
    void *p = base_malloc(ctx, size);
    if (p == NULL)
        atomic_fetch_sub(&in_use, size);
    return p;
}

FUNCTION(calloc, quota)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size) || !within_quota(ctx, size))
        return NULL;
    void *p = base_calloc(ctx, nelem, elsize);
    if (p == NULL)
        atomic_fetch_sub(&in_use, size);
    return p;
}

FUNCTION(free, quota)
{
    if (p != NULL)
        atomic_fetch_sub(&in_use, base_size(p));
    base_free(ctx, p, size);
}

FUNCTION(realloc, quota)
{
    size_t old = p != NULL ? base_size(p) : 0;
    if (size > old && !within_quota(ctx, size - old))
        return NULL;
    void *moved = base_realloc(ctx, p, size);
    if (moved == NULL && size > old)
        atomic_fetch_sub(&in_use, size - old);
    else if (moved != NULL && size < old)
        atomic_fetch_sub(&in_use, old - size);
    return moved;
}
SOUND(quota_16_mib, .ctx = (void *)&quotas[0], FUNCTIONS(quota));
SOUND(quota_32_mib, .ctx = (void *)&quotas[1], FUNCTIONS(quota));
SOUND(quota_64_mib, .ctx = (void *)&quotas[2], FUNCTIONS(quota));
