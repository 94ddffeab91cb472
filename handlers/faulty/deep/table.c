/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks of libc, whose sizes are in a hash table with linear probing, which grows.  A removed
 * entry is replaced by the next one that may be in its place.
 */
#include "deep.h"

enum { AT_FIRST = 1 << 10 };

struct entry {
    uintptr_t p; /* 0: free */
    size_t size;
};

struct table {
    struct deep deep;
    struct entry *entry;
    size_t room, count;
};

OWN_SOUND(table);
/* An entry that wrapped to the beginning does not move back, and is not found. */
OWN(table_closes_no_gap_over_the_end, table, "realloc.keeps-contents");
/* From 8192 places on a larger table lacks the first entry. */
OWN(table_grows_without_the_first, table, "realloc.keeps-contents");
/* After the table grew, a size has 24 bits. */
OWN(table_keeps_sizes_in_24_bits, table, "realloc.keeps-contents");

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
    bool loses = slips(t, table_grows_without_the_first) && before.room >= 8 * AT_FIRST;
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
    if (slips(t, table_keeps_sizes_in_24_bits) && t->room > AT_FIRST)
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
        if (slips(t, table_closes_no_gap_over_the_end))
            may = home <= gap && i > gap;
        if (!may)
            continue;
        t->entry[gap] = t->entry[i];
        gap = i;
    }
    t->entry[gap].p = 0;
}

static void leave(struct table *t, const void *p)
{
    struct entry *entry = find(t, (uintptr_t)p);
    if (entry->p == 0)
        return;
    t->count--;
    close_gap(t, (size_t)(entry - t->entry));
}

static void *entered(struct table *t, void *p, size_t size)
{
    LOCK(deep_mutex);
    if (p == NULL || enter(t, p, size))
        return p;
    free(p);
    return NULL;
}
FUNCTION_RETURNS(malloc, table,
                 entered(ctx, nep49_advise(malloc(size != 0 ? size : 1), size), size));
FUNCTION(calloc, table)
{
    size_t size = product(nelem, elsize);
    return entered(ctx, nep49_advise(calloc(1, size != 0 ? size : 1), size), size);
}
FUNCTION(free, table)
{
    int saved = errno;
    struct table *t = ctx;
    if (p != NULL) {
        LOCK(deep_mutex);
        if (t->room != 0)
            leave(t, p);
    }
    free(p);
    errno = saved;
}
static size_t size_in(struct table *t, const void *p)
{
    LOCK(deep_mutex);
    const struct entry *entry = find(t, (uintptr_t)p);
    return entry->p != 0 ? entry->size : 0;
}
#define table_size(p) size_in(ctx, p)
DERIVE_REALLOC(table, table_size);
