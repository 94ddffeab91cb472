/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sound handlers whose blocks are unusual.
 */
#include <stdatomic.h>

#include "base.h"

/* realloc always moves a block. */
#define moving_malloc base_malloc
FUNCTION(free, moving)
{
    if (p != NULL)
        memset(p, 0xdd, base_size(p));
    base_free(ctx, p, size);
}
DERIVE_REALLOC(moving, base_size);
SOUND(always_moves, FUNCTIONS(moving, realloc));
/* free clears the block. */
SOUND(wipes, FUNCTIONS(moving, realloc, free));

/* NULL for size 0, as C allows. */
FUNCTION_RETURNS(malloc, null, size == 0 ? NULL : base_malloc(ctx, size));
FUNCTION_RETURNS(calloc, null, nelem == 0 || elsize == 0 ? NULL : base_calloc(ctx, nelem, elsize));
SOUND(null_for_zero, FUNCTIONS(null, malloc, calloc));

/* Each block is aligned to pages and has whole pages. */
enum { PAGE = 4096 };
static size_t page_size(const void *p)
{
    size_t size;
    memcpy(&size, (const char *)p - PAGE, sizeof size);
    return size;
}
FUNCTION(malloc, page)
{
    bool fits = size <= PTRDIFF_MAX - 2 * PAGE;
    char *raw = fits ? aligned_alloc(PAGE, (size + 2 * PAGE - 1) / PAGE * PAGE) : NULL;
    if (raw == NULL)
        return NULL;
    memcpy(raw, &size, sizeof size);
    return raw + PAGE;
}
FUNCTION(free, page)
{
    if (p != NULL)
        free((char *)p - PAGE);
}
DERIVE_CALLOC(page);
DERIVE_REALLOC(page, page_size);
SOUND(page_aligned, FUNCTIONS(page));

/* The header has a mebibyte, of which only the last bytes are used. */
static void *far_finish(char *raw, size_t size)
{
    return raw != NULL ? base_finish(raw + MIB - BASE_HEADER, size) : NULL;
}
FUNCTION_RETURNS(malloc, far,
                 size > PTRDIFF_MAX - MIB ? NULL : far_finish(malloc(size + MIB), size));
FUNCTION(calloc, far)
{
    size_t size = product(nelem, elsize);
    return size > PTRDIFF_MAX - MIB ? NULL : far_finish(calloc(1, size + MIB), size);
}
FUNCTION(realloc, far)
{
    if (size > PTRDIFF_MAX - MIB)
        return NULL;
    return far_finish(realloc(p != NULL ? (char *)p - MIB : NULL, size + MIB), size);
}
FUNCTION(free, far)
{
    if (p != NULL)
        free((char *)p - MIB);
}
SOUND(megabyte_header, FUNCTIONS(far));

/* The context is a quota for all live blocks. */
static const size_t quotas[] = {16 * MIB, 32 * MIB, 64 * MIB};
static atomic_size_t in_use;
static bool charge(const void *ctx, size_t size)
{
    const size_t quota = *(const size_t *)ctx;
    if (size > quota)
        return false;
    if (atomic_fetch_add(&in_use, size) + size <= quota)
        return true;
    atomic_fetch_sub(&in_use, size);
    return false;
}
/* Takes the charge back if there is no block for it. */
static void *charged(void *p, size_t size)
{
    if (p == NULL)
        atomic_fetch_sub(&in_use, size);
    return p;
}
FUNCTION_RETURNS(malloc, quota, charge(ctx, size) ? charged(base_malloc(ctx, size), size) : NULL);
FUNCTION(calloc, quota)
{
    size_t size = product(nelem, elsize);
    return charge(ctx, size) ? charged(base_calloc(ctx, nelem, elsize), size) : NULL;
}
FUNCTION(free, quota)
{
    if (p != NULL)
        atomic_fetch_sub(&in_use, base_size(p));
    base_free(ctx, p, size);
}
FUNCTION(realloc, quota)
{
    size_t old = p != NULL ? base_size(p) : 0, more = size > old ? size - old : 0;
    void *moved = charge(ctx, more) ? charged(base_realloc(ctx, p, size), more) : NULL;
    if (moved != NULL && size < old)
        atomic_fetch_sub(&in_use, old - size);
    return moved;
}
SOUND(quota_16_mib, .ctx = (void *)&quotas[0], FUNCTIONS(quota));
SOUND(quota_32_mib, .ctx = (void *)&quotas[1], FUNCTIONS(quota));
SOUND(quota_64_mib, .ctx = (void *)&quotas[2], FUNCTIONS(quota));
