/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Coverage: which combinations of the factors that shape the heap (size, made by, memory before,
 * live blocks, order of frees, repetition) the rows of a property contained.  A combination is a
 * pair of levels of two factors.  Triples are counted as well.
 */
#ifndef CONFORM_COVERAGE_H
#define CONFORM_COVERAGE_H

#include "model/record.h"
#include "search/scenario.h"

enum { MOST_LEVELS = 128, MOST_TRIPLES = 1 << 17, BITS_OF_WORD = 64 };
enum { PAIR_WORDS = MOST_LEVELS * MOST_LEVELS / BITS_OF_WORD };

struct coverage {
    uint64_t run[PAIR_WORDS], possible[PAIR_WORDS];
    uint64_t triples[MOST_TRIPLES / BITS_OF_WORD]; /* that were run */
    struct coverage_counts counts;
};

/* Adds the pairs that a row within the limits, which costs at most that much, can contain. */
void coverage_allow(struct coverage *coverage, const struct scenario_limits *limits,
                    double most_cost);

/* Counts a row that was run. */
void coverage_add(struct coverage *coverage, const struct scenario *scenario);

/* Draws a row with pairs that were not run yet, of several the one with most for its cost. */
struct scenario coverage_draw(struct coverage *coverage, struct random *random,
                              const struct scenario_limits *limits, double most_cost);

#endif
