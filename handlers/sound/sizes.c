/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sound handlers that are unusual in what they hand out.
 */
#include <stdatomic.h>

#include "base.h"

/* realloc that never stays where it is. */
static void *moving_realloc(void *ctx, void *p, size_t size)
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
SOUND(always_moves, .realloc = moving_realloc);

/* NULL for size 0, as C allows. */
static void *null_malloc(void *ctx, size_t size)
{
    return size == 0 ? NULL : base_malloc(ctx, size);
}

static void *null_calloc(void *ctx, size_t nelem, size_t elsize)
{
    return nelem == 0 || elsize == 0 ? NULL : base_calloc(ctx, nelem, elsize);
}
SOUND(null_for_zero, .malloc = null_malloc, .calloc = null_calloc);

/* Memory is wiped before it goes back. */
static void wiping_free(void *ctx, void *p, size_t size)
{
    if (p != NULL)
        memset(p, 0xcc, base_size(p));
    base_free(ctx, p, size);
}

static void *wiping_realloc(void *ctx, void *p, size_t size)
{
    void *moved = base_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    size_t old = base_size(p);
    memcpy(moved, p, old < size ? old : size);
    wiping_free(ctx, p, 0);
    return moved;
}
SOUND(wipes, .realloc = wiping_realloc, .free = wiping_free);

/* Every block is a multiple of the page and aligned to it. */
enum { PAGE = 4096 };

static void *page_malloc(void *ctx, size_t size)
{
    (void)ctx;
    if (size > PTRDIFF_MAX - 2 * PAGE)
        return NULL;
    char *raw = aligned_alloc(PAGE, (size + 2 * PAGE - 1) / PAGE * PAGE);
    if (raw == NULL)
        return NULL;
    memcpy(raw, &size, sizeof size);
    return raw + PAGE;
}

static void *page_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    void *p = page_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}

static void page_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    if (p != NULL)
        free((char *)p - PAGE);
}

static void *page_realloc(void *ctx, void *p, size_t size)
{
    void *moved = page_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    size_t old;
    memcpy(&old, (char *)p - PAGE, sizeof old);
    memcpy(moved, p, old < size ? old : size);
    page_free(ctx, p, 0);
    return moved;
}
SOUND(page_aligned, .malloc = page_malloc, .calloc = page_calloc, .realloc = page_realloc,
      .free = page_free);

/* A header of a megabyte, of which only the last bytes are ever touched. */
enum { MEGABYTE = 1 << 20 };

static void *far_finish(char *raw, size_t size)
{
    if (raw == NULL)
        return NULL;
    memcpy(raw + MEGABYTE - BASE_HEADER, &size, sizeof size);
    return raw + MEGABYTE;
}

static void *far_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return size > PTRDIFF_MAX - MEGABYTE ? NULL : far_finish(malloc(size + MEGABYTE), size);
}

static void *far_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    (void)ctx;
    if (__builtin_mul_overflow(nelem, elsize, &size) || size > PTRDIFF_MAX - MEGABYTE)
        return NULL;
    return far_finish(calloc(1, size + MEGABYTE), size);
}

static void *far_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    if (size > PTRDIFF_MAX - MEGABYTE)
        return NULL;
    return far_finish(realloc(p != NULL ? (char *)p - MEGABYTE : NULL, size + MEGABYTE), size);
}

static void far_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    if (p != NULL)
        free((char *)p - MEGABYTE);
}
SOUND(megabyte_header, .malloc = far_malloc, .calloc = far_calloc, .realloc = far_realloc,
      .free = far_free);

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

static void *quota_malloc(void *ctx, size_t size)
{
    if (!within_quota(ctx, size))
        return NULL;
    void *p = base_malloc(ctx, size);
    if (p == NULL)
        atomic_fetch_sub(&in_use, size);
    return p;
}

static void *quota_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size) || !within_quota(ctx, size))
        return NULL;
    void *p = base_calloc(ctx, nelem, elsize);
    if (p == NULL)
        atomic_fetch_sub(&in_use, size);
    return p;
}

static void quota_free(void *ctx, void *p, size_t size)
{
    if (p != NULL)
        atomic_fetch_sub(&in_use, base_size(p));
    base_free(ctx, p, size);
}

static void *quota_realloc(void *ctx, void *p, size_t size)
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
SOUND(quota_16_mib, .ctx = (void *)&quotas[0], .malloc = quota_malloc, .calloc = quota_calloc,
      .realloc = quota_realloc, .free = quota_free);
SOUND(quota_32_mib, .ctx = (void *)&quotas[1], .malloc = quota_malloc, .calloc = quota_calloc,
      .realloc = quota_realloc, .free = quota_free);
SOUND(quota_64_mib, .ctx = (void *)&quotas[2], .malloc = quota_malloc, .calloc = quota_calloc,
      .realloc = quota_realloc, .free = quota_free);
