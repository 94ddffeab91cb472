/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing a history step by step.  The writer knows which slots have a block if all is granted,
 * and keeps what is live within a budget.
 */
#ifndef CONFORM_WRITER_H
#define CONFORM_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"
#include "base/step.h"
#include "search/size_dict.h"

enum { MOST_SLOTS = 1 << 18 };

/* What free is told: the true size; in half of the calls a wrong size that NumPy is known to pass,
 * or any size; the true size, and in half of the calls NULL, too. */
enum told { TRUE_SIZE, NUMPY_SIZE, ANY_TOLD_SIZE, NULL_AS_WELL, NULL_OF_ANY_SIZE };

struct writer {
    struct step *steps; /* not owned */
    size_t count, room;
    struct random random;
    const struct size_dict *size_dict;
    size_t most_bytes;   /* live */
    const size_t *sizes; /* the only ones that scenarios ask for, not owned; or NULL */
    size_t size_count;
    uint16_t thread;
    uint8_t error;  /* errno before each call; 0: as it is */
    enum told told; /* to free */

    uint32_t live[MOST_SLOTS]; /* slots, in no order */
    uint32_t live_count;
    uint32_t place[MOST_SLOTS]; /* of a slot in there */
    uint32_t empty[MOST_SLOTS]; /* slots without a block that were used before */
    uint32_t empty_count, slots;
    uint64_t size[MOST_SLOTS];
    uint64_t live_bytes;
};

/* NULL: no memory. */
struct writer *writer_new(void);
/* Begins a history of up to `room` steps. */
void writer_begin(struct writer *writer, struct step *steps, size_t room);

static inline size_t writer_left(const struct writer *writer)
{
    return writer->room - writer->count;
}

/* Each adds a step where there is room for it, and for the block.  Those that make one return its
 * slot, or NO_SLOT. */
enum { NO_SLOT = UINT32_MAX };
uint32_t write_malloc(struct writer *writer, size_t size);
uint32_t write_calloc(struct writer *writer, size_t nelem, size_t elsize);
/* By calloc of so many bytes, or nearly: items of some size, or so many items; now and then none.
 */
uint32_t write_zeroed(struct writer *writer, size_t size);
/* By realloc of NULL. */
uint32_t write_by_realloc(struct writer *writer, size_t size);
/* By any of the three functions. */
uint32_t write_made(struct writer *writer, size_t size);
void write_realloc(struct writer *writer, uint32_t slot, size_t size);
/* To a size that nobody can have. */
void write_refused_realloc(struct writer *writer, uint32_t slot, size_t size);
/* malloc or calloc of what nobody can have. */
void write_refused(struct writer *writer, enum step_kind kind, uint64_t first, uint64_t second);
/* Fills a live block with a word, see STEP_FILL. */
void write_fill(struct writer *writer, uint32_t slot, uint64_t word, uint64_t words_before);
/* Locks its pages into memory. */
void write_lock(struct writer *writer, uint32_t slot);
void write_free(struct writer *writer, uint32_t slot);
/* Of more than is in the budget: see STEPS_HUGE. */
uint32_t write_huge(struct writer *writer, size_t size, bool by_calloc);
void write_huge_realloc(struct writer *writer, uint32_t slot, size_t size);
/* malloc or calloc, and free, so many times. */
void write_temporaries(struct writer *writer, size_t size, size_t times, bool by_calloc);
/* So many blocks of one size in one step; NO_SLOT, or the first of their slots, which follow each
 * other.  And the end of those of them that are live. */
uint32_t write_batch(struct writer *writer, size_t size, size_t times, bool by_calloc);
void write_free_batch(struct writer *writer, uint32_t first, size_t times);
/* Resizes all of them, where all are live. */
void write_realloc_batch(struct writer *writer, uint32_t first, size_t times, size_t size);
/* One that is about no block. */
void write_other(struct writer *writer, enum step_kind kind, uint64_t first, uint64_t second);

/* A live slot, or NO_SLOT. */
uint32_t writer_any(struct writer *writer);

#endif
