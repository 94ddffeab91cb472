/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A heap of chunks with boundary tags: first fit from bins, splitting, coalescing with both
 * neighbours, quick lists for the smallest, and the rest of the memory on top.
 */
#include <stddef.h>

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

/* A block is in the place of its link. */
struct chunk {
    size_t before; /* size of the chunk that ends here, 0: none */
    size_t size;   /* a multiple of 16, with the flags */
    struct link link;
};

struct heap {
    struct deep deep;
    char *top, *clean_from; /* all bytes from the latter on are zero, but for a head at the top */
    struct chunk *victim;   /* the rest of what was split last; it is in its bin */
    struct link *bin[BINS], *quick[QUICKS];
};

DEEP_SOUND(heap);
/* The rest of a block that shrank has 16 bytes: too few for the links of its bin. */
DEEP(heap_leaves_a_sliver, heap, DEEP_OVERLAP);
/* A block grows over all of the next one, and the chunk after that keeps its old size. */
DEEP(heap_keeps_a_stale_back_link, heap, DEEP_OVERLAP);
/* The rest of the last split was merged with its neighbor, and is used again. */
DEEP(heap_keeps_a_stale_victim, heap, DEEP_OVERLAP);
/* The chunks of the largest quick list are freed, and stay in the list. */
DEEP(heap_consolidates_all_but_the_last, heap, DEEP_OVERLAP);
/* A block grows over a chunk that is in a quick list. */
DEEP(heap_grows_over_a_quick_one, heap, DEEP_OVERLAP);
/* From 256 KiB on the first chunk of a bin is used without a check of its size. */
DEEP(heap_trusts_the_largest_bin, heap, DEEP_OVERLAP);
/* The bytes between the top and the next page are not released, and count as zero. */
DEEP(heap_trim_leaves_a_dirty_page, heap, "calloc.zeroed");
/* The page in which the last block ends is released too. */
DEEP(heap_trims_a_page_too_much, heap, DEEP_OVERLAP);
/* A block that is cut from the end of a chunk is rounded to 8. */
DEEP(heap_cuts_at_eight, heap, "malloc.alignment calloc.alignment realloc.alignment");
/* A chunk whose end was cut off stays in the bin of its old size. */
DEEP(heap_leaves_the_rest_in_its_bin, heap, DEEP_OVERLAP);

static struct chunk *chunk_at(void *from, ptrdiff_t distance)
{
    return (struct chunk *)(void *)((char *)from + distance);
}
static struct chunk *chunk_of(struct link *link)
{
    return chunk_at(link, -(ptrdiff_t)offsetof(struct chunk, link));
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
    link_first(&h->bin[bin_of(size_of(c))], &c->link);
}
static void unlink_chunk(struct heap *h, struct chunk *c)
{
    link_remove(&h->bin[bin_of(size_of(c))], &c->link);
}
static void take_out(struct heap *h, struct chunk *c)
{
    if (h->victim == c)
        h->victim = NULL;
    unlink_chunk(h, c);
}

static void trim(struct heap *h)
{
    struct chunk *top = chunk_at(h->top, 0);
    char *from = (char *)round_up((uintptr_t)h->top + HEAD, PAGE);
    if (h->clean_from - h->top < TRIM_FROM)
        return;
    size_t before = top->before;
    if (slips(h, heap_trims_a_page_too_much) && (uintptr_t)h->top % PAGE > PAGE / 2)
        from -= PAGE;
    deep_release(from, h->clean_from);
    top->before = before;
    h->clean_from = slips(h, heap_trim_leaves_a_dirty_page) ? h->top : from;
}

/* Frees a chunk that is in no list: with its free neighbours it goes into a bin or to the top. */
static void let_go(struct heap *h, struct chunk *c)
{
    struct chunk *next = after(c), *before = chunk_at(c, -(ptrdiff_t)c->before);
    size_t size = size_of(c);
    if ((char *)next != h->top && is_free(next)) {
        if (slips(h, heap_keeps_a_stale_victim))
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

/* Frees all chunks of quick lists. */
static void consolidate(struct heap *h)
{
    for (unsigned i = 0; i < QUICKS; i++) {
        struct link *link = h->quick[i], *next;
        if (!slips(h, heap_consolidates_all_but_the_last) || i < QUICKS - 1)
            h->quick[i] = NULL;
        for (; link != NULL; link = next) {
            next = link->next;
            let_go(h, chunk_of(link));
        }
    }
}

/* Makes a live chunk as small as wanted, if the rest has at least `least` bytes. */
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
        for (struct link *link = h->bin[i]; link != NULL; link = link->next) {
            struct chunk *c = chunk_of(link);
            bool trusted = slips(h, heap_trusts_the_largest_bin) && wanted >= 1 << 18;
            if (size_of(c) >= wanted || trusted)
                return c;
        }
    }
    return NULL;
}

/* Takes the front of a chunk, or its end for a large request, so that small chunks stay together.
 */
static struct chunk *cut(struct heap *h, struct chunk *c, size_t wanted, size_t asked)
{
    size_t size = size_of(c);
    bool from_end = wanted >= CUT_FROM_THE_END && size >= wanted + CUT_FROM_THE_END;
    bool stays = from_end && slips(h, heap_leaves_the_rest_in_its_bin);
    if (!stays)
        take_out(h, c);
    if (!from_end) {
        c->size |= IN_USE;
        if (size > wanted)
            split(h, c, wanted, LEAST);
        return c;
    }
    if (slips(h, heap_cuts_at_eight))
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
    struct link *first = wanted <= QUICK_MOST ? h->quick[wanted / 16] : NULL;
    if (h->top == NULL)
        h->top = h->clean_from = deep_begin(d);
    if (first != NULL) {
        h->quick[wanted / 16] = first->next;
        chunk_of(first)->size &= ~(size_t)IN_QUICK;
        return first;
    }
    if (wanted >= CONSOLIDATE_FROM)
        consolidate(h);
    struct chunk *c = find(h, wanted);
    c = c != NULL ? cut(h, c, wanted, size) : from_top(h, wanted, zero);
    return c != NULL ? &c->link : NULL;
}
static void heap_give(struct deep *d, void *p)
{
    struct heap *h = (struct heap *)d;
    struct chunk *c = chunk_of(p);
    size_t size = size_of(c);
    if (size > QUICK_MOST)
        return let_go(h, c);
    c->size |= IN_QUICK;
    c->link.next = h->quick[size / 16];
    h->quick[size / 16] = &c->link;
}

DEEP_ROOM(heap, size_of(chunk_of(p)) - HEAD);

/* Grows the last chunk into the top. */
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
static bool grow(struct heap *h, struct chunk *c, size_t wanted)
{
    struct chunk *next = after(c);
    size_t both = size_of(c) + size_of(next);
    if (grow_at_top(h, c, wanted))
        return true;
    bool is_quick = slips(h, heap_grows_over_a_quick_one) && (next->size & IN_QUICK) != 0;
    if ((char *)next == h->top || !(is_free(next) || is_quick) || both < wanted)
        return false;
    if (is_free(next))
        take_out(h, next);
    if (slips(h, heap_keeps_a_stale_back_link) && both - wanted < LEAST)
        c->size = both | IN_USE;
    else
        set_size(c, both, IN_USE);
    split(h, c, wanted, LEAST);
    return true;
}
static bool heap_resize(struct deep *d, void *p, size_t size)
{
    struct heap *h = (struct heap *)d;
    struct chunk *c = chunk_of(p);
    size_t wanted = wanted_for(size);
    if (wanted > size_of(c))
        return grow(h, c, wanted);
    if (wanted < size_of(c))
        split(h, c, wanted, slips(d, heap_leaves_a_sliver) ? 16 : LEAST);
    return true;
}

DEEP_BASE(heap, .most = 1 << 20, .reserve = (size_t)128 << 20, .resize = heap_resize);
