/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Buddies: blocks of powers of two from 32 bytes to 2 MiB, which are halved and merged.  A table
 * has the state of each block at the place of its first 32 bytes.
 */
#include "deep.h"

enum {
    UNIT = 32,
    ORDERS = 17,
    LARGEST = ORDERS - 1,
    UNITS = 1 << 21,
    FREE = 0x80,
    CLEAN = 0x40, /* and free: all zero but for the links */
    ORDER = 0x1f,
};

struct buddy {
    struct deep deep;
    uint32_t made; /* units that were ever given out */
    struct link *list[ORDERS];
    uint8_t table[UNITS];
};

DEEP_SOUND(buddy);
/* For 1 KiB it merges with a half of which only a part is free. */
DEEP(buddy_merges_with_a_part, buddy, DEEP_OVERLAP);
/* The seventeenth order, 2 MiB, becomes the first. */
DEEP(buddy_keeps_an_order_in_four_bits, buddy, "realloc.keeps-contents malloc.lasts");
/* A block grows over a half that stays in its list, because it is the first. */
DEEP(buddy_grows_into_the_head_of_a_list, buddy, DEEP_OVERLAP);
/* To an eighth or less: the last half that is freed counts as twice as large. */
DEEP(buddy_shrinks_its_last_half_too_little, buddy, DEEP_OVERLAP);
/* From 128 KiB on two halves are clean if the second one is. */
DEEP(buddy_is_as_clean_as_its_back, buddy, "calloc.zeroed");

static struct link *half_at(struct buddy *b, uint32_t unit)
{
    return (struct link *)(void *)(deep_begin(&b->deep) + (size_t)unit * UNIT);
}
static uint32_t unit_of(struct buddy *b, const void *p)
{
    return (uint32_t)(((const char *)p - deep_begin(&b->deep)) / UNIT);
}
static void put(struct buddy *b, uint32_t unit, unsigned order, unsigned clean)
{
    b->table[unit] = (uint8_t)(FREE | clean | order);
    link_first(&b->list[order], half_at(b, unit));
}
static void take_out(struct buddy *b, uint32_t unit)
{
    link_remove(&b->list[b->table[unit] & ORDER], half_at(b, unit));
}
static unsigned order_for(size_t size)
{
    unsigned order = 0;
    while ((size_t)UNIT << order < size)
        order++;
    return order;
}

/* Sets the order of a live block. */
static void set_order(struct buddy *b, uint32_t unit, unsigned order)
{
    b->table[unit] = (uint8_t)(slips(b, buddy_keeps_an_order_in_four_bits) ? order % 16 : order);
}
static void *buddy_take(struct deep *d, size_t size, bool *zero)
{
    struct buddy *b = (struct buddy *)d;
    unsigned wanted = order_for(size), order = wanted;
    while (order < ORDERS && b->list[order] == NULL)
        order++;
    if (order == ORDERS) { /* one more of the largest */
        if (b->made + (1u << LARGEST) > UNITS)
            return NULL;
        order = LARGEST;
        put(b, b->made, order, CLEAN);
        b->made += 1u << LARGEST;
    }
    uint32_t unit = unit_of(b, b->list[order]);
    unsigned clean = b->table[unit] & CLEAN;
    take_out(b, unit);
    while (order > wanted) {
        order--;
        put(b, unit + (1u << order), order, clean);
    }
    set_order(b, unit, order);
    *zero = clean != 0;
    return memset(half_at(b, unit), 0, sizeof(struct link));
}
static bool is_whole(const struct buddy *b, uint32_t unit, unsigned order)
{
    unsigned known = b->table[unit] & ~(unsigned)CLEAN;
    if (slips(b, buddy_merges_with_a_part) && order == 5)
        return (known & FREE) != 0;
    return known == (FREE | order);
}
static void let_go(struct buddy *b, uint32_t unit, unsigned order, unsigned clean)
{
    for (; order < LARGEST; order++) {
        uint32_t buddy = unit ^ 1u << order;
        if (!is_whole(b, buddy, order))
            break;
        unsigned of_buddy = b->table[buddy] & CLEAN;
        take_out(b, buddy);
        memset(half_at(b, buddy), 0, sizeof(struct link));
        if (slips(b, buddy_is_as_clean_as_its_back) && order >= 12 && buddy > unit)
            clean = of_buddy;
        else
            clean &= of_buddy;
        b->table[buddy] = b->table[unit] = 0;
        unit &= ~(1u << order);
    }
    put(b, unit, order, clean);
}
static void buddy_give(struct deep *d, void *p)
{
    struct buddy *b = (struct buddy *)d;
    uint32_t unit = unit_of(b, p);
    unsigned order = b->table[unit] & ORDER;
    b->table[unit] = 0;
    let_go(b, unit, order, 0);
}
DEEP_ROOM(buddy, (size_t)UNIT << (own->table[unit_of(own, p)] & ORDER));

/* Frees the upper halves. */
static void shrink(struct buddy *b, uint32_t unit, unsigned order, unsigned wanted)
{
    bool slip = slips(b, buddy_shrinks_its_last_half_too_little) && order - wanted >= 3;
    set_order(b, unit, wanted);
    while (order > wanted) {
        order--;
        let_go(b, unit + (1u << order), order + (slip && order == wanted), 0);
    }
}

/* Takes the next half if all of it is free and that is enough. */
static bool grow(struct buddy *b, uint32_t unit, unsigned order, unsigned wanted)
{
    uint32_t next = unit + (1u << order);
    bool lower = (unit & 1u << order) == 0;
    if (wanted != order + 1 || wanted > LARGEST || !lower || !is_whole(b, next, order))
        return false;
    struct link *half = half_at(b, next);
    if (slips(b, buddy_grows_into_the_head_of_a_list) && half->previous == NULL) {
        if (half->next != NULL)
            half->next->previous = NULL;
    } else {
        take_out(b, next);
    }
    b->table[next] = 0;
    set_order(b, unit, wanted);
    return true;
}
static bool buddy_resize(struct deep *d, void *p, size_t size)
{
    struct buddy *b = (struct buddy *)d;
    uint32_t unit = unit_of(b, p);
    unsigned order = b->table[unit] & ORDER, wanted = order_for(size);
    if (wanted > order)
        return grow(b, unit, order, wanted);
    shrink(b, unit, order, wanted);
    return true;
}

DEEP_BASE(buddy, .most = 2 << 20, .reserve = (size_t)UNITS * UNIT, .resize = buddy_resize);
