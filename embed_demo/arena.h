/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An arena: a handler that cuts all its blocks from one region of memory, which it takes from
 * another handler.  Whatever it gave out lies between arena.base and arena.end.
 *
 * Needs neither Python nor NumPy.  Whoever includes NumPy's headers does so before this one.
 */
#ifndef EMBED_DEMO_ARENA_H
#define EMBED_DEMO_ARENA_H

#include <stddef.h>

#include "lock.h"
#include "nep49.h"

/* What blocks are aligned to: a cache line, and every vector unit there is. */
enum { ARENA_STEP = 64, ARENA_CLASSES = 128 };

struct arena {
    PyDataMem_Handler handler;       /* the one to install; its ctx is this struct */
    const PyDataMemAllocator *below; /* where the region comes from, and goes to */
    void *region;
    char *base, *end; /* of the region, from the first aligned address on */
    struct lock lock; /* on all that follows */
    char *fresh;      /* nothing from here to the end has been given out yet */
    struct arena_block *free[ARENA_CLASSES]; /* blocks that came back, by their length */
};

/* Opens an arena of `size` bytes, which it asks `below` for.  `name` is what get_handler_name says.
 * 0, or -1 where there is no memory.  The struct must not move from then on. */
int arena_open(struct arena *arena, const char *name, const PyDataMemAllocator *below, size_t size);

/* Gives the region back, whatever is still in it: nobody may use a block of it any more. */
void arena_close(struct arena *arena);

#endif
