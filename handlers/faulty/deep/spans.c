/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Spans of whole pages, in a list for each length up to 128 and one for the others.  A map has the
 * span of each first and last page, by which neighbours are found.  The memory of free spans is
 * released after some time; such a span is clean.
 */
#include "deep.h"

enum {
    PAGE = 4096,
    PAGES = 1 << 15,
    LISTED = 128,
    RETURN_EVERY = 64, /* frees */
    RETURNED_AT_ONCE = 32,
};

struct span {
    uint32_t first; /* of the last page: the first one */
    uint32_t length;
    bool free, clean;
    uint32_t next, previous; /* first pages + 1 */
};

struct spans {
    struct deep deep;
    uint32_t made; /* pages that were ever given out */
    uint32_t frees;
    uint32_t hint;             /* the long span that became free last, + 1; 0: none is known */
    uint32_t list[LISTED + 1]; /* first pages + 1 */
    struct span map[PAGES + 1];
};

DEEP_SOUND(spans);
/* The last page of the first part names an older span. */
DEEP(spans_splits_without_an_end, spans, DEEP_OVERLAP);
/* Only eight bits of the length of long spans are compared. */
DEEP(spans_compares_a_byte, spans, DEEP_OVERLAP);
/* A span that merges into a clean one counts as clean. */
DEEP(spans_merges_into_a_clean_one, spans, "calloc.zeroed");
/* A long span is released in steps of 32 pages; the last step passes its end. */
DEEP(spans_returns_by_thirty_two, spans, "malloc.neighbours realloc.keeps-contents");
/* A block that grows over all of the next span leaves a free span of no pages. */
DEEP(spans_leaves_an_empty_rest, spans, DEEP_OVERLAP);
/* A block grows over the long span that was freed last, and the hint to that stays. */
DEEP(spans_keeps_a_stale_hint, spans, DEEP_OVERLAP);

static char *page_at(struct spans *s, uint32_t page)
{
    return deep_begin(&s->deep) + (size_t)page * PAGE;
}
static uint32_t page_of(struct spans *s, const void *p)
{
    return (uint32_t)(((const char *)p - deep_begin(&s->deep)) / PAGE);
}
static uint32_t *list_for(struct spans *s, uint32_t length)
{
    return &s->list[length < LISTED ? length : LISTED];
}

/* Enters a span in the map. */
static void enter(struct spans *s, uint32_t first, uint32_t length, bool free)
{
    s->map[first].first = first;
    s->map[first].length = length;
    s->map[first].free = free;
    if (length > 0)
        s->map[first + length - 1].first = first;
}
static void put(struct spans *s, uint32_t first, uint32_t length, bool clean)
{
    uint32_t *head = list_for(s, length);
    enter(s, first, length, true);
    s->map[first].clean = clean;
    s->map[first].previous = 0;
    s->map[first].next = *head;
    if (*head != 0)
        s->map[*head - 1].previous = first + 1;
    *head = first + 1;
    if (length >= LISTED)
        s->hint = first + 1;
}
static void unlink_span(struct spans *s, uint32_t first)
{
    struct span *span = &s->map[first];
    if (span->next != 0)
        s->map[span->next - 1].previous = span->previous;
    if (span->previous != 0)
        s->map[span->previous - 1].next = span->next;
    else
        *list_for(s, span->length) = span->next;
}
static void take_out(struct spans *s, uint32_t first)
{
    if (s->hint == first + 1)
        s->hint = 0;
    unlink_span(s, first);
}

/* The first page of a free span, + 1; 0: none. */
static uint32_t find(struct spans *s, uint32_t wanted)
{
    uint32_t best = 0;
    if (wanted >= LISTED && s->hint != 0 && s->map[s->hint - 1].length == wanted)
        return s->hint;
    for (uint32_t length = wanted; length < LISTED; length++) {
        if (s->list[length] != 0)
            return s->list[length];
    }
    bool compares_a_byte = slips(s, spans_compares_a_byte);
    for (uint32_t at = s->list[LISTED]; at != 0; at = s->map[at - 1].next) {
        uint32_t length = s->map[at - 1].length;
        bool fits = compares_a_byte ? (uint8_t)length >= (uint8_t)wanted : length >= wanted;
        if (fits && (best == 0 || length < s->map[best - 1].length))
            best = at;
    }
    return best;
}

/* Makes a span in use as long as wanted. */
static void split(struct spans *s, uint32_t first, uint32_t wanted, bool clean)
{
    uint32_t length = s->map[first].length, end = s->map[first + wanted - 1].first;
    enter(s, first, wanted, false);
    put(s, first + wanted, length - wanted, clean);
    if (slips(s, spans_splits_without_an_end) && wanted > 1)
        s->map[first + wanted - 1].first = end;
}
static void *spans_take(struct deep *d, size_t size, bool *zero)
{
    struct spans *s = (struct spans *)d;
    uint32_t wanted = (uint32_t)((size + PAGE - 1) / PAGE), at = find(s, wanted), first = at - 1;
    if (at != 0) {
        bool clean = s->map[first].clean;
        take_out(s, first);
        if (s->map[first].length > wanted)
            split(s, first, wanted, clean);
        else
            enter(s, first, s->map[first].length, false);
        *zero = clean;
        return page_at(s, first);
    }
    if (wanted > PAGES - s->made)
        return NULL;
    first = s->made;
    s->made += wanted;
    enter(s, first, wanted, false);
    *zero = true;
    return page_at(s, first);
}

/* Releases the first span of each list. */
static void return_some(struct spans *s)
{
    for (unsigned i = 1; i <= LISTED; i++) {
        uint32_t first = s->list[i] - 1;
        if (s->list[i] == 0 || s->map[first].clean)
            continue;
        uint32_t length = s->map[first].length;
        if (slips(s, spans_returns_by_thirty_two) && length > RETURNED_AT_ONCE)
            length = (uint32_t)round_up(length, RETURNED_AT_ONCE);
        deep_release(page_at(s, first), page_at(s, (uint32_t)min(first + length, PAGES)));
        s->map[first].clean = true;
    }
}
static void let_go(struct spans *s, uint32_t first, uint32_t length)
{
    bool clean = false;
    uint32_t next = first + length, before = first > 0 ? s->map[first - 1].first : 0;
    if (next < s->made && s->map[next].free) {
        take_out(s, next);
        length += s->map[next].length;
        s->map[next].free = false;
    }
    if (first > 0 && s->map[before].free) {
        take_out(s, before);
        length += s->map[before].length;
        clean = slips(s, spans_merges_into_a_clean_one) && s->map[before].clean;
        s->map[first].free = false;
        first = before;
    }
    put(s, first, length, clean);
}
static void spans_give(struct deep *d, void *p)
{
    struct spans *s = (struct spans *)d;
    uint32_t first = page_of(s, p);
    let_go(s, first, s->map[first].length);
    if (++s->frees % RETURN_EVERY == 0)
        return_some(s);
}

DEEP_ROOM(spans, (size_t)own->map[page_of(own, p)].length *PAGE);
static bool grow(struct spans *s, uint32_t first, uint32_t length, uint32_t wanted)
{
    uint32_t next = first + length;
    if (next >= s->made || !s->map[next].free || length + s->map[next].length < wanted)
        return false;
    uint32_t both = length + s->map[next].length;
    bool clean = s->map[next].clean;
    if (slips(s, spans_keeps_a_stale_hint))
        unlink_span(s, next);
    else
        take_out(s, next);
    s->map[next].free = false;
    enter(s, first, both, false);
    if (both > wanted)
        split(s, first, wanted, clean);
    else if (slips(s, spans_leaves_an_empty_rest))
        put(s, first + wanted, 0, clean);
    return true;
}
static bool spans_resize(struct deep *d, void *p, size_t size)
{
    struct spans *s = (struct spans *)d;
    uint32_t first = page_of(s, p), length = s->map[first].length;
    uint32_t wanted = (uint32_t)((size + PAGE - 1) / PAGE);
    if (wanted > length)
        return grow(s, first, length, wanted);
    if (wanted < length) {
        enter(s, first, wanted, false);
        enter(s, first + wanted, length - wanted, false);
        let_go(s, first + wanted, length - wanted);
    }
    return true;
}

DEEP_BASE(spans, .least = 2049, .most = 4 << 20, .reserve = (size_t)PAGES * PAGE,
          .resize = spans_resize);
