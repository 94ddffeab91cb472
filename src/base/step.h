/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A step: one call of a handler, or what happens between calls; and lists of steps.  The record and
 * the log of a property's calls, traces, the heap model, the search, fuzzers and reproducers have
 * their calls in this form.
 */
#ifndef CONFORM_STEP_H
#define CONFORM_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first four calls have the same numbers in trace files (docs/trace-format.md). */
enum step_kind {
    OUTSIDE,          /* no call, and nothing else */
    STEP_MALLOC,      /* first */
    STEP_CALLOC,      /* first times second */
    STEP_REALLOC,     /* block, or of NULL if there is none yet; first */
    STEP_FREE,        /* block; first is the size that is given, see STEP_RIGHT_SIZE */
    STEP_MALLOC_FREE, /* the same block is made and freed, `times` times */
    STEP_CALLOC_FREE,
    STEP_FREE_NULL,  /* first: the size that is given */
    STEP_FILL,       /* block with the word that is first; or, where second is not 0, with the one
                      * that stands second words before what the last call returned */
    STEP_LIMIT,      /* to first bytes more that are mapped; 0: the limit is lifted */
    STEP_PAUSE,      /* of first milliseconds */
    STEP_STOP,       /* the thread, in its next call: see interleaved.c and STOP_AT */
    STEP_FORK,       /* two processes do what is left: first calls in turn; 0: at once */
    STEP_ASK_GETTER, /* again: it returns the same handler */
    STEP_LOOK_AT_STRUCT,
    STEP_LOCK,   /* the pages of block into memory: madvise cannot drop them then */
    STEP_REFUSE, /* the first-th request of the handler's for memory from now on; 0: none; second is
                  * an enum refusal */
};

enum refusal { REFUSE_ONE, REFUSE_ALL_AFTER, REFUSE_ADVICE /* of madvise, and no memory */ };

/* As `second` of a STEP_FREE, in a list that the search makes: the block's own size is given. */
enum { STEP_RIGHT_SIZE = 1 };

/* As `second` of a STEP_STOP: at the instruction that is `first` bytes from where the object of
 * malloc begins; nowhere; else `first` is one of those that are known of the function. */
enum { STOP_AT = 1, STOP_NOWHERE };

/* In `thread`: by the destructor of a variable of that thread, when it ends; of the first thread,
 * while the process exits, as is all behind it. */
enum { STEP_IN_DESTRUCTOR = 1 << 15, STEP_AT_EXIT = STEP_IN_DESTRUCTOR };

/* A call names its block by address while a process makes it, and by number in a list. */
struct step {
    uint8_t kind;        /* enum step_kind */
    uint8_t error;       /* errno before it; 0: as it is */
    uint8_t trouble;     /* enum trouble (model/record.h), in the record of a property */
    uint8_t returned;    /* 1: it came back when it was recorded */
    uint32_t thread;     /* that makes it; 0: the first */
    uint32_t block;      /* its number, and those behind it, one for each time */
    uint32_t times;      /* 1 and more, in a list */
    const void *pointer; /* that realloc or free is given, or NULL */
    uint64_t first, second;
};

/* Returns "malloc", "calloc", "realloc" or "free", or "outside" for no call of these. */
static inline const char *step_function(unsigned kind)
{
    static const char *const names[] = {"outside", "malloc", "calloc", "realloc", "free"};
    return names[kind <= STEP_FREE ? kind : OUTSIDE];
}

#ifndef REPRODUCER
/* True if the step leaves a block. */
static inline bool step_makes(const struct step *step)
{
    return step->kind >= STEP_MALLOC && step->kind <= STEP_REALLOC;
}

/* True if the step makes a block and frees it. */
static inline bool step_is_pair(const struct step *step)
{
    return step->kind == STEP_MALLOC_FREE || step->kind == STEP_CALLOC_FREE;
}

/* Returns which of the four functions the step calls, of a pair the first, or OUTSIDE. */
static inline enum step_kind step_called(const struct step *step)
{
    if (step_is_pair(step))
        return step->kind == STEP_MALLOC_FREE ? STEP_MALLOC : STEP_CALLOC;
    if (step->kind == STEP_FREE_NULL)
        return STEP_FREE;
    return step->kind <= STEP_FREE ? (enum step_kind)step->kind : OUTSIDE;
}

/* Returns the size that the call is given; UINT64_MAX if it is more. */
static inline uint64_t step_size(const struct step *step)
{
    uint64_t size = step->first;
    bool is_more =
        step_called(step) == STEP_CALLOC && __builtin_mul_overflow(size, step->second, &size);
    return is_more ? UINT64_MAX : size;
}
#endif

enum { MOST_STEPS = 1 << 19, MOST_BLOCKS = 1 << 19 };

struct call_list {
    struct step *at;
    size_t count;
    bool at_once;   /* its threads run at once, see concurrent.h, and not one after the other */
    bool in_turns;  /* that, but one at a time: see interleaved.c */
    bool notes;     /* `at` is shared: each STEP_STOP is told where it stopped */
    bool of_growth; /* it is executed again and again, and memory must not grow */
};

#endif
