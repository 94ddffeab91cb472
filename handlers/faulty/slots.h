/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The pool `slot`: small blocks are in contiguous slots of one size, so that a write past a block
 * changes the next one, and libc does not notice.
 */
#ifndef CONFORM_FAULTY_SLOTS_H
#define CONFORM_FAULTY_SLOTS_H

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

UNUSED static inline void slot_give(void *p)
{
    LOCK(slots.lock);
    slots.free[slots.count++] = (char *)p - BASE_HEADER;
}

FUNCTION(malloc, slot)
{
    LOCK(slots.lock);
    if (size > SLOT_ROOM || (slots.count == 0 && slots.made == SLOTS))
        return base_malloc(ctx, size);
    return base_finish(slots.count > 0 ? slots.free[--slots.count] : slots.memory[slots.made++],
                       size);
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
