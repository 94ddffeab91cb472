/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sound handlers that are slow, as one that has another process or the kernel register each block.
 */
#include <time.h>

#include "base.h"

static void *wait_for(void *time)
{
    int saved = errno;
    nanosleep(time, NULL);
    errno = saved;
    return time;
}
FUNCTION_RETURNS(malloc, slow, base_malloc(wait_for(ctx), size));
FUNCTION_RETURNS(calloc, slow, base_calloc(wait_for(ctx), nelem, elsize));
FUNCTION_RETURNS(realloc, slow, base_realloc(wait_for(ctx), p, size));
FUNCTION_RETURNS(free, slow, base_free(wait_for(ctx), p, size));
SOUND(slow, .ctx = &(struct timespec){.tv_nsec = 200000}, FUNCTIONS(slow));
SOUND(very_slow, .ctx = &(struct timespec){.tv_nsec = 2000000}, FUNCTIONS(slow));

/* free searches the small blocks that were freed last: ever more, up to a bound. */
enum { RECENT = 8000, RECENT_SIZE = 128 };
static uintptr_t recent[RECENT];
static size_t recent_count, again; /* libc uses an address again, which is no mistake */
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
