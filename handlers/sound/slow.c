/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sound handlers that take their time over each call, as one does that asks another process for
 * each block, or has the kernel lock or register it.
 */
#include <time.h>

#include "base.h"

static void wait_for(const void *ctx)
{
    nanosleep((const struct timespec *)ctx, NULL);
}

static void *slow_malloc(void *ctx, size_t size)
{
    wait_for(ctx);
    return base_malloc(ctx, size);
}

static void *slow_calloc(void *ctx, size_t nelem, size_t elsize)
{
    wait_for(ctx);
    return base_calloc(ctx, nelem, elsize);
}

static void *slow_realloc(void *ctx, void *p, size_t size)
{
    wait_for(ctx);
    return base_realloc(ctx, p, size);
}

static void slow_free(void *ctx, void *p, size_t size)
{
    int saved = errno;
    wait_for(ctx);
    errno = saved;
    base_free(ctx, p, size);
}

static struct timespec fifth_of_millisecond = {.tv_nsec = 200000};
SOUND(slow, .ctx = &fifth_of_millisecond, .malloc = slow_malloc, .calloc = slow_calloc,
      .realloc = slow_realloc, .free = slow_free);

static struct timespec two_milliseconds = {.tv_nsec = 2000000};
SOUND(very_slow, .ctx = &two_milliseconds, .malloc = slow_malloc, .calloc = slow_calloc,
      .realloc = slow_realloc, .free = slow_free);
