/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A heap of chunks with boundary tags: first fit from bins, splitting, coalescing with both
 * neighbours, quick lists for the smallest, and the rest of the memory on top.
 */
#include "deep.h"

enum {
    HEAD = 16, /* before a block */
    LEAST = 32,
    EXACT = 64, /* bins of one size, 16 apart; then one for each power of two */
    BINS = EXACT + 20,
    QUICK_MOST = 160, /* chunks of up to so many bytes are kept as they are */
    QUICKS = QUICK_MOST / 16 + 1,
    CONSOLIDATE_FROM = 4096, /* a request of so many bytes puts an end to that */
    TRIM_FROM = 1 << 18,
    CUT_FROM_THE_END = 1 << 15,
    PAGE = 4096,
};
enum { IN_USE = 1, IN_QUICK = 2, FLAGS = 7 };

enum slip {
    LEAVES_A_SLIVER = 1,
    KEEPS_A_STALE_BACK_LINK,
    KEEPS_A_STALE_VICTIM,
    CONSOLIDATES_ALL_BUT_THE_LAST,
    GROWS_OVER_A_QUICK_ONE,
    TRUSTS_THE_LARGEST_BIN,
    TRIM_LEAVES_A_DIRTY_PAGE,
    TRIMS_A_PAGE_TOO_MUCH,
    CUTS_AT_EIGHT,
    LEAVES_THE_REST_IN_ITS_BIN,
};

struct chunk {
    size_t before; /* size of the chunk that ends here, 0: none */
    size_t size;   /* a multiple of 16, with the flags */
    struct chunk *next, *previous;
};

struct heap {
    struct deep deep;
    char *top, *clean_from; /* all bytes from the latter on are zero, but for a head at the top */
    struct chunk *victim;   /* the rest of what was split last; it is in its bin */
    struct chunk *bin[BINS], *quick[QUICKS];
};

/* ---- chunks ---------------------------------------------------------------------------------- */

static struct chunk *chunk_at(void *from, ptrdiff_t distance)
{
    return (struct chunk *)(void *)((char *)from + distance);
}

static size_t size_of(const struct chunk *c)
{
    return c->size & ~(size_t)FLAGS;
}

static struct chunk *after(const struct chunk *c)
{
    return chunk_at((void *)c, (ptrdiff_t)size_of(c));
}

static bool is_free(const struct chunk *c)
{
    return (c->size & IN_USE) == 0;
}

static void set_size(struct chunk *c, size_t size, size_t flags)
{
    c->size = size | flags;
    after(c)->before = size;
}

static unsigned bin_of(size_t size)
{
    if (size < EXACT * 16)
        return (unsigned)(size / 16);
    unsigned power = 63 - (unsigned)__builtin_clzll(size);
    return power - 10 < BINS - EXACT ? EXACT + power - 10 : BINS - 1;
}

static void put(struct heap *h, struct chunk *c)
{
    struct chunk **head = &h->bin[bin_of(size_of(c))];
    c->previous = NULL;
    c->next = *head;
    if (*head != NULL)
        (*head)->previous = c;
    *head = c;
}

static void unlink_chunk(struct heap *h, struct chunk *c)
{
    if (c->next != NULL)
        c->next->previous = c->previous;
    if (c->previous != NULL)
        c->previous->next = c->next;
    else
        h->bin[bin_of(size_of(c))] = c->next;
}

static void take_out(struct heap *h, struct chunk *c)
{
    if (h->victim == c)
        h->victim = NULL;
    unlink_chunk(h, c);
}

/* ---- what is free ---------------------------------------------------------------------------- */

static void trim(struct heap *h)
{
    char *from = (char *)round_up((uintptr_t)h->top + HEAD, PAGE), *end = h->clean_from;
    if (h->clean_from <= h->top || h->clean_from - h->top < TRIM_FROM)
        return;
    if (slips(&h->deep, TRIMS_A_PAGE_TOO_MUCH) && (uintptr_t)h->top % PAGE > PAGE / 2) {
        size_t before = ((struct chunk *)(void *)h->top)->before;
        from -= PAGE;
        deep_release(from, end);
        ((struct chunk *)(void *)h->top)->before = before;
    } else {
        deep_release(from, end);
    }
    h->clean_from = slips(&h->deep, TRIM_LEAVES_A_DIRTY_PAGE) ? h->top : from;
}

/* A chunk that nobody has and that is in no list: with its neighbours it goes into a bin, or back
 * to the top. */
static void let_go(struct heap *h, struct chunk *c)
{
    struct chunk *next = after(c), *before = chunk_at(c, -(ptrdiff_t)c->before);
    size_t size = size_of(c);
    if ((char *)next != h->top && is_free(next)) {
        if (slips(&h->deep, KEEPS_A_STALE_VICTIM))
            unlink_chunk(h, next);
        else
            take_out(h, next);
        size += size_of(next);
    }
    if (c->before != 0 && is_free(before)) {
        take_out(h, before);
        size += size_of(before);
        c = before;
    }
    if ((char *)c + size == h->top) {
        h->top = (char *)c;
        trim(h);
        return;
    }
    set_size(c, size, 0);
    put(h, c);
}

/* All that is in quick lists becomes free. */
static void consolidate(struct heap *h)
{
    struct chunk *next;
    for (unsigned i = 0; i < QUICKS; i++) {
        struct chunk *c = h->quick[i];
        if (!slips(&h->deep, CONSOLIDATES_ALL_BUT_THE_LAST) || i < QUICKS - 1)
            h->quick[i] = NULL;
        for (; c != NULL; c = next) {
            next = c->next;
            let_go(h, c);
        }
    }
}

/* Makes a chunk in use as small as wanted, where the rest is one as well. */
static void split(struct heap *h, struct chunk *c, size_t wanted, size_t least)
{
    size_t size = size_of(c);
    if (size - wanted < least)
        return;
    struct chunk *rest = chunk_at(c, (ptrdiff_t)wanted);
    set_size(c, wanted, IN_USE);
    set_size(rest, size - wanted, IN_USE);
    let_go(h, rest);
    if ((char *)rest < h->top && is_free(rest))
        h->victim = rest;
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* Rounded so that the next chunk begins at 16 bytes again. */
static size_t wanted_for(size_t size)
{
    size_t wanted = round_up(size + HEAD, 16);
    return wanted < LEAST ? LEAST : wanted;
}

static struct chunk *find(struct heap *h, size_t wanted)
{
    if (wanted < EXACT * 16 && h->victim != NULL && size_of(h->victim) >= wanted)
        return h->victim;
    for (unsigned i = bin_of(wanted); i < BINS; i++) {
        for (struct chunk *c = h->bin[i]; c != NULL; c = c->next) {
            bool trusted = slips(&h->deep, TRUSTS_THE_LARGEST_BIN) && wanted >= 1 << 18;
            if (size_of(c) >= wanted || trusted)
                return c;
        }
    }
    return NULL;
}

/* The front of a chunk, and the end of one for a large request: small ones then stay together. */
static struct chunk *cut(struct heap *h, struct chunk *c, size_t wanted, size_t asked)
{
    size_t size = size_of(c);
    bool from_end = wanted >= CUT_FROM_THE_END && size >= wanted + CUT_FROM_THE_END;
    bool stays = from_end && slips(&h->deep, LEAVES_THE_REST_IN_ITS_BIN);
    if (!stays)
        take_out(h, c);
    if (!from_end) {
        c->size |= IN_USE;
        if (size > wanted)
            split(h, c, wanted, LEAST);
        return c;
    }
    if (slips(&h->deep, CUTS_AT_EIGHT))
        wanted = round_up(asked + HEAD, 8);
    struct chunk *end = chunk_at(c, (ptrdiff_t)(size - wanted));
    set_size(c, size - wanted, 0);
    set_size(end, wanted, IN_USE);
    if (!stays)
        put(h, c);
    return end;
}

static struct chunk *from_top(struct heap *h, size_t wanted, bool *zero)
{
    char *end = deep_begin(&h->deep) + h->deep.base->reserve;
    struct chunk *c = chunk_at(h->top, 0);
    if ((size_t)(end - h->top) < wanted + LEAST)
        return NULL;
    h->top += wanted;
    set_size(c, wanted, IN_USE);
    *zero = (char *)c + HEAD >= h->clean_from;
    if (h->clean_from < h->top + HEAD)
        h->clean_from = h->top + HEAD;
    return c;
}

static void *heap_take(struct deep *d, size_t size, bool *zero)
{
    struct heap *h = (struct heap *)d;
    size_t wanted = wanted_for(size);
    struct chunk *c = wanted <= QUICK_MOST ? h->quick[wanted / 16] : NULL;
    if (h->top == NULL)
        h->top = h->clean_from = deep_begin(d);
    if (c != NULL) {
        h->quick[wanted / 16] = c->next;
        c->size &= ~(size_t)IN_QUICK;
        return (char *)c + HEAD;
    }
    if (wanted >= CONSOLIDATE_FROM)
        consolidate(h);
    c = find(h, wanted);
    c = c != NULL ? cut(h, c, wanted, size) : from_top(h, wanted, zero);
    return c != NULL ? (char *)c + HEAD : NULL;
}

static void heap_give(struct deep *d, void *p)
{
    struct heap *h = (struct heap *)d;
    struct chunk *c = chunk_at(p, -HEAD);
    if (size_of(c) > QUICK_MOST) {
        let_go(h, c);
        return;
    }
    c->size |= IN_QUICK;
    c->next = h->quick[size_of(c) / 16];
    h->quick[size_of(c) / 16] = c;
}

/* ---- in place -------------------------------------------------------------------------------- */

static size_t heap_room(struct deep *d, void *p)
{
    (void)d;
    return size_of(chunk_at(p, -HEAD)) - HEAD;
}

/* Into the top, as far as that goes. */
static bool grow_at_top(struct heap *h, struct chunk *c, size_t wanted)
{
    char *end = deep_begin(&h->deep) + h->deep.base->reserve;
    if ((char *)after(c) != h->top || (size_t)(end - (char *)c) < wanted + LEAST)
        return false;
    h->top = (char *)c + wanted;
    set_size(c, wanted, IN_USE);
    if (h->clean_from < h->top + HEAD)
        h->clean_from = h->top + HEAD;
    return true;
}

static bool may_grow_over(const struct heap *h, const struct chunk *next)
{
    return is_free(next) || (slips(&h->deep, GROWS_OVER_A_QUICK_ONE) && (next->size & IN_QUICK));
}

static bool grow(struct heap *h, struct chunk *c, size_t wanted)
{
    struct chunk *next = after(c);
    size_t both = size_of(c) + size_of(next);
    if (grow_at_top(h, c, wanted))
        return true;
    if ((char *)next == h->top || !may_grow_over(h, next) || both < wanted)
        return false;
    if (is_free(next))
        take_out(h, next);
    if (slips(&h->deep, KEEPS_A_STALE_BACK_LINK) && both - wanted < LEAST)
        c->size = both | IN_USE;
    else
        set_size(c, both, IN_USE);
    split(h, c, wanted, LEAST);
    return true;
}

static bool heap_resize(struct deep *d, void *p, size_t size)
{
    struct heap *h = (struct heap *)d;
    struct chunk *c = chunk_at(p, -HEAD);
    size_t wanted = wanted_for(size);
    if (wanted > size_of(c))
        return grow(h, c, wanted);
    if (wanted < size_of(c))
        split(h, c, wanted, slips(d, LEAVES_A_SLIVER) ? 16 : LEAST);
    return true;
}

static const struct deep_base heap_base = {
    .most = 1 << 20,
    .reserve = (size_t)128 << 20,
    .take = heap_take,
    .give = heap_give,
    .room = heap_room,
    .resize = heap_resize,
};

DEEP_SOUND(heap);

/* What is left behind a block that shrank is 16 bytes, in which the links of its bin do not fit. */
DEEP(heap_leaves_a_sliver, DEEP_OVERLAP, heap, LEAVES_A_SLIVER);

/* A block grows over all of the next, and the one behind that still says how large that was. */
DEEP(heap_keeps_a_stale_back_link, DEEP_OVERLAP, heap, KEEPS_A_STALE_BACK_LINK);

/* The rest of what was split last is part of its neighbour by now. */
DEEP(heap_keeps_a_stale_victim, DEEP_OVERLAP, heap, KEEPS_A_STALE_VICTIM);

/* Of the largest quick list all chunks are free, and in the list. */
DEEP(heap_consolidates_all_but_the_last, DEEP_OVERLAP, heap, CONSOLIDATES_ALL_BUT_THE_LAST);

/* The neighbour was freed just before, and waits in its quick list for whoever wants it. */
DEEP(heap_grows_over_a_quick_one, DEEP_OVERLAP, heap, GROWS_OVER_A_QUICK_ONE);

/* From 256 KiB on the first chunk of its bin is taken for large enough. */
DEEP(heap_trusts_the_largest_bin, DEEP_OVERLAP, heap, TRUSTS_THE_LARGEST_BIN);

/* What lies between the top and the next page is not let go of, and is taken for zero. */
DEEP(heap_trim_leaves_a_dirty_page, "calloc.zeroed", heap, TRIM_LEAVES_A_DIRTY_PAGE);

/* The page in which the last block ends is let go of as well. */
DEEP(heap_trims_a_page_too_much, DEEP_OVERLAP, heap, TRIMS_A_PAGE_TOO_MUCH);

/* What is cut from the end of a chunk is rounded to 8. */
DEEP(heap_cuts_at_eight, "malloc.alignment calloc.alignment realloc.alignment", heap,
     CUTS_AT_EIGHT);

/* What is left of a chunk whose end was cut off stays in its bin, which is for larger ones. */
DEEP(heap_leaves_the_rest_in_its_bin, DEEP_OVERLAP, heap, LEAVES_THE_REST_IN_ITS_BIN);
