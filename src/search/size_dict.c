/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Drawing sizes.
 */
#include "search/size_dict.h"

#include <sys/param.h>

#include "base/clock.h"

enum { PAGE = 4096 };

/* ---- edges ----------------------------------------------------------------------------------- */

/* The least distance of a few blocks of that size, made one after the other; 0: not known. */
static size_t distance(const PyDataMemAllocator *a, size_t size)
{
    enum { LARGE = 1024, MOST = 6 };
    int blocks = size > LARGE ? MOST / 2 : MOST; /* pages that are touched take time */
    char *p[MOST];
    size_t least = 0;
    for (int i = 0; i < blocks; i++)
        p[i] = a->malloc(a->ctx, size);
    for (int i = 0; i < blocks; i++) {
        for (int k = 0; k < blocks; k++) {
            if (p[i] == NULL || p[k] == NULL || p[k] <= p[i])
                continue;
            size_t apart = (uintptr_t)p[k] - (uintptr_t)p[i];
            least = least == 0 ? apart : MIN(least, apart);
        }
    }
    for (int i = 0; i < blocks; i++) {
        if (p[i] != NULL)
            a->free(a->ctx, p[i], size);
    }
    return least;
}

/* The largest size from `low` on, which is not `high`, that takes as little room as `low`: most
 * likely the next one that is a multiple of 16, as in handlers without classes. */
static size_t edge_between(const PyDataMemAllocator *a, size_t room, size_t low, size_t high)
{
    for (size_t step = 16; high - low > 1; step = high) {
        size_t middle = low + MIN(step, (high - low) / 2);
        if (distance(a, middle) == room)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* From `size` on, up to `to`, until so many are known; returns where it ended. */
static size_t learn(struct size_dict *size_dict, const PyDataMemAllocator *a, size_t size,
                    size_t to, uint32_t most, uint64_t until)
{
    size_t before = size, room = distance(a, before);
    while (size < to && size_dict->count < most && clock_now() < until) {
        size_t here = distance(a, size);
        if (here != room && here != 0 && room != 0) {
            size_dict->edge[size_dict->count] = (uint32_t)edge_between(a, room, before, size);
            size_dict->count++;
        }
        before = size;
        room = here;
        size += size < 1024 ? 16 : size / 8 / 16 * 16;
    }
    return size;
}

void size_dict_learn(struct size_dict *size_dict, PyDataMem_Handler *handler, bool to_large_ones,
                     uint64_t until)
{
    enum { LEAST = 16, LARGE = 64 << 10, TO = 2 << 20, MOST_SMALL = MOST_EDGES / 5 * 4 };
    const PyDataMemAllocator *a = &handler->allocator;
    size_t end = learn(size_dict, a, LEAST, LARGE, MOST_SMALL, until);
    if (to_large_ones)
        learn(size_dict, a, MAX(end, (size_t)LARGE), TO, MOST_EDGES, until);
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
static size_t at_edge(const struct size_dict *size_dict, struct random *random, uint32_t first)
{
    enum { ONE_IN = 8, BEHIND = 512 };
    size_t edge = size_dict->edge[first + random_below(random, size_dict->count - first)];
    if (random_below(random, ONE_IN) == 0)
        return edge + random_below(random, BEHIND);
    return edge + random_below(random, 3) - (random_below(random, 4) == 0);
}

static size_t draw(const struct size_dict *size_dict, struct random *random)
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
        if (size_dict->count > 0)
            return at_edge(size_dict, random, 0);
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

size_t size_dict_size(const struct size_dict *size_dict, struct random *random, size_t most)
{
    for (int tries = 0; tries < 8; tries++) {
        size_t size = draw(size_dict, random);
        if (size <= most)
            return size;
    }
    return 1 + random_below(random, MIN(most, (size_t)PAGE));
}

size_t size_dict_edge_from(const struct size_dict *size_dict, struct random *random, size_t least)
{
    uint32_t first = 0;
    while (first < size_dict->count && size_dict->edge[first] < least)
        first++;
    return first < size_dict->count ? at_edge(size_dict, random, first) : 0;
}

size_t size_dict_neighbour(const struct size_dict *size_dict, struct random *random, size_t size)
{
    switch (random_below(random, 8)) {
    case 0:
        return size / 2 + 1;
    case 1:
        return size * 2;
    case 2:
        return size + size / 4 + 1;
    case 3:
        for (uint32_t i = 0; i < size_dict->count; i++) {
            if (size_dict->edge[i] >= size)
                return size_dict->edge[i] + random_below(random, 2);
        }
        return size + 1;
    default:
        return beside(random, size);
    }
}
