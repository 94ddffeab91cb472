/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Cutting short what a search has found: by leaving steps out, by chance, and by looking for the
 * same in short histories with its sizes.
 */
#include "search/cut_short.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>

#include "base/clock.h"
#include "repro/shrink.h"

static PyDataMem_Handler *get_for_shrinking(void *data)
{
    const struct search_options *options = data;
    return options->get(options->data);
}

static bool is_over_for_shrinking(void *data)
{
    const struct search_options *options = data;
    return options->is_over != NULL && options->is_over();
}

/* Where sizes were to be right, those that are; so that whoever reads the list need not know. */
static void say_sizes(struct call_list *list)
{
    uint64_t *size = calloc(call_list_blocks(list), sizeof *size);
    for (size_t i = 0; size != NULL && i < list->count; i++) {
        struct step *step = &list->at[i];
        uint64_t made = step->kind == STEP_CALLOC ? step->first * step->second : step->first;
        bool makes =
            step->kind == STEP_MALLOC || step->kind == STEP_CALLOC || step->kind == STEP_REALLOC;
        for (uint32_t k = 0; k < step->times && makes; k++)
            size[step->block + k] = made;
        if (step->kind == STEP_FREE && step->second == STEP_RIGHT_SIZE)
            step->first = size[step->block];
        if (step->kind == STEP_FREE)
            step->second = 0;
    }
    free(size);
}

/* Whether each attempt takes a second or more, in which nobody calls. */
static bool is_waiting(const struct call_list *list)
{
    enum { LONG = 500 };
    uint64_t milliseconds = 0;
    for (size_t i = 0; i < list->count; i++)
        milliseconds += list->at[i].kind == STEP_PAUSE ? list->at[i].first : 0;
    return milliseconds >= LONG;
}

/* How often it shows, of so many times more. */
static void count_shown(struct trial *trial, struct search_result *result)
{
    enum { TIMES = 10, FEW = 3 };
    struct history history = history_of(&result->list);
    struct found found;
    bool hangs = result->found.kind == FOUND_HANGS;
    for (int i = 0; i < (hangs ? 1 : is_waiting(&result->list) ? FEW : TIMES); i++) {
        enum trial_outcome outcome = trial_run(trial, &history, &found);
        if (outcome == TRIAL_OVER)
            return;
        bool is_same = outcome == TRIAL_WRONG && (found.kind == FOUND_HANGS) == hangs;
        result->tried++;
        result->shown += is_same;
        if (is_same)
            result->found = found;
    }
}

/* Without more than one, nothing is at once. */
static bool has_threads(const struct call_list *list)
{
    for (size_t i = 1; list->checks.at_once && i < list->count; i++) {
        if (list->at[i].thread != list->at[0].thread)
            return true;
    }
    return false;
}

/* As it is to be read, where it still shows it: threads can be told apart by no more than a step
 * between them that does nothing. */
static void make_readable(struct trial *trial, struct search_result *result)
{
    call_list_take_apart(&result->list);
    say_sizes(&result->list);
    struct call_list before = call_list_copy(&result->list);
    result->list.checks.at_once = has_threads(&result->list);
    result->list.checks.in_turns = result->list.checks.at_once && result->list.checks.in_turns;
    call_list_tidy(&result->list);
    unsigned shown = result->shown, tried = result->tried;
    result->shown = result->tried = 0;
    count_shown(trial, result);
    if (result->tried == 0) { /* whoever waits wants an end: as it was seen before */
        call_list_free(&before);
        result->shown = shown;
        result->tried = tried;
        return;
    }
    if (result->shown > 0 || before.count == 0) {
        call_list_free(&before);
        return;
    }
    call_list_free(&result->list);
    result->list = before;
    result->shown = result->tried = 0;
    count_shown(trial, result);
}

static PyDataMem_Handler *get_plain(void *data)
{
    const struct search_options *options = data;
    return options->get_plain(options->data);
}

/* As often as the handler was tried. */
static bool does_plain_show(const struct trial *of_handler, const struct search_result *result)
{
    struct trial trial = *of_handler;
    struct history history = history_of(&result->list);
    struct found found;
    enum trial_outcome outcome = TRIAL_PASSED;
    trial.get = get_plain;
    trial.options.rules.alignment = 0; /* it claims nothing */
    for (unsigned i = 0; i < result->tried && outcome == TRIAL_PASSED; i++)
        outcome = trial_run(&trial, &history, &found);
    return outcome == TRIAL_WRONG;
}

/* ---- short ones beside it ---- */

enum { MOST_SIZES = 12, FEW_STEPS = 8 };

/* The sizes that the last steps ask for, the last one first. */
static size_t last_sizes(const struct call_list *list, size_t *sizes)
{
    size_t count = 0;
    for (size_t i = list->count; i-- > 0 && count < MOST_SIZES;) {
        const struct step *step = &list->at[i];
        size_t size = (size_t)step->first * (step->kind == STEP_CALLOC ? step->second : 1);
        bool is_known = step->kind > STEP_REALLOC || size > PTRDIFF_MAX / 4;
        for (size_t k = 0; k < count; k++)
            is_known = is_known || sizes[k] == size;
        if (!is_known)
            sizes[count++] = size;
    }
    return count;
}

/* What the list has of what is no call of the first thread. */
static struct behaviour_options as_in(const struct call_list *list)
{
    struct behaviour_options may = {0};
    for (size_t i = 0; i < list->count; i++) {
        const struct step *step = &list->at[i];
        may.exits = may.exits || step->thread == STEP_AT_EXIT;
        may.threads = may.threads || (step->thread != 0 && step->thread != STEP_AT_EXIT);
        may.forks = may.forks || step->kind == STEP_FORK;
        may.limits = may.limits || step->kind == STEP_LIMIT;
    }
    return may;
}

/* What a long history came upon, a short one with the same sizes may as well: more is gained by
 * that than by leaving out what a long one has too much. */
static void try_short_ones(const struct trial *trial, const struct uncut *uncut,
                           struct search_result *result, uint64_t seed, double seconds)
{
    enum { ROOMS = 7 };
    size_t sizes[MOST_SIZES];
    struct behaviour_options may = as_in(&result->list);
    struct random random = random_for(seed, "short ones");
    struct writer *writer = writer_new();
    struct found found;
    uint64_t begun = clock_now();
    may.size_count = last_sizes(&result->list, sizes);
    while (writer != NULL && may.size_count > 0 && result->list.count > FEW_STEPS &&
           clock_since(begun) < seconds) {
        may.sizes = random_below(&random, 3) != 0 ? sizes : NULL;
        size_t room = (size_t)FEW_STEPS << random_below(&random, ROOMS);
        writer_begin(writer, uncut->steps, MIN(room, result->list.count - 1));
        writer->size_dict = &uncut->room->size_dict;
        writer->most_bytes = trial->options.most_bytes;
        writer->random = (struct random){random_next(&random)};
        behaviours_write(writer, &may);
        struct history history = {.steps = uncut->steps, .count = writer->count};
        enum trial_outcome outcome = trial_run(trial, &history, &found);
        if (outcome == TRIAL_OVER)
            break;
        if (outcome != TRIAL_WRONG || found.at >= result->list.count || found.kind == FOUND_HANGS)
            continue;
        struct call_list shorter = {.at = uncut->steps, .count = MIN(found.at + 1, writer->count)};
        call_list_free(&result->list);
        result->list = call_list_copy(&shorter);
        result->found = found;
    }
    free(writer);
}

/* Step by step, as far as one gets in so many seconds. */
static struct attempt shrink_by_steps(struct trial *trial, struct search_result *result,
                                      double seconds)
{
    bool at_once = result->list.checks.at_once, hangs = result->found.kind == FOUND_HANGS;
    struct attempt seen = {.outcome = REPRODUCED,
                           .at = at_once ? result->list.count : result->found.at};
    snprintf(seen.what, sizeof seen.what, "%s", hangs ? "hangs" : "wrong");
    return shrink(trial_attempt, trial, &result->list, seen, seconds);
}

/* Step by step, then by chance, and by short ones with the sizes that are left, as long as that
 * helps and there is time. */
static void shrink_all(const struct search_options *options, struct trial *trial,
                       const struct uncut *uncut, struct search_result *result, double seconds)
{
    enum { ROUNDS = 3 };
    bool at_once = result->list.checks.at_once;
    bool hangs = result->found.kind == FOUND_HANGS;
    uint64_t begun = clock_now();
    for (unsigned round = 0; round < ROUNDS && clock_since(begun) < seconds; round++) {
        size_t before = result->list.count;
        struct attempt seen = shrink_by_steps(trial, result, seconds - clock_since(begun));
        if (at_once || hangs || result->list.count <= FEW_STEPS || result->list.count == before)
            return;
        shrink_by_chance(trial_attempt, trial, &result->list, seen, FEW_STEPS,
                         MIN(seconds / 4, seconds - clock_since(begun)));
        try_short_ones(trial, uncut, result, options->seed + round,
                       MIN(seconds / 4, seconds - clock_since(begun)));
    }
}

void cut_short(const struct search_options *options, const struct uncut *uncut,
               struct search_result *result)
{
    enum { LONG = 2000 }; /* from here on step by step takes longer than there is */
    static const double seconds = 25, soon = 1;
    struct trial trial = search_trial(options, uncut->room);
    trial.get = get_for_shrinking;
    trial.data = (void *)options;
    trial.is_over = is_over_for_shrinking;
    trial.options.rules.fill.whole = 1 << 17;
    trial.options.rules.fill.marks = true;
    struct call_list found = {.at = uncut->steps,
                              .count = uncut->count,
                              .checks = {.at_once = uncut->at_once, .in_turns = uncut->in_turns}};
    bool at_once = found.checks.at_once, hangs = result->found.kind == FOUND_HANGS;
    result->length_before = uncut->count;
    result->list = call_list_copy(&found);
    uint64_t begun = clock_now();
    trial.hangs = hangs ? options->hangs : MIN(options->hangs, 1.0); /* else it is but slow */
    if (!at_once && !hangs && uncut->count <= LONG)
        shrink_by_steps(&trial, result, soon);
    if (!at_once && !hangs && result->list.count > FEW_STEPS && !is_waiting(&result->list))
        try_short_ones(&trial, uncut, result, options->seed,
                       seconds / (uncut->count > LONG ? 2 : 5));
    do
        count_shown(&trial, result);
    while (at_once && result->shown == 0 && clock_since(begun) < seconds / 2);
    if (result->shown == 0)
        return;
    trial.tries = result->tried / result->shown; /* as rarely as that, and not more so */
    trial.hangs = MIN(options->hangs, 1.0);
    bool takes_long = hangs || is_waiting(&result->list);
    double left = takes_long ? seconds / 2 : seconds - clock_since(begun);
    shrink_all(options, &trial, uncut, result, at_once ? seconds / 3 : left);
    trial.hangs = MIN(options->hangs, 2.0);
    make_readable(&trial, result);
    result->plain_shows = does_plain_show(&trial, result);
}
