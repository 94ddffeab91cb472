/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A handler that stands before another one and keeps books: what was asked for, by which function,
 * and which blocks are alive.  It leaves the work, and every pointer, to the one behind it.
 *
 * Needs neither Python nor NumPy.  Whoever includes NumPy's headers does so before this one.
 */
#ifndef EMBED_DEMO_BOOKS_H
#define EMBED_DEMO_BOOKS_H

#include <stdbool.h>
#include <stddef.h>

#include "lock.h"
#include "nep49.h"

enum books_function { BOOKS_MALLOC, BOOKS_CALLOC, BOOKS_REALLOC, BOOKS_FREE, BOOKS_FUNCTIONS };

struct figures {
    struct {
        unsigned long calls;
        unsigned long refused; /* answered NULL, though more than nothing was asked for */
        size_t bytes;          /* asked for and given; of free: given back, as the books know it */
    } by[BOOKS_FUNCTIONS];
    size_t live_bytes, live_blocks;
    size_t peak_bytes; /* the most that ever was alive at once */
    size_t biggest;    /* block */
    unsigned long null_frees;
    unsigned long wrong_sizes; /* frees whose size was not the one asked for */
    unsigned long strangers;   /* pointers that the books do not know */
    const char *lowest;        /* where the first of all bytes ever given lay; NULL: none was */
    const char *highest;       /* and the end of the last */
};

/* Enough for some hundred thousand live arrays; those buckets that stay empty cost no memory. */
enum { BOOKS_BITS = 16 };

struct books {
    PyDataMem_Handler handler; /* the one to install; its ctx is this struct */
    PyDataMemAllocator behind; /* where the memory comes from */
    char owner[32];            /* whose they are, for tables */
    struct figures at_exit;    /* for who opened them to keep; not used here */
    struct lock lock;          /* on all that follows */
    struct figures figures;
    struct block *buckets[1 << BOOKS_BITS];
    struct books *next; /* all that are open */
};

/* Opens the books of `owner` before the handler `behind`.  NULL, or one line on why that is not one
 * to be called (good until the next calls of text()).
 *
 * `books` is all zero to begin with.  It has to stay where it is for as long as any array may be
 * freed through it, which can be until the process ends: arrays can outlive the interpreter. */
const char *books_open(struct books *books, const PyDataMem_Handler *behind, const char *owner);

/* Closes books through which nothing will be called any more, so that the struct can be freed. */
void books_close(struct books *books);

/* Calls `each` with all that are open, those opened first first. */
void books_each(void (*each)(struct books *books, void *data), void *data);

/* The figures of one moment. */
void books_read(struct books *books, struct figures *figures);

/* Is there a live block at `address`?  If so *size is what was asked for. */
bool books_know(struct books *books, const void *address, size_t *size);

/* The sizes of the live blocks, in no order, as many as there is `room` for; returns how many there
 * are. */
size_t books_sizes(struct books *books, size_t *sizes, size_t room);

#endif
