/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sound handlers that take their time over each call, as one does that asks another process for
 * each block, or has the kernel lock or register it; or over more and more of them, up to a bound.
 */
#include <pthread.h>
#include <time.h>

#include "base.h"

static void wait_for(const void *ctx)
{
    nanosleep((const struct timespec *)ctx, NULL);
}

FUNCTION(malloc, slow)
{
    wait_for(ctx);
    return base_malloc(ctx, size);
}

FUNCTION(calloc, slow)
{
    wait_for(ctx);
    return base_calloc(ctx, nelem, elsize);
}

FUNCTION(realloc, slow)
{
    wait_for(ctx);
    return base_realloc(ctx, p, size);
}

FUNCTION(free, slow)
{
    int saved = errno;
    wait_for(ctx);
    errno = saved;
    base_free(ctx, p, size);
}

static struct timespec fifth_of_millisecond = {.tv_nsec = 200000};
SOUND(slow, .ctx = &fifth_of_millisecond, FUNCTIONS(slow));

static struct timespec two_milliseconds = {.tv_nsec = 2000000};
SOUND(very_slow, .ctx = &two_milliseconds, FUNCTIONS(slow));

/* What is freed is looked for among the small blocks that were freed last: ever more until there
 * are as many of them as are kept. */
enum { RECENT = 8000, RECENT_SIZE = 128 };
static uintptr_t recent[RECENT];
static size_t recent_count, again; /* an address comes again, so that this is no mistake */
MUTEX(recent_lock);

FUNCTION(free, remembering)
{
    if (p != NULL && base_size(p) <= RECENT_SIZE) {
        LOCK(recent_lock);
        size_t known = recent_count < RECENT ? recent_count : RECENT;
        for (size_t i = 0; i < known; i++)
            again += recent[i] == (uintptr_t)p;
        recent[recent_count++ % RECENT] = (uintptr_t)p;
    }
    base_free(ctx, p, size);
}
SOUND(remembers_what_was_freed, FUNCTIONS(remembering, free));
