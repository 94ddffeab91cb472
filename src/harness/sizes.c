/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which sizes come next.
 */
#include "harness/sizes.h"

#include <stdint.h>

enum { ONE_BY_ONE = 4096, PAGE = 4096, PAGES = 40 };

static void consider(size_t candidate, size_t after, size_t *best)
{
    if (candidate > after && candidate < *best)
        *best = candidate;
}

/* A header of one of the usual lengths makes these sizes next to a power of two into one. */
static const int beside_power[] = {-128, -64, -32, -16, -8, -1, 0, 1, 8, 16, 64};

/* Many allocators have four classes between a power of two and the next. */
size_t edge_after(size_t size)
{
    size_t best = SIZE_MAX;
    for (unsigned shift = 10; shift < 8 * sizeof(size_t) - 4; shift++) {
        for (size_t fourths = 5; fourths <= 7; fourths++) {
            for (int beside = -1; beside <= 1; beside++)
                consider((fourths << shift) + (size_t)beside, size, &best);
        }
        if (best != SIZE_MAX)
            return best;
    }
    return 0;
}

size_t size_after(size_t size)
{
    if (size < ONE_BY_ONE)
        return size + 1;
    size_t best = SIZE_MAX;
    for (unsigned shift = 12; shift < 8 * sizeof(size_t) - 1; shift++) {
        if (((size_t)1 << shift) > size * 4)
            break;
        for (size_t i = 0; i < sizeof beside_power / sizeof *beside_power; i++)
            consider(((size_t)1 << shift) + (size_t)beside_power[i], size, &best);
    }
    for (size_t pages = 1; pages <= PAGES; pages++) {
        consider(pages * PAGE - 1, size, &best);
        consider(pages * PAGE, size, &best);
        consider(pages * PAGE + 1, size, &best);
    }
    size_t edge = edge_after(size);
    if (edge != 0)
        consider(edge, size, &best);
    return best == SIZE_MAX ? 0 : best;
}

static const size_t classes[] = {
    1,    2,    3,    7,    8,    9,    15,   16,    17,    24,     31,     32,     33,   48,
    63,   64,   65,   100,  127,  128,  129,  255,   256,   257,    511,    513,    1000, 1023,
    1025, 2048, 4095, 4096, 4097, 8191, 8193, 65535, 65537, 131071, 131073, 262145,
};
enum { CLASSES = sizeof classes / sizeof *classes };

bool size_pair(size_t index, size_t *old, size_t *new)
{
    if (index >= (size_t)CLASSES * CLASSES)
        return false;
    *old = classes[index / CLASSES];
    *new = classes[index % CLASSES];
    return true;
}
