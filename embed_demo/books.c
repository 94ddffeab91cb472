/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The four functions of a handler, each of which calls its namesake in the handler behind and
 * writes down what came of it.
 *
 * The size that NumPy gives to free is a guess and now and then wrong, so the true one is kept
 * here, by address.  It could stand in a header before the block; but that would move the block,
 * and with it the alignment that the handler behind has promised.
 */
#include "books.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* An entry.  It is new while it has no address. */
struct block {
    struct block *next; /* in its bucket */
    void *address;
    size_t size;
};

/* The link that leads to the entry of `address`, or the one at the end of its bucket. */
static struct block **find(struct books *b, const void *address)
{
    uint64_t hash = ((uintptr_t)address >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    struct block **link = &b->buckets[hash >> (64 - BOOKS_BITS)];
    while (*link != NULL && (*link)->address != address)
        link = &(*link)->next;
    return link;
}

static void put_in(struct books *b, struct block *block)
{
    struct block **link = find(b, block->address);
    block->next = *link;
    *link = block;
}

/* Takes the entry of `address` out, before its memory can be given to another thread.  NULL for a
 * NULL, and for what the books do not know. */
static struct block *take_out(struct books *b, const void *address)
{
    struct block **link = find(b, address);
    struct block *block = *link;
    if (block != NULL)
        *link = block->next;
    else if (address != NULL)
        b->figures.strangers++;
    return block;
}

static void note_extent(struct figures *f, const char *address, size_t size)
{
    if (f->lowest == NULL || address < f->lowest)
        f->lowest = address;
    if (address + size > f->highest)
        f->highest = address + size;
}

/* Writes down that `size` bytes were asked for and `address` came of it.  `block` is the entry that
 * waited for it: a new one, or for realloc the old block's, whose block is as it was where realloc
 * failed.  NULL stands for an entry that could not be had: then nothing was asked of the handler
 * behind. */
static void *write_down(struct books *b, enum books_function function, struct block *block,
                        void *address, size_t size)
{
    struct figures *f = &b->figures;
    lock_take(&b->lock);
    f->by[function].calls++;
    if (address != NULL) {
        f->by[function].bytes += size;
        f->live_blocks += block->address == NULL;
        f->live_bytes += size - block->size;
        f->peak_bytes = f->live_bytes > f->peak_bytes ? f->live_bytes : f->peak_bytes;
        f->biggest = size > f->biggest ? size : f->biggest;
        note_extent(f, address, size);
        block->address = address;
        block->size = size;
    } else if (size > 0) {
        f->by[function].refused++;
    }
    if (block != NULL && block->address != NULL) {
        put_in(b, block);
        block = NULL;
    }
    lock_give(&b->lock);
    free(block);
    return address;
}

/* The entry is allocated first, so that a block that exists can always be entered. */
static void *books_malloc(void *ctx, size_t size)
{
    struct books *b = ctx;
    struct block *block = calloc(1, sizeof *block);
    void *address = block != NULL ? b->behind.malloc(b->behind.ctx, size) : NULL;
    return write_down(b, BOOKS_MALLOC, block, address, size);
}

static void *books_calloc(void *ctx, size_t nelem, size_t elsize)
{
    struct books *b = ctx;
    struct block *block = calloc(1, sizeof *block);
    void *address = block != NULL ? b->behind.calloc(b->behind.ctx, nelem, elsize) : NULL;
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        size = SIZE_MAX;
    return write_down(b, BOOKS_CALLOC, block, address, size);
}

/* Called without the GIL while text is parsed: the lock is what keeps the books together.  It is
 * not held while the handler behind works, which has a lock of its own where it needs one. */
static void *books_realloc(void *ctx, void *ptr, size_t new_size)
{
    struct books *b = ctx;
    lock_take(&b->lock);
    struct block *block = take_out(b, ptr);
    lock_give(&b->lock);
    if (block == NULL)
        block = calloc(1, sizeof *block);
    void *address = block != NULL ? b->behind.realloc(b->behind.ctx, ptr, new_size) : NULL;
    return write_down(b, BOOKS_REALLOC, block, address, new_size);
}

/* Hands `size` on as it came: the handler behind keeps the contract, and does not rely on it. */
static void books_free(void *ctx, void *ptr, size_t size)
{
    struct books *b = ctx;
    struct figures *f = &b->figures;
    lock_take(&b->lock);
    struct block *block = take_out(b, ptr);
    f->by[BOOKS_FREE].calls++;
    f->null_frees += ptr == NULL;
    if (block != NULL) {
        f->by[BOOKS_FREE].bytes += block->size;
        f->live_bytes -= block->size;
        f->live_blocks--;
        f->wrong_sizes += block->size != size;
    }
    lock_give(&b->lock);
    free(block);
    b->behind.free(b->behind.ctx, ptr, size);
}

void books_read(struct books *books, struct figures *figures)
{
    lock_take(&books->lock);
    *figures = books->figures;
    lock_give(&books->lock);
}

bool books_know(struct books *books, const void *address, size_t *size)
{
    lock_take(&books->lock);
    const struct block *block = *find(books, address);
    if (block != NULL)
        *size = block->size;
    lock_give(&books->lock);
    return block != NULL;
}

size_t books_sizes(struct books *books, size_t *sizes, size_t room)
{
    size_t count = 0;
    lock_take(&books->lock);
    for (size_t i = 0; i < sizeof books->buckets / sizeof *books->buckets; i++) {
        for (const struct block *b = books->buckets[i]; b != NULL; b = b->next) {
            if (count < room)
                sizes[count] = b->size;
            count++;
        }
    }
    lock_give(&books->lock);
    return count;
}

static struct books *all;
static struct lock all_lock; /* on that list */

static void open_all_lock(void)
{
    lock_open(&all_lock);
}

/* NumPy looks at none of this, and would crash at the first array. */
static const char *wrong_with(const PyDataMem_Handler *handler)
{
    const PyDataMemAllocator *a = &handler->allocator;
    if (handler->version != 1)
        return text("its version is %d; only 1 is known", handler->version);
    if (a->malloc == NULL || a->calloc == NULL || a->realloc == NULL || a->free == NULL)
        return "one of its four functions is NULL; all of them have to be there";
    return NULL;
}

const char *books_open(struct books *books, const PyDataMem_Handler *behind, const char *owner)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *wrong = wrong_with(behind);
    if (wrong != NULL)
        return wrong;
    books->behind = behind->allocator;
    books->handler.version = 1;
    books->handler.allocator = (PyDataMemAllocator){
        books, books_malloc, books_calloc, books_realloc, books_free,
    };
    /* What get_handler_name tells the script.  The name need not end, and Python wants UTF-8. */
    const char *name = behind->name;
    text_clean(books->handler.name, sizeof books->handler.name, name,
               strnlen(name, sizeof behind->name), 0);
    snprintf(books->owner, sizeof books->owner, "%s", owner);
    pthread_once(&once, open_all_lock);
    lock_open(&books->lock);
    lock_take(&all_lock);
    struct books **last = &all;
    while (*last != NULL)
        last = &(*last)->next;
    *last = books;
    lock_give(&all_lock);
    return NULL;
}

void books_close(struct books *books)
{
    lock_take(&all_lock);
    struct books **link = &all;
    while (*link != books)
        link = &(*link)->next;
    *link = books->next;
    lock_give(&all_lock);
    lock_close(&books->lock);
}

void books_each(void (*each)(struct books *books, void *data), void *data)
{
    lock_take(&all_lock);
    for (struct books *b = all; b != NULL; b = b->next)
        each(b, data);
    lock_give(&all_lock);
}
