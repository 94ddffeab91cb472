/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks are of 128 bytes, or twice that, and so on: size classes, each with a list of free blocks.
 * Where that is empty, the next piece of the region is cut.
 *
 * The lock is there because a block can be freed by any thread that holds the last reference to an
 * array, and because NumPy calls realloc without the GIL while it parses text.
 */
#include "handlers.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* What stands before the bytes that NumPy sees, and keeps them aligned. */
struct arena_block {
    _Alignas(ARENA_ALIGNMENT) size_t size; /* asked for, while the block is in use */
    unsigned bin;
    struct arena_block *next; /* while it is free */
};

_Static_assert(sizeof(struct arena_block) == ARENA_ALIGNMENT, "a block is aligned as its header");

static size_t length_of(unsigned bin)
{
    return (size_t)128 << bin;
}

/* The class of a block for `size` bytes, or ARENA_CLASSES where no arena could hold it. */
static unsigned class_of(size_t size)
{
    unsigned bin = 0;
    while (bin < ARENA_CLASSES && length_of(bin) - sizeof(struct arena_block) < size)
        bin++;
    return bin;
}

static void *arena_malloc(void *ctx, size_t size)
{
    struct arena *a = ctx;
    unsigned bin = class_of(size);
    struct arena_block *block = NULL;
    if (bin == ARENA_CLASSES)
        return NULL;
    tracker_lock();
    if (a->free[bin] != NULL) {
        block = a->free[bin];
        a->free[bin] = block->next;
    } else if (length_of(bin) <= (size_t)(a->end - a->fresh)) {
        block = (struct arena_block *)(void *)a->fresh;
        a->fresh += length_of(bin);
    }
    tracker_unlock();
    if (block == NULL)
        return NULL;
    block->size = size;
    block->bin = bin;
    return block + 1;
}

/* Most blocks were used before: they have to be cleared. */
static void *arena_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    void *ptr = arena_malloc(ctx, size);
    return ptr != NULL ? memset(ptr, 0, size) : NULL;
}

/* The size that NumPy gives is now and then wrong; the block knows its own. */
static void arena_free(void *ctx, void *ptr, size_t size)
{
    struct arena *a = ctx;
    (void)size;
    if (ptr == NULL)
        return;
    struct arena_block *block = (struct arena_block *)ptr - 1;
    tracker_lock();
    block->next = a->free[block->bin];
    a->free[block->bin] = block;
    tracker_unlock();
}

/* A block stays where it is as long as its class fits; what cannot grow is left as it was. */
static void *arena_realloc(void *ctx, void *ptr, size_t new_size)
{
    if (ptr == NULL)
        return arena_malloc(ctx, new_size);
    struct arena_block *block = (struct arena_block *)ptr - 1;
    if (class_of(new_size) == block->bin) {
        block->size = new_size;
        return ptr;
    }
    void *moved = arena_malloc(ctx, new_size);
    if (moved == NULL)
        return NULL;
    memcpy(moved, ptr, block->size < new_size ? block->size : new_size);
    arena_free(ctx, ptr, block->size);
    return moved;
}

int arena_open(struct arena *arena, const char *name, const PyDataMemAllocator *below, size_t size)
{
    memset(arena, 0, sizeof *arena);
    arena->below = below;
    arena->region = below->malloc(below->ctx, size + ARENA_ALIGNMENT);
    if (arena->region == NULL)
        return -1;
    arena->base = (char *)arena->region + -(uintptr_t)arena->region % ARENA_ALIGNMENT;
    arena->fresh = arena->base;
    arena->end = arena->base + size;
    snprintf(arena->handler.name, sizeof arena->handler.name, "%s", name);
    arena->handler.version = 1;
    arena->handler.allocator = (PyDataMemAllocator){
        arena, arena_malloc, arena_calloc, arena_realloc, arena_free,
    };
    return 0;
}

void arena_close(struct arena *arena)
{
    arena->below->free(arena->below->ctx, arena->region,
                       (size_t)(arena->end - arena->base) + ARENA_ALIGNMENT);
    arena->region = NULL;
}
