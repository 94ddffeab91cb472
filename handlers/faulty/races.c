/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants with a race that is N instructions wide: two threads have to be in it at the same time.
 * `make bench` prints how often each is found.
 */
#include "mutant.h"

/* Executes that many instructions that do nothing. */
#define WINDOW(instructions)                                                                       \
    __asm__ volatile(".rept " #instructions "\n\tnop\n\t.endr" ::: "memory")

enum { ROOM = 256 };

/* One block lies in a buffer.  A flag that says whether it is in use is read first and set later.
 */
static _Alignas(16) char spare[ROOM];
static size_t spare_size;
static volatile bool is_busy;
static size_t size_of(const void *p)
{
    return p == spare ? spare_size : base_size(p);
}
FUNCTION_RETURNS(free, flag, p == spare ? (void)(is_busy = false) : base_free(ctx, p, size));
#define FLAG_RACE(n)                                                                               \
    FUNCTION(malloc, flag_##n)                                                                     \
    {                                                                                              \
        if (size > ROOM || is_busy)                                                                \
            return base_malloc(ctx, size);                                                         \
        WINDOW(n);                                                                                 \
        is_busy = true;                                                                            \
        spare_size = size;                                                                         \
        return spare;                                                                              \
    }                                                                                              \
    FUNCTION_RETURNS(free, flag_##n, flag_free(ctx, p, size));                                     \
    DERIVE_CALLOC(flag_##n);                                                                       \
    DERIVE_REALLOC(flag_##n, size_of);                                                             \
    MUTANT(race_of_##n##_instructions, "threads.concurrent", FUNCTIONS(flag_##n))

FLAG_RACE(10);
FLAG_RACE(50);
FLAG_RACE(150);
FLAG_RACE(500);

/* A free list by compare and exchange: ABA. */
struct node {
    struct node *next;
};
static struct node *listed;
static bool exchange(struct node **expected, struct node *node)
{
    return __atomic_compare_exchange_n(&listed, expected, node, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}
FUNCTION(malloc, listed)
{
    if (size > ROOM - BASE_HEADER)
        return base_malloc(ctx, size);
    struct node *first = __atomic_load_n(&listed, __ATOMIC_SEQ_CST);
    while (first != NULL && !exchange(&first, first->next))
        continue;
    return base_finish(first != NULL ? (void *)first : malloc(ROOM), size);
}
FUNCTION(free, listed)
{
    if (p == NULL || base_size(p) > ROOM - BASE_HEADER)
        return base_free(ctx, p, size);
    struct node *node = (struct node *)((char *)p - BASE_HEADER);
    node->next = __atomic_load_n(&listed, __ATOMIC_SEQ_CST);
    while (!exchange(&node->next, node))
        continue;
}
MUTANT_DERIVED(list_takes_the_same_first_for_the_same_list, "threads.concurrent", listed);
