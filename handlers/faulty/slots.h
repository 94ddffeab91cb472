/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The pool `slot`: small blocks are in contiguous slots of one size, so that a write past a block
 * changes the next one, and libc does not notice.
 */
#ifndef CONFORM_FAULTY_SLOTS_H
#define CONFORM_FAULTY_SLOTS_H

#include <pthread.h>

#include "mutant.h"

enum { SLOT = 128, SLOT_ROOM = SLOT - BASE_HEADER, SLOTS = 8192 };

struct slots {
    pthread_mutex_t lock;
    _Alignas(16) char memory[SLOTS][SLOT];
    size_t made;  /* slots that were ever given out */
    size_t count; /* free ones, in ... */
    char *free[SLOTS];
};
static struct slots slots = {.lock = PTHREAD_MUTEX_INITIALIZER};

UNUSED static inline bool is_in_slot(const void *p)
{
    const char *begin = slots.memory[0];
    return (const char *)p >= begin && (const char *)p < begin + sizeof slots.memory;
}

/* A block in a slot, or NULL where it does not fit or none is left. */
UNUSED static inline void *slot_take(size_t size)
{
    char *slot = NULL;
    if (size > SLOT_ROOM)
        return NULL;
    pthread_mutex_lock(&slots.lock);
    if (slots.count > 0)
        slot = slots.free[--slots.count];
    else if (slots.made < SLOTS)
        slot = slots.memory[slots.made++];
    pthread_mutex_unlock(&slots.lock);
    return base_finish(slot, size);
}

UNUSED static inline void slot_give(void *p)
{
    pthread_mutex_lock(&slots.lock);
    slots.free[slots.count++] = (char *)p - BASE_HEADER;
    pthread_mutex_unlock(&slots.lock);
}

FUNCTION(malloc, slot)
{
    void *p = slot_take(size);
    return p != NULL ? p : base_malloc(ctx, size);
}
FUNCTION(free, slot)
{
    if (is_in_slot(p))
        slot_give(p);
    else
        base_free(ctx, p, size);
}
DERIVE(slot);

#endif
