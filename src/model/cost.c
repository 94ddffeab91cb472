/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What properties cost.
 */
#include "model/cost.h"

#include <string.h>

/* Those that take longest with -j1, in the middle of some runs.  What is not here takes little. */
static const struct {
    const char *id;
    unsigned milliseconds;
} costs[] = {
    {"numpy.finalises", 245},
    {"realloc.long-run", 185},
    {"owndata.warns", 165},
    {"threads.any-number", 150},
    {"numpy.out-of-memory-makers", 148},
    {"process.fork-child", 147},
    {"threads.hand-over", 137},
    {"interop.multiprocessing", 119},
    {"realloc.grown-part-usable", 103},
    {"threads.concurrent", 101},
    {"malloc.disjoint", 89},
    {"runtime.sub-interpreter", 77},
    {"numpy.route-makers", 72},
    {"exhaustion.nth-request", 69},
    {"process.fork-while-busy", 66},
    {"malloc.lasts", 63},
    {"calloc.disjoint", 62},
    {"free.leaves-recycled-alone", 56},
    {"realloc.in-another-thread", 50},
    {"calloc.zeroed-when-reused", 49},
    {"free.poison-stays-inside", 48},
    {"process.late-free", 46},
    {"performance.calls-stay-fast", 46},
    {"free.best-guess-size", 44},
    {"free.in-another-thread", 43},
};
enum { COSTS = sizeof costs / sizeof *costs };

unsigned cost_of(const char *id)
{
    for (size_t i = 0; i < COSTS; i++) {
        if (strcmp(costs[i].id, id) == 0)
            return costs[i].milliseconds;
    }
    return 0;
}
