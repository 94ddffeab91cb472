/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants with a race that is so many instructions wide: two threads have to be inside it at once.
 * `make bench` prints how often each is found.
 */
#include "base.h"

/* So many instructions that do nothing. */
#define WINDOW(instructions)                                                                       \
    __asm__ volatile(".rept " #instructions "\n\tnop\n\t.endr" ::: "memory")

enum { ROOM = 256 };

static void *moved_to(void *moved, const void *p, size_t size, size_t old)
{
    if (moved != NULL && p != NULL)
        memcpy(moved, p, old < size ? old : size);
    return moved;
}

/* ---- a flag ------------------------------------------------------------------------------ */

/* One block lies in a buffer, as that of a published handler that keeps it for times of need.
 * Whether it is given out says a flag, which is looked at first and set later. */
static struct {
    _Alignas(16) char bytes[ROOM];
    size_t size;
    volatile bool busy;
} spare;

static void *spare_taken(size_t size)
{
    spare.busy = true;
    spare.size = size;
    return spare.bytes;
}

static size_t size_of(const void *p)
{
    return p == spare.bytes ? spare.size : base_size(p);
}

static void spare_free(void *ctx, void *p, size_t size)
{
    if (p == spare.bytes)
        spare.busy = false;
    else
        base_free(ctx, p, size);
}

#define FLAG_RACE(n)                                                                               \
    static void *flag_##n##_malloc(void *ctx, size_t size)                                         \
    {                                                                                              \
        if (size <= ROOM && !spare.busy) {                                                         \
            WINDOW(n);                                                                             \
            return spare_taken(size);                                                              \
        }                                                                                          \
        return base_malloc(ctx, size);                                                             \
    }                                                                                              \
    static void *flag_##n##_calloc(void *ctx, size_t nelem, size_t elsize)                         \
    {                                                                                              \
        size_t size;                                                                               \
        bool fits = !__builtin_mul_overflow(nelem, elsize, &size);                                 \
        void *p = fits ? flag_##n##_malloc(ctx, size) : NULL;                                      \
        return p != NULL ? memset(p, 0, size) : NULL;                                              \
    }                                                                                              \
    static void *flag_##n##_realloc(void *ctx, void *p, size_t size)                               \
    {                                                                                              \
        void *moved = flag_##n##_malloc(ctx, size);                                                \
        if (moved_to(moved, p, size, p != NULL ? size_of(p) : 0) != NULL)                          \
            spare_free(ctx, p, 0);                                                                 \
        return moved;                                                                              \
    }                                                                                              \
    MUTANT(race_of_##n##_instructions, "threads.concurrent", .malloc = flag_##n##_malloc,          \
           .calloc = flag_##n##_calloc, .realloc = flag_##n##_realloc, .free = spare_free)

FLAG_RACE(10);
FLAG_RACE(20);
FLAG_RACE(35);
FLAG_RACE(50);
FLAG_RACE(75);
FLAG_RACE(100);
FLAG_RACE(150);
FLAG_RACE(200);
FLAG_RACE(300);
FLAG_RACE(500);

/* ---- a list ------------------------------------------------------------------------------ */

/* A free list by compare and exchange, which cannot tell that its first was taken and came back
 * with another behind it. */
struct node {
    struct node *next;
};
static struct node *_Atomic listed;

static void *listed_malloc(void *ctx, size_t size)
{
    if (size > ROOM - BASE_HEADER)
        return base_malloc(ctx, size);
    struct node *first = listed;
    while (first != NULL &&
           !__atomic_compare_exchange_n((struct node **)&listed, &first, first->next, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        continue;
    return base_finish(first != NULL ? (void *)first : malloc(ROOM), size);
}
static void *listed_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : listed_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void listed_free(void *ctx, void *p, size_t size)
{
    if (p == NULL || base_size(p) > ROOM - BASE_HEADER) {
        base_free(ctx, p, size);
        return;
    }
    struct node *node = (struct node *)((char *)p - BASE_HEADER);
    node->next = listed;
    while (!__atomic_compare_exchange_n((struct node **)&listed, &node->next, node, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        continue;
}
static void *listed_realloc(void *ctx, void *p, size_t size)
{
    void *moved = listed_malloc(ctx, size);
    if (moved_to(moved, p, size, p != NULL ? base_size(p) : 0) != NULL)
        listed_free(ctx, p, 0);
    return moved;
}
MUTANT(list_takes_the_same_first_for_the_same_list, "threads.concurrent", .malloc = listed_malloc,
       .calloc = listed_calloc, .realloc = listed_realloc, .free = listed_free);

/* ---- an index ---------------------------------------------------------------------------- */

/* Cells of an array, each with a mark of its own; and the search for one that is free begins
 * where the last ended.  Its mark is looked at and set in two instructions. */
enum { CELLS = 64 };
static struct {
    _Alignas(16) char bytes[CELLS][ROOM];
    volatile unsigned char taken[CELLS];
    volatile unsigned last;
} cells;

static void *marking_malloc(void *ctx, size_t size)
{
    for (unsigned i = 0; size <= ROOM - BASE_HEADER && i < CELLS; i++) {
        unsigned at = (cells.last + i) % CELLS;
        if (cells.taken[at])
            continue;
        cells.taken[at] = 1;
        cells.last = at;
        return base_finish(cells.bytes[at], size);
    }
    return base_malloc(ctx, size);
}
static void *marking_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : marking_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void marking_free(void *ctx, void *p, size_t size)
{
    uintptr_t at = ((uintptr_t)p - (uintptr_t)cells.bytes) / ROOM;
    if (at < CELLS)
        cells.taken[at] = 0;
    else
        base_free(ctx, p, size);
}
static void *marking_realloc(void *ctx, void *p, size_t size)
{
    void *moved = marking_malloc(ctx, size);
    if (moved_to(moved, p, size, p != NULL ? base_size(p) : 0) != NULL)
        marking_free(ctx, p, 0);
    return moved;
}
MUTANT(cell_is_marked_when_it_was_seen, "threads.concurrent", .malloc = marking_malloc,
       .calloc = marking_calloc, .realloc = marking_realloc, .free = marking_free);
