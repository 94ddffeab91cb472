/* SPDX-License-Identifier: BSD-3-Clause
 *
 * First each factor gets its simplest level, as long as the violation stays.  Then each factor has
 * each of its levels in turn, and ends of the sizes are bisected.
 */
#include "search/characterize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/clock.h"
#include "base/text.h"

enum { ROOM = 1 << 17, ROWS = 16, ANY_OF_LEVEL = 0 };

/* What rows with the same levels show: UNCLEAR if not the same each time, or another failure, or
 * not known. */
enum answer { UNCLEAR, SHOWN, NOT_SHOWN };

struct characterizing {
    struct trial trial;
    const struct found_row *row;
    struct scenario scenario; /* the simplest so far that shows it */
    struct writer *writer;
    struct step *steps;
    double most_cost; /* of the rows of a trial */
    uint64_t begun;
    double seconds;
};

static bool is_over(const struct characterizing *c)
{
    return clock_since(c->begun) > c->seconds;
}

/* Runs several such rows in one process; with fewer it is not known whether they never show it. The
 * first has the random choices of the row that was found if `seed` is 0.  A crash is taken for the
 * same failure. */
static enum answer try_seed(struct characterizing *c, const struct scenario *s, size_t size,
                            unsigned seed)
{
    struct writer *writer = c->writer;
    struct found found;
    writer_begin(writer, c->steps, ROOM - 1);
    writer->sizes = &size;
    writer->size_count = size != ANY_OF_LEVEL;
    double cost = scenario_cost(s);
    unsigned rows = s->level[FACTOR_PROCESS] != ONE_PROCESS
                        ? 1
                        : (unsigned)MAX(MIN(c->most_cost / cost, ROWS), 1);
    for (unsigned i = 0; i < rows; i++) {
        writer->random = (struct random){c->row->random.state + seed * ROWS + i};
        scenario_write(s, writer);
    }
    writer->room = ROOM;
    if (writer->live_count > 0)
        write_free_batch(writer, 0, writer->slots);
    struct call_list list = {.at = c->steps, .count = writer->count};
    enum trial_outcome outcome = trial_run(&c->trial, &list, &found);
    bool is_same = found.rule == c->row->rule || found.kind == FOUND_DIES;
    return outcome == TRIAL_PASSED && rows == ROWS ? NOT_SHOWN
           : outcome == TRIAL_WRONG && is_same     ? SHOWN
                                                   : UNCLEAR;
}

/* `twice`: also if the first try shows it. */
static enum answer try_rows(struct characterizing *c, const struct scenario *s, size_t size,
                            bool twice)
{
    struct scenario_limits limits = {.most_bytes = c->row->most_bytes,
                                     .threads = true,
                                     .forks = true,
                                     .exits = true,
                                     .address_limits = true};
    if (is_over(c) || !scenario_is_allowed(s, &limits) || scenario_cost(s) > c->most_cost)
        return UNCLEAR;
    enum answer answer = try_seed(c, s, size, 0);
    if (answer == UNCLEAR || (answer == SHOWN && !twice))
        return answer;
    return try_seed(c, s, size, 1) == answer ? answer : UNCLEAR;
}

static enum answer try_level(struct characterizing *c, enum factor factor, unsigned level,
                             bool twice)
{
    struct scenario s = c->scenario;
    s.level[factor] = (uint8_t)level;
    return try_rows(c, &s, ANY_OF_LEVEL, twice);
}

static bool is_number(enum factor factor)
{
    return scenario_factors[factor].level[1].high != 0;
}

/* The least number that shows it; of other factors the first level, or the one that it has. */
static void simplify(struct characterizing *c, enum factor factor)
{
    unsigned own = c->scenario.level[factor], tried = is_number(factor) ? own : MIN(own, 1);
    for (unsigned level = 0; level < tried && c->scenario.level[factor] == own; level++) {
        if (try_level(c, factor, level, true) == SHOWN)
            c->scenario.level[factor] = (uint8_t)level;
    }
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* Adds "FACTOR RELATION VALUE". */
static void add(struct conditions *conditions, enum factor factor, const char *relation,
                const char *value)
{
    size_t used = strlen(conditions->words);
    snprintf(conditions->words + used, sizeof conditions->words - used, "%s%s %s %s",
             used > 0 ? conditions->between : "", scenario_factors[factor].name, relation, value);
}

/* Adds "FACTOR = LEVEL or LEVEL", or that it may be any other than those that are `listed`. */
static void add_levels(struct conditions *conditions, enum factor factor,
                       const enum answer *answers, enum answer wanted)
{
    const struct factor_levels *levels = &scenario_factors[factor];
    char words[sizeof conditions->words] = "";
    size_t used = 0;
    unsigned count = 0, listed = 0;
    for (unsigned i = 0; i < levels->count && used < sizeof words; i++) {
        listed += answers[i] == SHOWN;
        if (answers[i] != wanted)
            continue;
        used += (size_t)snprintf(words + used, sizeof words - used, "%s%s",
                                 count++ > 0 ? " or " : "", levels->level[i].name);
    }
    bool is_rest = wanted == NOT_SHOWN && count > 2 && count + listed == levels->count;
    add(conditions, factor, "=", is_rest ? "any other" : words);
}

/* Returns the size nearest to `not_shown` that shows it, from a level that does on, or 0. */
static size_t bisect(struct characterizing *c, size_t shown, size_t not_shown)
{
    struct scenario s = c->scenario;
    if (try_rows(c, &s, shown, true) != SHOWN)
        return 0;
    while (MAX(shown, not_shown) - MIN(shown, not_shown) > 1 && !is_over(c)) {
        size_t middle = MIN(shown, not_shown) + (MAX(shown, not_shown) - MIN(shown, not_shown)) / 2;
        enum answer answer = try_rows(c, &s, middle, true);
        if (answer == UNCLEAR)
            return 0;
        *(answer == SHOWN ? &shown : &not_shown) = middle;
    }
    return is_over(c) ? 0 : shown;
}

/* Adds the end of a range of numbers, and the nearest level that never shows it, or NULL: of sizes,
 * the exact ones if they are found. */
static void add_end(struct characterizing *c, enum factor factor, const struct factor_level *in,
                    const struct factor_level *out, struct characterization *result)
{
    bool is_least = out == NULL || out < in;
    size_t end = factor != FACTOR_SIZE || out == NULL ? 0
                 : is_least ? bisect(c, (size_t)in->high, (size_t)out->low)
                            : bisect(c, (size_t)in->low, (size_t)out->high);
    add(&result->when, factor, is_least ? ">=" : "<=", end != 0 ? fmt("%zu", end) : in->name);
    if (out != NULL)
        add(&result->not_when, factor, "=",
            end == 0 ? out->name : fmt("%zu", is_least ? end - 1 : end + 1));
}

/* Varies one factor.  It matters if some level never shows it. */
static void vary(struct characterizing *c, enum factor factor, struct characterization *result)
{
    const struct factor_levels *levels = &scenario_factors[factor];
    enum answer answers[UINT8_MAX] = {UNCLEAR};
    unsigned own = c->scenario.level[factor], shown = 0, failed = 0;
    for (unsigned i = 0; i < levels->count; i++) {
        answers[i] = i == own ? SHOWN : try_level(c, factor, i, false);
        failed += answers[i] == NOT_SHOWN;
    }
    for (unsigned i = 0; i < levels->count && failed + own > 0; i++) {
        if (i != own && answers[i] == SHOWN)
            answers[i] = try_level(c, factor, i, true);
        shown += answers[i] == SHOWN;
    }
    if (is_over(c) && own != 0)
        add(&result->when, factor, "=", levels->level[own].name);
    if (is_over(c) || (failed == 0 && (own == 0 || factor == FACTOR_SIZE)))
        return;
    unsigned below = own, above = own, first = own, last = own, inside = 0;
    while (below > 0 && answers[--below] != NOT_SHOWN)
        first = answers[below] == SHOWN ? below : first;
    while (++above < levels->count && answers[above] != NOT_SHOWN)
        last = answers[above] == SHOWN ? above : last;
    for (unsigned i = first; i <= last; i++)
        inside += answers[i] == SHOWN;
    if (is_number(factor) && (inside < shown || first == last)) {
        add(&result->when, factor, "=", levels->level[own].name);
    } else if (is_number(factor)) {
        const struct factor_level *level = levels->level;
        if (first > 0)
            add_end(c, factor, &level[first], answers[below] == NOT_SHOWN ? &level[below] : NULL,
                    result);
        if (above < levels->count)
            add_end(c, factor, &level[last], &level[above], result);
    } else {
        add_levels(&result->when, factor, answers, SHOWN);
        if (failed > 0)
            add_levels(&result->not_when, factor, answers, NOT_SHOWN);
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool is_valid(const struct found_row *row)
{
    bool valid = row->size_dict.count <= MOST_EDGES;
    for (enum factor factor = 0; factor < FACTORS; factor++)
        valid = valid && row->scenario.level[factor] < scenario_factors[factor].count;
    return valid;
}

/* With more repetitions, if the row does not show it with other random choices as it is. */
static bool shows_each_time(struct characterizing *c)
{
    enum { ENOUGH = 3 };
    enum answer answer = try_rows(c, &c->scenario, ANY_OF_LEVEL, true);
    while (answer != SHOWN && c->scenario.level[FACTOR_REPETITION] < ENOUGH) {
        c->scenario.level[FACTOR_REPETITION]++;
        answer = try_rows(c, &c->scenario, ANY_OF_LEVEL, true);
    }
    return answer == SHOWN;
}

bool characterize(const struct trial *trial, const struct found_row *row, double seconds,
                  struct characterization *result)
{
    enum { LEAST_COST = 100000 };
    struct characterizing c = {.trial = *trial,
                               .row = row,
                               .scenario = row->scenario,
                               .writer = writer_new(),
                               .steps = calloc(ROOM, sizeof(struct step)),
                               .begun = clock_now(),
                               .seconds = seconds};
    struct execute_options *options = &c.trial.options;
    *result = (struct characterization){.when.between = ", and ", .not_when.between = "; "};
    bool is_shown = c.writer != NULL && c.steps != NULL && is_valid(row);
    if (is_shown) {
        c.most_cost = MAX(LEAST_COST, scenario_cost(&row->scenario));
        c.writer->size_dict = &row->size_dict;
        c.writer->most_bytes = options->most_bytes = row->most_bytes;
        options->rules = (struct heap_rules){.alignment = row->alignment,
                                             .fill = row->fill,
                                             .strict = row->rule == HEAP_KEEPS_ERRNO};
        is_shown = shows_each_time(&c);
    }
    for (enum factor factor = FACTORS - 1; is_shown && factor > FACTOR_SIZE; factor--)
        simplify(&c, factor);
    is_shown = is_shown && !is_over(&c);
    for (enum factor factor = 0; is_shown && factor < FACTORS; factor++)
        vary(&c, factor, result);
    if (is_shown && result->when.words[0] == '\0' && !is_over(&c))
        strcpy(result->when.words, "any level of each factor");
    free(c.writer);
    free(c.steps);
    return is_shown;
}
