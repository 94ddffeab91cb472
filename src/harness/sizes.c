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
