/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that are wrong in deep states only: what their blocks went through decides, and no single
 * call does.  They are what searching is measured with.
 *
 * Each file of this folder is a small allocator of a well-known build, which is sound as it is.  A
 * mutant is an instance of it with one slip: of those at which the code asks `slips(d, ...)`, this
 * one is made.  All end up in one object, the allocators without a slip too:
 *
 *     ./conform --handler handlers/faulty/deep.so:heap_keeps_a_stale_back_link
 *     ./conform --handler handlers/faulty/deep.so:heap_sound
 */
#ifndef CONFORM_FAULTY_DEEP_H
#define CONFORM_FAULTY_DEEP_H

#include <stdatomic.h>

#include "sound/base.h"

struct deep_base;

/* An instance, with which the base's own begins, and the handler's ctx. */
struct deep {
    const struct deep_base *base;
    int slip;              /* 0: none */
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

static inline bool slips(const struct deep *d, int slip)
{
    return d->slip == slip;
}

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
void deep_lock(void);
void deep_unlock(void);

/* Lets go of whole pages, which are zero from then on. */
void deep_release(char *begin, char *end);

void *deep_malloc(void *ctx, size_t size);
void *deep_calloc(void *ctx, size_t nelem, size_t elsize);
void *deep_realloc(void *ctx, void *p, size_t size);
void deep_free(void *ctx, void *p, size_t size);

#define DEEP_FUNCTIONS                                                                             \
    .malloc = deep_malloc, .calloc = deep_calloc, .realloc = deep_realloc, .free = deep_free

/* DEEP(defect, "ids", base, SLIP): an instance of `struct base` with that slip.  A search that
 * finds it attributes it to one of the ids, or to the word crash or hang.  "race", before them,
 * says that it takes threads, and luck. */
#define DEEP(defect, found, base_, slip_)                                                          \
    NEP49_EXPORT const char searched_##defect[] = found;                                           \
    DEEP_HANDLER(defect, base_, slip_, DEEP_FUNCTIONS)
/* What two blocks in one place, and a list with a block that lives, may be seen as. */
#define DEEP_OVERLAP                                                                               \
    "malloc.disjoint malloc.neighbours realloc.keeps-contents calloc.zeroed crash hang"
/* The base itself. */
#define DEEP_SOUND(base_) DEEP_HANDLER(base_##_sound, base_, 0, DEEP_FUNCTIONS)
#define DEEP_HANDLER(symbol, base_, slip_, ...)                                                    \
    static struct base_ symbol##_state = {.deep = {.base = &base_##_base, .slip = slip_}};         \
    NEP49_EXPORT PyDataMem_Handler symbol = {                                                      \
        .name = #symbol, .version = 1, .allocator = {.ctx = &symbol##_state, __VA_ARGS__}}

#endif
