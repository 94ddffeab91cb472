/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What properties cost, and in which shard each is.
 */
#include "model/cost.h"

#include <string.h>

#include "base/random.h"
#include "model/options.h"

/* Those that take longest with -j1, in the middle of some runs.  Each goes to the shard that has
 * least so far, in this order, which is why a new one goes to the end and none changes: it would
 * move those behind it.  What is not here takes little, and there are many of it. */
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

/* Where it is in the table, or COSTS. */
static size_t row_of(const char *id)
{
    size_t i = 0;
    while (i < COSTS && strcmp(costs[i].id, id) != 0)
        i++;
    return i;
}

unsigned cost_of(const char *id)
{
    size_t row = row_of(id);
    return row < COSTS ? costs[row].milliseconds : 0;
}

static size_t least(const unsigned *loads, size_t count)
{
    size_t shard = 0;
    for (size_t i = 1; i < count; i++) {
        if (loads[i] < loads[shard])
            shard = i;
    }
    return shard;
}

/* Rendezvous hashing: of all shards the one for whose number the id has the largest hash. */
static size_t by_hash(const char *id, size_t count)
{
    size_t shard = 0;
    uint64_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t hash = random_for(i + 1, id).state;
        if (hash > largest) {
            largest = hash;
            shard = i;
        }
    }
    return shard;
}

size_t shard_of(const char *id, size_t count)
{
    unsigned loads[MOST_SHARDS] = {0};
    size_t row = row_of(id), shard = 0;
    if (row == COSTS)
        return by_hash(id, count) + 1;
    for (size_t i = 0; i <= row; i++) {
        shard = least(loads, count);
        loads[shard] += costs[i].milliseconds;
    }
    return shard + 1;
}
