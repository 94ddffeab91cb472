/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A shim that tracks which blocks the handler behind it has given out and not taken back,
 * how often it was called, and what came in that it should never have seen.  Several recorders can
 * stand before one handler, and then tell from each other whose block is whose.
 *
 * Everything here may be called from any thread; no lock is held while the handler is called.
 */
#ifndef CONFORM_RECORDER_H
#define CONFORM_RECORDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/interval_map.h"
#include "base/step.h"
#include "nep49.h"

enum note_kind {
    NOTE_FOREIGN_FREE,    /* free of a pointer that nobody tracks */
    NOTE_FOREIGN_REALLOC, /* realloc of one */
    NOTE_OTHERS_FREE,     /* free of another recorder's block */
    NOTE_OTHERS_REALLOC,  /* realloc of one */
    NOTE_WRONG_SIZE,      /* free with another size than was asked for */
    NOTE_OVERLAPS,        /* the handler returned memory of a live block; it is not tracked */
};
enum { NOTE_KINDS = NOTE_OVERLAPS + 1 };

struct note {
    enum note_kind kind;
    const void *p;
    size_t size;     /* as said in the call */
    size_t asked;    /* what the live block was asked for with, where it is known */
    char owner[127]; /* who tracks the block, where it is another's */
};

struct recorder_counts {
    size_t malloc_calls, calloc_calls, realloc_calls, free_calls;
    size_t refused; /* NULL, though more than nothing was asked for */
    size_t live_blocks, live_bytes, peak_bytes;
    size_t notes[NOTE_KINDS];
    bool incomplete; /* there was no memory to track every block */
};

struct recorder;

/* A recorder before `inner`, which has to outlive it.  It is called `name`, or where that is NULL
 * as the handler behind it.  NULL where there is no memory. */
struct recorder *recorder_create(PyDataMem_Handler *inner, const char *name);

/* False where it still tracks live blocks: it then stays, for whoever still has them. */
bool recorder_destroy(struct recorder *recorder);

/* How many there are that were not destroyed. */
size_t recorder_count(void);

/* What NumPy is to be given. */
PyDataMem_Handler *recorder_handler(struct recorder *recorder);

/* The recorder that this is the handler of, or NULL where it is of none. */
struct recorder *recorder_of_handler(const PyDataMem_Handler *handler);

/* The recorder that tracks a live block at p, or NULL. */
struct recorder *recorder_of_block(const void *p);

const char *recorder_name(const struct recorder *recorder);
struct recorder_counts recorder_counts(struct recorder *recorder);

/* Copies the first notes, `room` at most, and returns how many that are; more than sixteen of one
 * recorder are counted and not kept. */
size_t recorder_notes(struct recorder *recorder, struct note *notes, size_t room);
enum { MOST_NOTES = 16 };

/* A copy of all live blocks by rising address, `value` is an enum step_kind; to be freed
 * by the caller; *count receives how many.  NULL where there is no memory. */
struct interval *recorder_live(struct recorder *recorder, size_t *count);

/* Whether any recorder of this process has been given memory of a live block.  May be called from a
 * signal handler. */
bool recorder_saw_overlap(void);

/* The note in one line (good until the next calls of fmt()), and its kind in a word. */
const char *note_text(const struct note *note);
const char *note_kind_name(enum note_kind kind);

#endif
