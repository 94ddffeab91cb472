/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A handler that stands before another one and keeps books: what was asked for, by which function,
 * and which blocks are alive.  It leaves the work, and every pointer, to the one behind it.
 *
 * Needs neither Python nor NumPy.  Whoever includes NumPy's headers does so before this one.
 */
#ifndef EMBED_DEMO_BOOKS_H
#define EMBED_DEMO_BOOKS_H

#include <pthread.h>
#include <stddef.h>

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
};

/* Enough for some hundred thousand live arrays; those buckets that stay empty cost no memory. */
enum { BOOKS_BITS = 16 };

struct books {
    PyDataMem_Handler handler; /* the one to install; its ctx is this struct */
    PyDataMemAllocator behind; /* where the memory comes from */
    pthread_mutex_t lock;      /* on all that follows */
    struct figures figures;
    struct block *buckets[1 << BOOKS_BITS];
    struct books *next; /* all that were opened, for fork */
};

/* Opens the books before the handler `behind`.  NULL, or one line on why that is not one to be
 * called (good until the next calls of text()).
 *
 * `books` is static, and so all zero to begin with.  It has to stay where it is until the process
 * ends, because an array can outlive the interpreter, and its block is freed through this struct.
 * That is also why nothing closes it. */
const char *books_open(struct books *books, const PyDataMem_Handler *behind);

/* The figures of one moment. */
void books_read(struct books *books, struct figures *figures);

#endif
