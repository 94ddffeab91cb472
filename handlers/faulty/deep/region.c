/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Regions of 4 MiB with contiguous blocks.  A region counts its live blocks and begins again when
 * there are none; its last block may grow and shrink.
 */
#include "deep.h"

enum {
    REGION = 1 << 22,
    REGIONS = 24,
    HEAD = 16, /* of a block: what there is room for */
};

struct one {
    uint32_t used, clean_from; /* bytes */
    uint32_t live;             /* blocks */
    uint32_t last;             /* the head of the last block; UINT32_MAX: none is known */
};

struct region {
    struct deep deep;
    unsigned current;
    struct one one[REGIONS];
};

DEEP_SOUND(region);
/* If one of 65,537 blocks is freed, none seems to live. */
DEEP(region_counts_in_sixteen_bits, region, DEEP_OVERLAP);
/* The last block shrinks, and keeps its old room. */
DEEP(region_shrinks_and_keeps_its_room, region, DEEP_OVERLAP);
/* A region that was full and is empty counts as unused. */
DEEP(region_begins_anew_as_clean, region, "calloc.zeroed");
/* All blocks count as freed when the process exits. */
DEEP(region_is_swept_at_exit, region, DEEP_OVERLAP);

static struct one *one_of(struct region *r, const void *p, uint32_t *at)
{
    size_t distance = (size_t)((const char *)p - deep_begin(&r->deep)) - HEAD;
    *at = (uint32_t)(distance % REGION);
    return &r->one[distance / REGION];
}

/* At least 16 bytes: a zero-size block at the end of a region would be outside. */
static uint32_t wanted_for(size_t size)
{
    return (uint32_t)round_up(size != 0 ? size : 1, 16);
}

/* The current region, or the next one with room. */
static struct one *with_room(struct region *r, uint32_t wanted)
{
    for (unsigned i = 0; i < REGIONS; i++) {
        struct one *one = &r->one[r->current];
        if (REGION - one->used >= wanted + HEAD)
            return one;
        r->current = (r->current + 1) % REGIONS;
    }
    return NULL;
}
static struct region *swept;

static void sweep(void)
{
    memset(swept->one, 0, sizeof swept->one);
}
static void *region_take(struct deep *d, size_t size, bool *zero)
{
    struct region *r = (struct region *)d;
    if (slips(d, region_is_swept_at_exit) && swept == NULL) {
        swept = r;
        atexit(sweep);
    }
    uint32_t wanted = wanted_for(size);
    struct one *one = with_room(r, wanted);
    if (one == NULL)
        return NULL;
    char *p = deep_begin(d) + (size_t)r->current * REGION + one->used + HEAD;
    *zero = one->used >= one->clean_from;
    one->last = one->used;
    one->used += HEAD + wanted;
    one->live++;
    if (one->clean_from < one->used)
        one->clean_from = one->used;
    base_finish(p - HEAD, wanted);
    return p;
}

static void region_give(struct deep *d, void *p)
{
    struct region *r = (struct region *)d;
    uint32_t at;
    struct one *one = one_of(r, p, &at);
    if (at == one->last) {
        one->used = at;
        one->last = UINT32_MAX;
    }
    one->live--;
    if (slips(d, region_counts_in_sixteen_bits) ? (uint16_t)one->live != 0 : one->live != 0)
        return;
    if (slips(d, region_begins_anew_as_clean) && one != &r->one[r->current])
        one->clean_from = 0;
    one->used = 0;
    one->last = UINT32_MAX;
}
DEEP_ROOM(region, base_size(p));
static bool region_resize(struct deep *d, void *p, size_t size)
{
    struct region *r = (struct region *)d;
    uint32_t at, wanted = wanted_for(size);
    struct one *one = one_of(r, p, &at);
    if (at != one->last)
        return wanted <= base_size(p);
    if (REGION - at - HEAD < wanted)
        return false;
    one->used = at + HEAD + wanted;
    if (one->clean_from < one->used)
        one->clean_from = one->used;
    if (wanted > base_size(p) || !slips(d, region_shrinks_and_keeps_its_room))
        base_finish((char *)p - HEAD, wanted);
    return true;
}

DEEP_BASE(region, .most = 1 << 16, .reserve = (size_t)REGIONS * REGION, .resize = region_resize);
