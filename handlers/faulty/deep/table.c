/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks are libc's, and their sizes stand in a hash table with linear probing, which grows.  What
 * is taken out is filled with the next that may stand there.
 */
#include "deep.h"

enum { AT_FIRST = 1 << 10 };

enum slip {
    CLOSES_NO_GAP_OVER_THE_END = 1,
    GROWS_WITHOUT_THE_FIRST,
    KEEPS_SIZES_IN_24_BITS,
};

struct entry {
    uintptr_t p; /* 0: free */
    size_t size;
};

struct table {
    struct deep deep;
    struct entry *entry;
    size_t room, count;
};

static const struct deep_base table_base; /* it has no memory of its own */

static size_t place_for(const struct table *t, uintptr_t p)
{
    return (size_t)((p >> 4) * 0x9e3779b97f4a7c15u >> 20) & (t->room - 1);
}

/* Where p is, or may come. */
static struct entry *find(struct table *t, uintptr_t p)
{
    size_t i = place_for(t, p);
    while (t->entry[i].p != 0 && t->entry[i].p != p)
        i = (i + 1) & (t->room - 1);
    return &t->entry[i];
}

static bool grow(struct table *t)
{
    struct table before = *t;
    t->room = before.room != 0 ? 2 * before.room : AT_FIRST;
    t->entry = calloc(t->room, sizeof *t->entry);
    if (t->entry == NULL) {
        *t = before;
        return false;
    }
    bool loses = slips(&t->deep, GROWS_WITHOUT_THE_FIRST) && before.room >= 8 * AT_FIRST;
    for (size_t i = 0; i < before.room; i++) {
        if (before.entry[i].p == 0)
            continue;
        if (!loses)
            *find(t, before.entry[i].p) = before.entry[i];
        loses = false;
    }
    free(before.entry);
    return true;
}

/* False where there is no memory for it. */
static bool enter(struct table *t, const void *p, size_t size)
{
    if (t->count + 1 > t->room / 4 * 3 && !grow(t))
        return false;
    if (slips(&t->deep, KEEPS_SIZES_IN_24_BITS) && t->room > AT_FIRST)
        size &= 0xffffff;
    *find(t, (uintptr_t)p) = (struct entry){(uintptr_t)p, size};
    t->count++;
    return true;
}

/* What stands behind a gap and could stand in it moves up, until there is a gap again. */
static void close_gap(struct table *t, size_t gap)
{
    size_t mask = t->room - 1;
    for (size_t i = (gap + 1) & mask; t->entry[i].p != 0; i = (i + 1) & mask) {
        size_t home = place_for(t, t->entry[i].p);
        bool may = ((i - home) & mask) >= ((i - gap) & mask);
        if (slips(&t->deep, CLOSES_NO_GAP_OVER_THE_END))
            may = home <= gap && i > gap;
        if (!may)
            continue;
        t->entry[gap] = t->entry[i];
        gap = i;
    }
    t->entry[gap].p = 0;
}

/* Takes it out.  0 where it is not known. */
static size_t leave(struct table *t, const void *p)
{
    struct entry *entry = find(t, (uintptr_t)p);
    size_t size = entry->size;
    if (entry->p == 0)
        return 0;
    t->count--;
    close_gap(t, (size_t)(entry - t->entry));
    return size;
}

/* ---- the four -------------------------------------------------------------------------------- */

static void *table_entered(struct table *t, void *p, size_t size)
{
    bool done = false;
    if (p == NULL)
        return NULL;
    deep_lock();
    done = enter(t, p, size);
    deep_unlock();
    if (done)
        return p;
    free(p);
    return NULL;
}

static void *table_malloc(void *ctx, size_t size)
{
    return table_entered(ctx, nep49_advise(malloc(size != 0 ? size : 1), size), size);
}

static void *table_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    return table_entered(ctx, nep49_advise(calloc(1, size != 0 ? size : 1), size), size);
}

static size_t table_left(struct table *t, const void *p)
{
    deep_lock();
    size_t size = t->room != 0 ? leave(t, p) : 0;
    deep_unlock();
    return size;
}

static void table_free(void *ctx, void *p, size_t size)
{
    int saved = errno;
    (void)size;
    if (p != NULL)
        table_left(ctx, p);
    free(p);
    errno = saved;
}

static size_t table_size(struct table *t, const void *p)
{
    deep_lock();
    const struct entry *entry = find(t, (uintptr_t)p);
    size_t size = entry->p != 0 ? entry->size : 0;
    deep_unlock();
    return size;
}

static void *table_realloc(void *ctx, void *p, size_t size)
{
    void *moved = table_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    size_t old = table_size(ctx, p);
    memcpy(moved, p, old < size ? old : size);
    table_free(ctx, p, old);
    return moved;
}

#define TABLE_FUNCTIONS                                                                            \
    .malloc = table_malloc, .calloc = table_calloc, .realloc = table_realloc, .free = table_free
#define TABLE(defect, found, slip)                                                                 \
    NEP49_EXPORT const char searched_##defect[] = found;                                           \
    DEEP_HANDLER(defect, table, slip, TABLE_FUNCTIONS)

DEEP_HANDLER(table_sound, table, 0, TABLE_FUNCTIONS);

/* What stands at the beginning because there was no place at the end does not come back there, and
 * is not found. */
TABLE(table_closes_no_gap_over_the_end, "realloc.keeps-contents", CLOSES_NO_GAP_OVER_THE_END);

/* A larger table begins without the first entry, from 8192 places on. */
TABLE(table_grows_without_the_first, "realloc.keeps-contents", GROWS_WITHOUT_THE_FIRST);

/* Once it grew, a size has 24 bits: 16 MiB and 1 byte are 1. */
TABLE(table_keeps_sizes_in_24_bits, "realloc.keeps-contents", KEEPS_SIZES_IN_24_BITS);
