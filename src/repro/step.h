/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A step: one call of a handler, or what happens between calls; and lists of steps.  The log of a
 * property's calls, the search, fuzzers and reproducers have their calls in this form.
 */
#ifndef CONFORM_STEP_H
#define CONFORM_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum step_kind {
    STEP_MALLOC,      /* block, first */
    STEP_CALLOC,      /* block, first times second */
    STEP_REALLOC,     /* block, or of NULL where there is none yet; first */
    STEP_FREE,        /* block; first is the size that is given, see STEP_RIGHT_SIZE */
    STEP_MALLOC_FREE, /* the same block is made and freed, `times` times */
    STEP_CALLOC_FREE,
    STEP_FREE_NULL,  /* first: the size that is given */
    STEP_FILL,       /* block with the word that is first */
    STEP_LIMIT,      /* to first bytes more that are mapped; 0: the limit is lifted */
    STEP_PAUSE,      /* of first milliseconds */
    STEP_STOP,       /* the thread, in its next call: see interleaved.c and STOP_AT */
    STEP_FORK,       /* two processes do what is left: first calls in turn; 0: at once */
    STEP_ASK_GETTER, /* again: it returns the same handler */
    STEP_LOOK_AT_STRUCT,
};

/* As `second` of a STEP_FREE, in a list that the search makes: the block's own size is given. */
enum { STEP_RIGHT_SIZE = 1 };

/* As `second` of a STEP_STOP: at the instruction that is `first` bytes from where the object of
 * malloc begins; nowhere; else `first` is one of those that are known of the function. */
enum { STOP_AT = 1, STOP_NOWHERE };

/* In `thread`: by the destructor of a variable of that thread, when it ends; of the first thread,
 * while the process exits, as is all behind it. */
enum { STEP_IN_DESTRUCTOR = 1 << 15, STEP_AT_EXIT = STEP_IN_DESTRUCTOR };

struct step {
    uint8_t kind;      /* enum step_kind */
    uint8_t error;     /* errno before it; 0: as it is */
    uint16_t thread;   /* that makes it; 0: the first */
    uint32_t block;    /* its number, and those behind it, one for each time */
    uint32_t times;    /* 1 and more */
    uint32_t returned; /* 1: it came back when it was recorded */
    uint64_t first, second;
};

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
