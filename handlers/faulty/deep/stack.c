/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A stack of free blocks for each class, without a lock.  Blocks are numbered, and the number of
 * the one on top has a tag, which another one takes with each change.
 */
#include "deep.h"

enum {
    CLASSES = 16,
    CELL = 64, /* the class n has blocks of n + 1 cells */
    CELLS = 1 << 20,
    TAG_SHIFT = 32,
};

struct stack {
    struct deep deep;
    _Atomic(uint64_t) top[CLASSES]; /* number + 1 of a block's first cell, and the tag above */
    _Atomic(uint32_t) made;         /* cells */
    _Atomic(uint32_t) below[CELLS]; /* of a free block: the one below, + 1 */
    uint8_t class[CELLS];           /* of a block's first cell */
};

DEEP_SOUND(stack);
/* ABA: the top was taken, then the block below it, and the top came back. */
DEEP(stack_has_no_tag, stack, "race " DEEP_OVERLAP);
/* The same after sixteen changes. */
DEEP(stack_has_a_tag_of_four_bits, stack, "race " DEEP_OVERLAP);

static char *cell_at(struct stack *s, uint32_t cell)
{
    return deep_begin(&s->deep) + (size_t)cell * CELL;
}
static uint32_t cell_of(struct stack *s, const void *p)
{
    return (uint32_t)(((const char *)p - deep_begin(&s->deep)) / CELL);
}
static uint64_t next_tag(const struct stack *s, uint64_t top)
{
    uint64_t tag = (top >> TAG_SHIFT) + 1;
    if (slips(s, stack_has_no_tag))
        tag = 0;
    else if (slips(s, stack_has_a_tag_of_four_bits))
        tag %= 16;
    return tag << TAG_SHIFT;
}
static char *pop(struct stack *s, unsigned class)
{
    uint64_t top = atomic_load(&s->top[class]), below;
    do {
        if ((uint32_t)top == 0)
            return NULL;
        below = atomic_load(&s->below[(uint32_t)top - 1]);
    } while (!atomic_compare_exchange_weak(&s->top[class], &top, below | next_tag(s, top)));
    return cell_at(s, (uint32_t)top - 1);
}
static void push(struct stack *s, unsigned class, uint32_t cell)
{
    uint64_t top = atomic_load(&s->top[class]);
    do
        atomic_store(&s->below[cell], (uint32_t)top);
    while (!atomic_compare_exchange_weak(&s->top[class], &top, (cell + 1) | next_tag(s, top)));
}
static char *take_new(struct stack *s, unsigned class)
{
    uint32_t cell = atomic_load(&s->made);
    do {
        if (cell + class + 1 > CELLS)
            return NULL;
    } while (!atomic_compare_exchange_weak(&s->made, &cell, cell + class + 1));
    s->class[cell] = (uint8_t) class;
    return cell_at(s, cell);
}
static void *stack_take(struct deep *d, size_t size, bool *zero)
{
    struct stack *s = (struct stack *)d;
    unsigned class = size == 0 ? 0 : (unsigned)((size - 1) / CELL);
    char *p = pop(s, class);
    (void)zero;
    return p != NULL ? p : take_new(s, class);
}
static void stack_give(struct deep *d, void *p)
{
    struct stack *s = (struct stack *)d;
    uint32_t cell = cell_of(s, p);
    push(s, s->class[cell], cell);
}
DEEP_ROOM(stack, (size_t)(own->class[cell_of(own, p)] + 1) * CELL);
DEEP_BASE(stack, .most = CLASSES * CELL, .reserve = (size_t)CELLS * CELL, .locks_itself = true);
