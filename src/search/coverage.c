/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bitmaps of the pairs and triples of levels.
 */
#include "search/coverage.h"

/* The levels of all these factors together are numbered. */
static const enum factor shaping[] = {FACTOR_SIZE,        FACTOR_MADE_BY,    FACTOR_MEMORY_BEFORE,
                                      FACTOR_LIVE_BLOCKS, FACTOR_FREE_ORDER, FACTOR_REPETITION};
enum { SHAPING = sizeof shaping / sizeof *shaping };

static unsigned levels_of(unsigned i)
{
    return scenario_factors[shaping[i]].count;
}

/* Returns whether the bit was not set before. */
static bool set_bit(uint64_t *bitmap, unsigned bit)
{
    uint64_t *word = &bitmap[bit / BITS_OF_WORD], before = *word;
    *word |= UINT64_C(1) << bit % BITS_OF_WORD;
    return *word != before;
}

static bool has_bit(const uint64_t *bitmap, unsigned bit)
{
    return (bitmap[bit / BITS_OF_WORD] >> bit % BITS_OF_WORD & 1) != 0;
}

/* Gives the row the level of that number.  Returns its factor, or FACTORS after the last level. */
static enum factor set_level(struct scenario *s, unsigned number)
{
    for (unsigned i = 0; i < SHAPING; number -= levels_of(i++)) {
        if (number < levels_of(i)) {
            s->level[shaping[i]] = (uint8_t)number;
            return shaping[i];
        }
    }
    return FACTORS;
}

/* Sets the row to the cheapest one with these two levels, and returns whether there is one. */
static bool can_be(const struct scenario_limits *limits, double most_cost, unsigned a, unsigned b,
                   struct scenario *s)
{
    for (enum factor factor = 0; factor < FACTORS; factor++)
        s->level[factor] = limits->level[factor].first;
    while (scenario_level(s, FACTOR_SIZE)->low < limits->least_size)
        s->level[FACTOR_SIZE]++;
    return set_level(s, a) != set_level(s, b) && scenario_is_allowed(s, limits) &&
           scenario_cost(s) <= most_cost;
}

void coverage_allow(struct coverage *coverage, const struct scenario_limits *limits,
                    double most_cost)
{
    struct scenario s;
    for (unsigned a = 0; most_cost >= 1 && set_level(&s, a) != FACTORS; a++) {
        for (unsigned b = a + 1; set_level(&s, b) != FACTORS; b++) {
            if (can_be(limits, most_cost, a, b, &s))
                coverage->counts.possible += set_bit(coverage->possible, a * MOST_LEVELS + b);
        }
    }
}

/* Returns the number of pairs that were not run before.  Counts them if `adds` is set. */
static unsigned new_pairs(struct coverage *coverage, const struct scenario *s, bool adds)
{
    unsigned count = 0;
    for (unsigned i = 0, a = 0; i < SHAPING; a += levels_of(i++)) {
        for (unsigned k = i + 1, b = a + levels_of(i); k < SHAPING; b += levels_of(k++)) {
            unsigned bit = (a + s->level[shaping[i]]) * MOST_LEVELS + b + s->level[shaping[k]];
            count += adds ? set_bit(coverage->run, bit) : !has_bit(coverage->run, bit);
            coverage->counts.possible += adds && set_bit(coverage->possible, bit);
        }
    }
    return count;
}

void coverage_add(struct coverage *coverage, const struct scenario *s)
{
    unsigned first = 0;
    coverage->counts.rows++;
    coverage->counts.pairs += new_pairs(coverage, s, true);
    for (unsigned i = 0; i < SHAPING; i++) {
        for (unsigned k = i + 1; k < SHAPING; k++) {
            unsigned pair = s->level[shaping[i]] * levels_of(k) + s->level[shaping[k]];
            for (unsigned m = k + 1; m < SHAPING; m++) {
                unsigned bit = first + pair * levels_of(m) + s->level[shaping[m]];
                coverage->counts.triples += set_bit(coverage->triples, bit);
                first += levels_of(i) * levels_of(k) * levels_of(m);
            }
        }
    }
}

/* Draws a row with a pair that was not run, if looking for one at random finds one. */
static struct scenario draw_missing(struct coverage *coverage, struct random *random,
                                    const struct scenario_limits *limits, double most_cost)
{
    enum { MOST_LOOKS = 64 };
    struct scenario_limits own = *limits;
    struct scenario s;
    for (unsigned looks = 0; looks < MOST_LOOKS; looks++) {
        unsigned a = (unsigned)random_below(random, MOST_LEVELS),
                 b = (unsigned)random_below(random, MOST_LEVELS);
        if (set_level(&s, a) == FACTORS || set_level(&s, b) == FACTORS ||
            !can_be(limits, most_cost, a, b, &s) || new_pairs(coverage, &s, false) == 0)
            continue;
        own.level[set_level(&s, a)] = (struct level_range){s.level[set_level(&s, a)], 1};
        own.level[set_level(&s, b)] = (struct level_range){s.level[set_level(&s, b)], 1};
        break;
    }
    return scenario_draw(random, &own);
}

struct scenario coverage_draw(struct coverage *coverage, struct random *random,
                              const struct scenario_limits *limits, double most_cost)
{
    enum { TRIES = 8 };
    struct scenario best = draw_missing(coverage, random, limits, most_cost);
    for (unsigned i = 1; i < TRIES; i++) {
        struct scenario s = draw_missing(coverage, random, limits, most_cost);
        if (new_pairs(coverage, &s, false) / scenario_cost(&s) >
            new_pairs(coverage, &best, false) / scenario_cost(&best))
            best = s;
    }
    return best;
}
