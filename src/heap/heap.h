/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The heap model: the one place that says what any handler may do.  The caller reports each call to
 * it, before and after, and the model returns whether the requirements hold: what the call may
 * return, which blocks are live, what they contain, and what must stay the same around a call.
 *
 * It makes no call itself, needs libc alone, and is not thread-safe.  It owns the contents of the
 * blocks: it fills them, and checks them when they are resized, freed, or on request.  An observer
 * (rules.observes) does not own the contents: the model then leaves them alone, notes the first
 * violation, and goes on.
 */
#ifndef CONFORM_HEAP_H
#define CONFORM_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fill.h"
#include "base/heap_rule.h"
#include "base/step.h"
#include "nep49.h"

struct heap_rules {
    size_t alignment;                 /* that the handler claims, or 0 */
    struct fill_rules fill;           /* how much of a block is filled and checked */
    const PyDataMem_Handler *watched; /* the struct that must not change */
    bool unjudged;                    /* keep track of blocks and check nothing */
    bool without_map; /* do not check for overlaps, except by heap_disjoint: for threads that run at
                       * once, each with a model of its own, and share the blocks */
    bool observes;    /* see above */
    bool in_each_call; /* check the struct and the floating-point state in each call, and not in
                        * each HEAP_STATE_EVERY-th */
    bool strict;       /* a SHOULD is a violation, and not a warning */
};

enum { HEAP_STATE_EVERY = 16 };

struct heap_block {
    unsigned char *p; /* NULL: none */
    size_t size;
    uint64_t number; /* selects the contents; HEAP_ANY_CONTENTS: they are not checked */
};

#define HEAP_ANY_CONTENTS UINT64_MAX

/* Its history, apart because it is read only when something has failed. */
struct heap_past {
    enum step_kind made_by;
    uint32_t resized;             /* times */
    uint64_t made_in, resized_in; /* calls */
    size_t size_before;
};

/* What breaks the rule, in a few words. */
const char *heap_rule_name(enum heap_rule rule);

/* What the rule demands, in a few words that can be read alone; "" where `seen` has it. */
const char *heap_rule_expected(enum heap_rule rule);

/* What did not hold. */
struct heap_violation {
    enum heap_rule rule; /* HEAP_NO_RULE: none */
    char seen[256];      /* in one line, without the call */
    char history[320];   /* what happened to the block before, in one line, or "" */
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
    int *error;               /* this thread's errno */
    int error_before;         /* the value that free must keep */
    struct interval_map *map; /* of all live blocks but the youngest; value: the slot */
    struct heap_nursery nursery;
    struct heap_block *block; /* by slot */
    struct heap_past *past;
    uint32_t room;            /* slots */
    uint32_t used, free_slot; /* of an observer: slots so far, and the first one that is free */
    uint64_t call;            /* the caller's number of the one that is told of */
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
bool heap_made(struct heap *heap, uint32_t slot, uint64_t number, enum step_kind by, void *p,
               size_t size);
/* The same, where nobody wants the block, which is about to be freed. */
bool heap_made_for_nobody(struct heap *heap, enum step_kind by, void *p, size_t size);
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

/* Around a free of the slot's block.  For free(NULL), heap_set_error takes heap_will_free's place.
 */
bool heap_will_free(struct heap *heap, uint32_t slot);
bool heap_freed(struct heap *heap);
/* Sets errno before a free, for heap_freed to compare. */
void heap_set_error(struct heap *heap);

/* Fills a live block with a word, repeated; of a large block both ends. */
void heap_refill(struct heap *heap, uint32_t slot, uint64_t word);

/* Checks the struct and the floating-point state. */
bool heap_state_holds(struct heap *heap);

/* Records a violation that the caller has seen.  Returns false. */
bool heap_violated(struct heap *heap, enum heap_rule rule, const char *format, ...)
    __attribute__((cold, format(printf, 3, 4)));

/* Looks at what is in a live block, which nobody is about to touch; and in all of them. */
bool heap_look(struct heap *heap, uint32_t slot);
bool heap_look_at_all(struct heap *heap);

/* Whether any two of the live blocks overlap; for one without_map. */
bool heap_disjoint(struct heap *heap);

/* ---- for observers ------------------------------------------------------------------------- */

/* True if a free has left all as it was, so that heap_freed need not be asked. */
bool heap_is_as_before(const struct heap *heap, unsigned float_before, bool same_error);

/* Returns the slot of the live block that begins at p, or HEAP_NO_SLOT. */
#define HEAP_NO_SLOT UINT32_MAX
uint32_t heap_slot_at(const struct heap *heap, const void *p);
/* Returns a slot without a block for heap_made, or HEAP_NO_SLOT if there is no memory. */
uint32_t heap_new_slot(struct heap *heap);

/* Both ends of a block that an observer is about to resize. */
struct heap_edges {
    unsigned char head[64], tail[64];
    size_t length, kept;
};
void heap_note_edges(struct heap_edges *edges, const void *p, size_t kept);
/* The kept bytes are at p now; `refused`: realloc has returned NULL. */
bool heap_check_edges(struct heap *heap, const struct heap_edges *edges, const void *p,
                      bool refused);

/* ---- parts that need no model -------------------------------------------------------------- */

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

/* A handler may refuse a request with more than that live. */
enum { HEAP_GRANTED_BYTES = 16 << 20, HEAP_GRANTED_BLOCKS = 16384 };

/* Whether a handler may refuse a request, with so much live: a small one that comes, with what is
 * live, to little it has to grant. */
static inline bool heap_may_refuse(size_t size, uint64_t live_bytes, uint64_t live_blocks)
{
    return size > 1 << 20 || live_bytes + size > HEAP_GRANTED_BYTES ||
           live_blocks > HEAP_GRANTED_BLOCKS;
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
