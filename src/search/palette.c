/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Drawing sizes.
 */
#include "search/palette.h"

#include <sys/param.h>

#include "base/clock.h"

enum { PAGE = 4096 };

/* ---- edges ----------------------------------------------------------------------------------- */

/* The least distance of a few blocks of that size, made one after the other; 0: not known. */
static size_t distance(const PyDataMemAllocator *a, size_t size)
{
    enum { BLOCKS = 6 };
    char *p[BLOCKS];
    size_t least = 0;
    for (int i = 0; i < BLOCKS; i++)
        p[i] = a->malloc(a->ctx, size);
    for (int i = 0; i < BLOCKS; i++) {
        for (int k = 0; k < BLOCKS; k++) {
            if (p[i] == NULL || p[k] == NULL || p[k] <= p[i])
                continue;
            size_t apart = (uintptr_t)p[k] - (uintptr_t)p[i];
            least = least == 0 ? apart : MIN(least, apart);
        }
    }
    for (int i = 0; i < BLOCKS; i++) {
        if (p[i] != NULL)
            a->free(a->ctx, p[i], size);
    }
    return least;
}

/* The largest size from `low` on, which is not `high`, that takes as little room as `low`. */
static size_t edge_between(const PyDataMemAllocator *a, size_t low, size_t high)
{
    size_t room = distance(a, low);
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (distance(a, middle) == room)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* From `size` on, up to `to`, until so many are known; returns where it ended. */
static size_t learn(struct palette *palette, const PyDataMemAllocator *a, size_t size, size_t to,
                    uint32_t most, uint64_t until)
{
    size_t before = size, room = distance(a, before);
    while (size < to && palette->count < most && clock_now() < until) {
        size_t here = distance(a, size);
        if (here != room && here != 0 && room != 0) {
            palette->edge[palette->count] = (uint32_t)edge_between(a, before, size);
            palette->count++;
        }
        before = size;
        room = here;
        size += size < 1024 ? 16 : size / 8 / 16 * 16;
    }
    return size;
}

void palette_learn(struct palette *palette, PyDataMem_Handler *handler, bool to_large_ones,
                   uint64_t until)
{
    enum { LEAST = 16, LARGE = 64 << 10, TO = 2 << 20, MOST_SMALL = MOST_EDGES / 5 * 4 };
    const PyDataMemAllocator *a = &handler->allocator;
    size_t end = learn(palette, a, LEAST, LARGE, MOST_SMALL, until);
    if (to_large_ones)
        learn(palette, a, MAX(end, (size_t)LARGE), TO, MOST_EDGES, until);
}

/* ---- drawing --------------------------------------------------------------------------------- */

static size_t beside(struct random *random, size_t size)
{
    static const int steps[] = {0, 0, 0, 1, -1, 8, -8, 16, -16, 7, -7};
    int by = steps[random_below(random, sizeof steps / sizeof *steps)];
    return by < 0 && size <= (size_t)-by ? size : size + (size_t)by;
}

/* So that each power of two is as likely as any other. */
static size_t logarithmic(struct random *random, unsigned from, unsigned to)
{
    size_t power = (size_t)1 << (from + random_below(random, to - from));
    return power + random_below(random, power);
}

/* One of the edges, but for the first ones; now and then well behind it, where a table of classes
 * may have another one than it should. */
static size_t at_edge(const struct palette *palette, struct random *random, uint32_t first)
{
    enum { ONE_IN = 8, BEHIND = 512 };
    size_t edge = palette->edge[first + random_below(random, palette->count - first)];
    if (random_below(random, ONE_IN) == 0)
        return edge + random_below(random, BEHIND);
    return edge + random_below(random, 3) - (random_below(random, 4) == 0);
}

static size_t draw(const struct palette *palette, struct random *random)
{
    enum { SMALL = 13, MIDDLE = 17, LARGE = 26 };
    switch (random_below(random, 16)) {
    case 0:
    case 1:
    case 2:
        return 1 + random_below(random, 256);
    case 3:
    case 4:
        return beside(random, (size_t)1 << random_below(random, SMALL));
    case 5:
    case 6:
    case 7:
    case 8:
        if (palette->count > 0)
            return at_edge(palette, random, 0);
        return 16 * (1 + random_below(random, 64)) + random_below(random, 2);
    case 9:
    case 10:
        return logarithmic(random, 4, SMALL);
    case 11:
        return beside(random, (5 + random_below(random, 4)) << random_below(random, MIDDLE));
    case 12:
        return beside(random, PAGE * (1 + random_below(random, 16)));
    case 13:
        return logarithmic(random, SMALL, MIDDLE);
    case 14:
        return beside(random, (size_t)1 << (SMALL + random_below(random, LARGE - SMALL)));
    default:
        return logarithmic(random, MIDDLE, LARGE);
    }
}

size_t palette_size(const struct palette *palette, struct random *random, size_t most)
{
    for (int tries = 0; tries < 8; tries++) {
        size_t size = draw(palette, random);
        if (size <= most)
            return size;
    }
    return 1 + random_below(random, MIN(most, (size_t)PAGE));
}

size_t palette_edge_from(const struct palette *palette, struct random *random, size_t least)
{
    uint32_t first = 0;
    while (first < palette->count && palette->edge[first] < least)
        first++;
    return first < palette->count ? at_edge(palette, random, first) : 0;
}

size_t palette_neighbour(const struct palette *palette, struct random *random, size_t size)
{
    switch (random_below(random, 8)) {
    case 0:
        return size / 2 + 1;
    case 1:
        return size * 2;
    case 2:
        return size + size / 4 + 1;
    case 3:
        for (uint32_t i = 0; i < palette->count; i++) {
            if (palette->edge[i] >= size)
                return palette->edge[i] + random_below(random, 2);
        }
        return size + 1;
    default:
        return beside(random, size);
    }
}
