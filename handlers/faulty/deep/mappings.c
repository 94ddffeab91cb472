/* SPDX-License-Identifier: BSD-3-Clause
 *
 * From 64 KiB on each block is a mapping of its own, which realloc resizes.  Sixteen freed mappings
 * wait for a block that fits; those that wait longest are purged now and then, and are zero then.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* mremap */
#endif
#include <sys/mman.h>

#include "deep.h"

enum {
    MAPPED_FROM = 1 << 16,
    PAGE = 4096,
    HEAD = 64, /* at the beginning of a mapping */
    WAITING = 16,
    WAITS_MOST = 1 << 20, /* bytes; larger ones do not wait */
    PURGE_EVERY = 40,     /* frees */
    CUT_FROM = 16,        /* so many pages too much are let go of */
};

struct head {
    size_t length;      /* of the mapping */
    bool fresh, purged; /* all but this is zero: it was never used, or let go of */
};

struct mappings {
    struct deep deep;
    unsigned count, frees;
    struct head *waiting[WAITING]; /* the one that waits longest first */
    struct head *noted;            /* what is purged next */
};

OWN_SOUND(mappings);
/* The lengths are compared in units of 64 KiB. */
OWN(mappings_fit_by_64_kib, mappings, DEEP_OVERLAP);
/* The length after a cut is computed without the head. */
OWN(mappings_cut_without_their_head, mappings, DEEP_OVERLAP);
/* A mapping that was purged once counts as zero for good. */
OWN(mappings_stay_purged, mappings, "calloc.zeroed");
/* A mapping that shrank, but not to half, keeps its old length. */
OWN(mappings_shrink_and_stay_as_long, mappings, DEEP_OVERLAP);
/* What waited longest is purged later, when it may be in use. */
OWN(mappings_purge_what_they_gave, mappings, "malloc.neighbours realloc.keeps-contents crash");

static struct head *head_of(const void *p)
{
    return (struct head *)(void *)((char *)p - HEAD);
}

/* As for the blocks of the base, the size stands before. */
static bool is_mapped(const void *p)
{
    return base_size(p) >= MAPPED_FROM;
}
static size_t length_for(size_t size)
{
    return round_up(size + HEAD, PAGE);
}
static void *finish(struct head *head, size_t size)
{
    return base_finish((char *)head + HEAD - BASE_HEADER, size);
}
static struct head *map_new(size_t length)
{
    struct head *head =
        mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (head == MAP_FAILED)
        return NULL;
    *head = (struct head){.length = length, .fresh = true};
    return head;
}

static bool fits(const struct mappings *m, const struct head *head, size_t length)
{
    unsigned shift = slips(m, mappings_fit_by_64_kib) ? 16 : 0;
    return head->length >> shift >= length >> shift && head->length / 4 <= length;
}

/* The one with the least to spare, or NULL. */
static struct head *take_waiting(struct mappings *m, size_t length)
{
    unsigned best = m->count;
    for (unsigned i = 0; i < m->count; i++) {
        if (fits(m, m->waiting[i], length) &&
            (best == m->count || m->waiting[i]->length < m->waiting[best]->length))
            best = i;
    }
    if (best == m->count)
        return NULL;
    struct head *head = m->waiting[best];
    memmove(&m->waiting[best], &m->waiting[best + 1], (--m->count - best) * sizeof(struct head *));
    return head;
}
static void purge(struct mappings *m)
{
    struct head *oldest = m->count > 0 ? m->waiting[0] : NULL;
    struct head *head = slips(m, mappings_purge_what_they_gave) ? m->noted : oldest;
    m->noted = oldest;
    if (head == NULL || head->purged)
        return;
    deep_release((char *)head + PAGE, (char *)head + head->length);
    memset(head + 1, 0, PAGE - sizeof *head);
    head->purged = true;
}

/* One that had to go because another came, or NULL. */
static struct head *wait_for_use(struct mappings *m, struct head *head)
{
    struct head *gone = NULL;
    if (head->length > WAITS_MOST)
        return head;
    if (m->count == WAITING) {
        gone = m->waiting[0];
        memmove(m->waiting, m->waiting + 1, --m->count * sizeof(struct head *));
    }
    m->waiting[m->count++] = head;
    if (m->noted == gone && gone != NULL)
        m->noted = NULL;
    if (++m->frees % PURGE_EVERY == 0)
        purge(m);
    return gone;
}

/* Lets the end of a mapping go where it is far too long. */
static void cut(struct mappings *m, struct head *head, size_t size)
{
    size_t length =
        slips(m, mappings_cut_without_their_head) ? round_up(size, PAGE) : length_for(size);
    if (head->length < length + (size_t)CUT_FROM * PAGE)
        return;
    if (munmap((char *)head + length, head->length - length) == 0)
        head->length = length;
}

/* *zero: all of it is zero. */
static void *take(struct mappings *m, size_t size, bool *zero)
{
    *zero = false;
    if (size < MAPPED_FROM || size > PTRDIFF_MAX / 2)
        return size < MAPPED_FROM ? base_malloc(NULL, size) : NULL;
    deep_lock();
    struct head *head = take_waiting(m, length_for(size));
    deep_unlock();
    if (head != NULL)
        cut(m, head, size);
    else
        head = map_new(length_for(size));
    if (head == NULL)
        return NULL;
    *zero = head->fresh || head->purged;
    head->fresh = false;
    head->purged = slips(m, mappings_stay_purged) && head->purged;
    return nep49_advise(finish(head, size), size);
}
FUNCTION(malloc, mappings)
{
    bool zero;
    return take(ctx, size, &zero);
}
FUNCTION(calloc, mappings)
{
    bool zero;
    void *p = take(ctx, product(nelem, elsize), &zero);
    return p == NULL || zero ? p : memset(p, 0, nelem * elsize);
}
FUNCTION(free, mappings)
{
    if (p == NULL || !is_mapped(p))
        return base_free(NULL, p, size);
    int saved = errno;
    deep_lock();
    struct head *gone = wait_for_use(ctx, head_of(p));
    deep_unlock();
    if (gone != NULL)
        munmap(gone, gone->length);
    errno = saved;
}
static void *resize(struct mappings *m, void *p, size_t size)
{
    struct head *head = head_of(p);
    size_t before = head->length, length = length_for(size);
    if (length <= before && before - length < PAGE)
        return finish(head, size);
    head = mremap(head, before, length, MREMAP_MAYMOVE);
    if (head == MAP_FAILED)
        return NULL;
    if (length > before || !slips(m, mappings_shrink_and_stay_as_long) || length < before / 2)
        head->length = length;
    return finish(head, size);
}
#define moving_malloc mappings_malloc
#define moving_free mappings_free
DERIVE_REALLOC(moving, base_size);
FUNCTION(realloc, mappings)
{
    bool to_map = size >= MAPPED_FROM;
    if (p == NULL || is_mapped(p) != to_map)
        return moving_realloc(ctx, p, size);
    if (!to_map)
        return base_realloc(NULL, p, size);
    return size <= PTRDIFF_MAX / 2 ? resize(ctx, p, size) : NULL;
}
