/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that fail in deep states only, which take a sequence of calls.  They measure the search.
 *
 * Each file of this folder is a small allocator of a well-known design, which is sound.  A mutant
 * is an instance of it with one defect, at the place of `slips(d, its name)`.  All are symbols of
 * one object, the allocators without a defect too:
 *
 *     ./conform --handler handlers/faulty/deep.so:heap_keeps_a_stale_back_link
 *     ./conform --handler handlers/faulty/deep.so:heap_sound
 */
#ifndef CONFORM_FAULTY_DEEP_H
#define CONFORM_FAULTY_DEEP_H

#include <stdatomic.h>

#include "../mutant.h"

struct deep_base;

/* An instance, with which the base's own begins, and the handler's ctx. */
struct deep {
    const struct deep_base *base;
    _Atomic(char *) begin; /* of its memory, which is there from the first request on */
};

/* What an allocator has to say for itself.  Its blocks are aligned to 16 bytes.  Other requests go
 * to libc, and so does what it has no memory for. */
struct deep_base {
    size_t least, most; /* bytes that it is asked for */
    size_t reserve;     /* bytes of its memory, all zero at first */
    bool locks_itself;  /* or one call comes after the other */

    /* A block or NULL.  *zero, which is false before, says that all of it is zero. */
    void *(*take)(struct deep *d, size_t size, bool *zero);
    void (*give)(struct deep *d, void *p);
    /* How much there is room for in the block. */
    size_t (*room)(struct deep *d, void *p);
    /* To make a block larger or smaller where it is: false where that cannot be.  May be NULL. */
    bool (*resize)(struct deep *d, void *p, size_t size);
};

static inline size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* Its memory, begun at a multiple of 1 MiB; NULL before the first request. */
static inline char *deep_begin(struct deep *d)
{
    return atomic_load_explicit(&d->begin, memory_order_acquire);
}

/* One lock for all, which a fork does not find taken. */
extern pthread_mutex_t deep_mutex;
void deep_lock(void);
void deep_unlock(void);

/* Lets go of whole pages, which are zero from then on. */
void deep_release(char *begin, char *end);

void *deep_malloc(void *ctx, size_t size);
void *deep_calloc(void *ctx, size_t nelem, size_t elsize);
void *deep_realloc(void *ctx, void *p, size_t size);
void deep_free(void *ctx, void *p, size_t size);

/* A list of blocks that can be taken out. */
struct link {
    struct link *next, *previous;
};
static inline void link_first(struct link **list, struct link *link)
{
    *link = (struct link){.next = *list};
    if (*list != NULL)
        (*list)->previous = link;
    *list = link;
}
static inline void link_remove(struct link **list, struct link *link)
{
    if (link->next != NULL)
        link->next->previous = link->previous;
    if (link->previous != NULL)
        link->previous->next = link->next;
    else
        *list = link->next;
}

/* DEEP_SOUND(pool): the handler pool_sound, an instance of `struct pool`.
 * DEEP(defect, pool, "ids"): one with that slip.  A search that finds it attributes it to one of
 * the ids, or to the word crash or hang.  "race", before them, says that it takes threads, and
 * luck. */
#define DEEP_SOUND(pool)                                                                           \
    static const struct deep_base pool##_base;                                                     \
    DEEP_HANDLER(pool##_sound, pool, deep)
#define DEEP(defect, pool, found)                                                                  \
    NEP49_EXPORT const char searched_##defect[] = found;                                           \
    DEEP_HANDLER(defect, pool, deep)
#define DEEP_HANDLER(symbol, pool, functions)                                                      \
    static struct pool symbol##_state = {.deep = {.base = &pool##_base}};                          \
    NEP49_EXPORT PyDataMem_Handler symbol = {                                                      \
        .name = #symbol, .version = 1, .allocator = {&symbol##_state, FUNCTIONS(functions)}}
#define DEEP_BASE(pool, ...)                                                                       \
    static const struct deep_base pool##_base = {                                                  \
        .take = pool##_take, .give = pool##_give, .room = pool##_room, __VA_ARGS__}

/* Defines pool_room, which returns the expression; `own` is the instance. */
#define DEEP_ROOM(pool, ...)                                                                       \
    static size_t pool##_room(UNUSED struct deep *d, void *p)                                      \
    {                                                                                              \
        UNUSED struct pool *own = (struct pool *)d;                                                \
        return __VA_ARGS__;                                                                        \
    }                                                                                              \
    _Static_assert(1, "")

/* The same of a pool with four functions of its own. */
#define OWN_SOUND(pool)                                                                            \
    FUNCTION(malloc, pool);                                                                        \
    FUNCTION(calloc, pool);                                                                        \
    FUNCTION(realloc, pool);                                                                       \
    FUNCTION(free, pool);                                                                          \
    static const struct deep_base pool##_base;                                                     \
    DEEP_HANDLER(pool##_sound, pool, pool)
#define OWN(defect, pool, found)                                                                   \
    NEP49_EXPORT const char searched_##defect[] = found;                                           \
    DEEP_HANDLER(defect, pool, pool)

/* What two blocks in one place, and a list with a block that lives, may be seen as. */
#define DEEP_OVERLAP                                                                               \
    "malloc.disjoint malloc.neighbours realloc.keeps-contents calloc.zeroed crash hang"

/* True if `state`, an instance or its struct deep, has that slip.  tests/fuzzers.py renames a
 * defect by -D. */
#define slips(state, defect) is_instance(state, defect) /* expands the name first, as DEEP does */
#define is_instance(state, symbol) ((const void *)(state) == &symbol##_state)

#endif
