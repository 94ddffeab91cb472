/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two handlers: a tracker, which stands before another one and keeps track of its blocks, and an
 * arena, which cuts all its blocks from one region of memory, which it takes from another one.
 *
 * They need neither Python nor NumPy.  Whoever includes NumPy's headers does so before this one.
 */
#ifndef EMBED_DEMO_HANDLERS_H
#define EMBED_DEMO_HANDLERS_H

#include <stddef.h>
#define NEP49_WITHOUT_NUMPY 1 /* unless its headers have come */
#include "nep49.h"

/* ---- tracker.c: every pointer is left to the handler behind ---------------------------------- */

enum { CALLS_MALLOC, CALLS_CALLOC, CALLS_REALLOC, CALLS_FREE, CALLS };

struct figures {
    unsigned long calls[CALLS];
    size_t given;              /* bytes in all; by realloc, each new size in full */
    size_t blocks, bytes;      /* alive */
    size_t peak;               /* the most bytes that ever were alive at once */
    unsigned long null_frees;  /* frees of NULL */
    unsigned long wrong_sizes; /* frees whose size was not the one asked for */
    unsigned long strangers;   /* pointers that are no blocks of this handler's */
    const char *lowest;        /* where the first of all bytes ever given lay; NULL: none was */
    const char *highest;       /* and the end of the last */
};

struct tracker {
    PyDataMem_Handler
        handler; /* the one to install; its ctx is this struct, where it is the first */
    PyDataMemAllocator behind; /* where the memory comes from */
    char owner[32];            /* whose it is, for tables */
    struct figures now, at_exit;
    struct tracker *next;
};

/* The one lock of this program's handlers, on the live blocks, the figures and the arenas; they are
 * called without the GIL now and then.  It is never held while another handler works, and survives
 * a fork.  A program with many threads would give each arena its own. */
void tracker_lock(void);
void tracker_unlock(void);

/* Opens a tracker before the handler `behind`.  The struct is all zero to begin with.  It has to
 * stay where it is for as long as any array may be freed through it, which can be until the process
 * ends: arrays can outlive the interpreter. */
void tracker_open(struct tracker *tracker, const PyDataMem_Handler *behind, const char *owner);

/* The one opened first; `next` leads to the others. */
struct tracker *tracker_first(void);

/* The figures of one moment. */
struct figures tracker_read(struct tracker *tracker);

/* Whose the live block at `address` is, or NULL; and in *size what was asked for. */
struct tracker *tracker_of(const void *address, size_t *size);

/* ---- arena.c: whatever it gave out lies between arena.base and arena.end --------------------- */

/* What blocks are aligned to: a cache line, and every vector unit there is. */
enum { ARENA_ALIGNMENT = 64, ARENA_CLASSES = 48 };

struct arena {
    PyDataMem_Handler handler;       /* the one to install; its ctx is this struct */
    const PyDataMemAllocator *below; /* where the region comes from, and goes to */
    void *region;                    /* NULL: none any more */
    char *base, *end;                /* of the region, from the first aligned address on */
    char *fresh;                     /* nothing from here to the end has been given out yet */
    struct arena_block *free[ARENA_CLASSES]; /* blocks that came back, by size class */
};

/* Opens an arena of `size` bytes, which it asks `below` for.  `name` is what get_handler_name says.
 * 0, or -1 where there is no memory.  The struct must not move from then on. */
int arena_open(struct arena *arena, const char *name, const PyDataMemAllocator *below, size_t size);

/* Gives the region back, whatever is still in it: nobody may use a block of it any more. */
void arena_close(struct arena *arena);

#endif
