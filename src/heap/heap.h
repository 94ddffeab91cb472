/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The model of a heap: what any handler may do.  Whoever makes the calls tells it of each, before
 * and after, and it says what does not hold, by the id of the battery's property.  It knows the
 * live blocks, with their sizes and contents; what each call may return; and what has to be as it
 * was afterwards.
 *
 * It makes no call itself, needs no Python, and is not thread-safe.  It owns what is in the blocks:
 * it writes them, and looks when they are resized, freed, or all looked at.  Who does not own that
 * can ask for the parts at the end of this file.
 */
#ifndef CONFORM_HEAP_H
#define CONFORM_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nep49.h"

enum heap_maker { HEAP_MALLOC, HEAP_CALLOC, HEAP_REALLOC };

struct heap_rules {
    size_t alignment; /* that the handler claims, or 0 */
    size_t whole;     /* blocks of up to so many bytes are written and looked at whole, and of
                       * larger ones parts: see contents.h */
    bool marks;       /* in those, of which parts are, pages have marks: see page_marks.h */
    const PyDataMem_Handler *watched; /* the struct that must not change */
    bool unjudged;                    /* keep track of blocks and check nothing */
    bool without_map; /* nothing is said of overlaps, but by heap_disjoint: for what several
                       * threads do at once, each with a heap of its own that shares the blocks */
};

struct heap_block {
    unsigned char *p; /* NULL: none */
    size_t size;
    uint64_t number; /* which decides what is in it */
};

/* Its history, apart because it is read only when something has failed. */
struct heap_past {
    enum heap_maker made_by;
    uint32_t resized;             /* times */
    uint64_t made_in, resized_in; /* calls */
    size_t size_before;
};

/* What did not hold. */
struct heap_violation {
    char property[32]; /* id; "" where all held */
    char seen[256];    /* in one line, without the call */
    char history[320]; /* what happened to the block before, in one line, or "" */
};

/* The youngest blocks, each in some place.  A place without one has `first` above `last`. */
enum { HEAP_NURSERY = 2 }; /* temporaries come and go without going into the map */
struct heap_nursery {
    uintptr_t first[HEAP_NURSERY], last[HEAP_NURSERY]; /* bytes */
    uint32_t slot[HEAP_NURSERY];
    unsigned next; /* the place that the next new block takes */
};

struct heap {
    struct heap_rules rules;
    PyDataMem_Handler as_it_was;
    unsigned float_state;
    int *error;             /* this thread's errno */
    struct live_table *map; /* of all live blocks but the youngest; number: the slot */
    struct heap_nursery nursery;
    struct heap_block *block; /* by slot */
    struct heap_past *past;
    uint32_t room;   /* slots */
    uint64_t call;   /* the caller's number of the one that is told of */
    bool is_limited; /* the caller has taken memory away, and refusals are nobody's fault */
    uint64_t live_bytes, peak_bytes, live_blocks;
    bool no_memory;                  /* for its own tables: nothing more can be said */
    struct heap_violation violation; /* of a MUST */
    struct heap_violation warning;   /* the first of a SHOULD */
};

/* Begins one without blocks.  False: no memory. */
bool heap_begin(struct heap *heap, const struct heap_rules *rules);
/* Gives its tables back; of the blocks none is touched. */
void heap_end(struct heap *heap);

/* Room for that slot, whose block is not live.  To be had before a call that makes one. */
bool heap_reserve(struct heap *heap, uint32_t slot);

/* Each of these returns false where something did not hold, which is in `violation`, or where
 * there is no_memory; then nothing more is to be asked. */

/* malloc, calloc, or realloc of NULL has returned p, which is not NULL, for the slot. */
bool heap_made(struct heap *heap, uint32_t slot, uint64_t number, enum heap_maker by, void *p,
               size_t size);
/* The same, where nobody wants the block, which is about to be freed. */
bool heap_made_for_nobody(struct heap *heap, enum heap_maker by, void *p, size_t size);
/* A request was refused, and the handler left without a reason. */
bool heap_refused(struct heap *heap, size_t size);
/* calloc was asked for a product that no size_t holds, and returned p. */
bool heap_overflowed(struct heap *heap, const void *p);

/* Around a realloc of the slot's block. */
bool heap_will_resize(struct heap *heap, uint32_t slot, size_t size);
bool heap_resized(struct heap *heap, uint32_t slot, void *p, size_t size);
/* It returned NULL.  With size 0, C17 7.22.3.5 leaves open whether the block was freed, so that
 * nobody can use it any more, and the slot is empty. */
bool heap_kept(struct heap *heap, uint32_t slot, size_t size);

/* Around a free of the slot's block, which is p; NULL is what heap_will_free needs not be told. */
bool heap_will_free(struct heap *heap, uint32_t slot);
bool heap_freed(struct heap *heap);
/* errno before a free, for heap_freed to look at. */
void heap_set_error(struct heap *heap);

/* What every so many calls is looked at: the struct, and the floating-point state. */
bool heap_state_holds(struct heap *heap);

/* Looks at what is in a live block, which nobody is about to touch; and in all of them. */
bool heap_look(struct heap *heap, uint32_t slot);
bool heap_look_at_all(struct heap *heap);

/* Whether any two of the live blocks overlap; for one without_map. */
bool heap_disjoint(struct heap *heap);

/* ---- for who keeps track by himself -------------------------------------------------------- */

/* What a block of that size has to be aligned to: as C17 6.2.8 and 7.22.3 have it, for every type
 * that fits, and for what is claimed. */
static inline size_t heap_alignment(size_t claimed, size_t size)
{
    size_t natural = _Alignof(max_align_t);
    while (__builtin_expect(natural > size && natural > 1, 0))
        natural /= 2;
    return claimed > natural ? claimed : natural;
}

/* The alignment that the block at p should have and has not, or 0. */
static inline size_t heap_missing_alignment(size_t claimed, const void *p, size_t size)
{
    size_t alignment = heap_alignment(claimed, size);
    return __builtin_expect(((uintptr_t)p & (alignment - 1)) != 0, 0) ? alignment : 0;
}

/* What of the handler's struct is no longer as it was, in words; NULL where all is. */
const char *heap_struct_change(const PyDataMem_Handler *before, const PyDataMem_Handler *now);

/* Whether a handler may refuse a request, with so much live: a small one that comes, with what is
 * live, to little it has to grant.  src/repro/judge.c, which is to need nothing of ours, has the
 * same numbers. */
static inline bool heap_may_refuse(size_t size, uint64_t live_bytes, uint64_t live_blocks)
{
    return size > 1 << 20 || live_bytes + size > 16 << 20 || live_blocks > 16384;
}

/* Whether no handler can have so much: what it returns for it is no block. */
static inline bool heap_is_impossible(size_t size)
{
    return size > PTRDIFF_MAX;
}

/* What calloc is asked for; SIZE_MAX where it is more than there are. */
static inline size_t heap_product(size_t nelem, size_t elsize)
{
    size_t size;
    return __builtin_mul_overflow(nelem, elsize, &size) ? SIZE_MAX : size;
}

#endif
