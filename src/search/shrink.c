/* SPDX-License-Identifier: BSD-3-Clause
 *
 * First the last steps alone; then delta debugging on steps and blocks, and simpler numbers; what a
 * search has found also by chance, and by short lists with the sizes of the long one.
 */
#include "search/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/clock.h"
#include "repro/call_log.h"
#include "supervise/interrupt.h"

struct shrinking {
    const struct trial *trial;
    struct call_list *list; /* the best so far */
    struct found *found;    /* what it has shown */
    uint64_t begun;
    double seconds;
};

static bool is_over(const struct shrinking *s)
{
    return clock_since(s->begun) > s->seconds || interrupt_came() != 0;
}

/* Steps behind the one that fails are not needed, except those of other threads at once. */
static void cut_end(struct call_list *list, const struct found *found)
{
    if (!list->of_growth && !list->at_once && found->at < list->count)
        list->count = found->at + 1;
}

/* Makes the candidate the list if it shows the same; else frees it. */
static bool take(struct shrinking *s, struct call_list *candidate)
{
    if (is_over(s) || !trial_shows(s->trial, candidate, s->found)) {
        call_list_free(candidate);
        return false;
    }
    cut_end(candidate, s->found);
    call_list_free(s->list);
    *s->list = *candidate;
    return true;
}

/* ---- fewer steps --------------------------------------------------------------------------- */

struct part {
    size_t from, to;             /* steps */
    uint32_t first_block, block; /* blocks from the first to below the other, if any */
};

static bool is_in(const struct part *part, const struct step *step, size_t i)
{
    return (i >= part->from && i < part->to) ||
           (step->kind <= STEP_CALLOC_FREE && step->block >= part->first_block &&
            step->block < part->block);
}

/* If memory is not to grow, what is made is freed all the same. */
static bool leave_out(struct shrinking *s, const struct part *parts, size_t count)
{
    struct call_list candidate = call_list_copy(s->list);
    size_t kept = 0;
    for (size_t i = 0; i < candidate.count; i++) {
        bool is_out = false;
        for (size_t k = 0; k < count; k++)
            is_out = is_out || is_in(&parts[k], &candidate.at[i], i);
        if (!is_out)
            candidate.at[kept++] = candidate.at[i];
    }
    candidate.count = kept;
    if (candidate.of_growth)
        call_list_close(&candidate);
    if (kept > 0 && candidate.count < s->list->count)
        return take(s, &candidate);
    call_list_free(&candidate);
    return false;
}

static bool leave_steps_out(struct shrinking *s, size_t length)
{
    bool any = false;
    for (size_t end = s->list->count, from; end > 0 && !is_over(s); end = from) {
        from = end > length ? end - length : 0;
        any = leave_out(s, &(struct part){.from = from, .to = end}, 1) || any;
        from = MIN(from, s->list->count);
    }
    return any;
}

static void leave_all_steps_out(struct shrinking *s)
{
    for (size_t length = s->list->count / 2; length > 0 && !is_over(s);) {
        if (!leave_steps_out(s, length) || length > 1)
            length /= 2;
    }
}

/* Half of the blocks at a time, a quarter of them, and so on: the steps of one block are all over
 * the list, and most blocks do not matter. */
static void leave_blocks_out(struct shrinking *s)
{
    enum { PARTS = 64 };
    uint32_t blocks = (uint32_t)call_list_blocks(s->list);
    for (uint32_t parts = 2; parts <= PARTS && parts <= blocks; parts *= 2) {
        uint32_t length = (blocks + parts - 1) / parts;
        for (uint32_t from = 0; from < blocks && !is_over(s); from += length)
            leave_out(s, &(struct part){.first_block = from, .block = from + length}, 1);
    }
}

/* The last steps, and all steps of the block that the very last one is about. */
static void cut_beginning(struct shrinking *s)
{
    for (size_t count = 1; count < s->list->count && !is_over(s); count *= 2) {
        struct call_list candidate = call_list_copy(s->list);
        const struct step *last = &s->list->at[s->list->count - 1];
        size_t kept = 0;
        for (size_t i = 0; i < candidate.count; i++) {
            const struct step *step = &s->list->at[i];
            if (i + count >= candidate.count ||
                (step->kind <= STEP_FREE && step->block == last->block))
                candidate.at[kept++] = *step;
        }
        candidate.count = kept;
        if (take(s, &candidate))
            return;
    }
}

/* The last step that makes a block, or NULL. */
static const struct step *last_making(const struct call_list *list)
{
    size_t i = list->count;
    while (i > 0 && list->at[i - 1].kind != STEP_MALLOC && list->at[i - 1].kind != STEP_CALLOC &&
           !step_is_pair(&list->at[i - 1]))
        i--;
    return i > 0 ? &list->at[i - 1] : NULL;
}

/* What one call in so many shows: the last block, or one of 16 bytes, made more often than blocks
 * were, and freed at once or not. */
static bool repeat_last(struct shrinking *s, bool frees, bool is_small)
{
    const uint64_t most_bytes = (uint64_t)1 << (frees ? 31 : 28);
    const struct step *last = last_making(s->list);
    struct call_list candidate = call_list_copy(s->list);
    if (last == NULL || candidate.count == 0) {
        call_list_free(&candidate);
        return false;
    }
    struct step step = *last;
    bool by_calloc = step_called(&step) == STEP_CALLOC;
    if (is_small) {
        step.first = 16;
        step.second = by_calloc;
    }
    uint64_t most = most_bytes / (MIN(step_size(&step), most_bytes) + 64) + 1;
    uint64_t times = MIN(2 * (uint64_t)s->list->count + step.times, most);
    step.block = 0;
    step.times = (uint32_t)MIN(times, (uint64_t)MOST_BLOCKS);
    step.kind = (uint8_t)((by_calloc ? STEP_CALLOC : STEP_MALLOC) +
                          (frees ? STEP_MALLOC_FREE - STEP_MALLOC : 0));
    candidate.at[0] = step;
    candidate.count = 1;
    return take(s, &candidate);
}

/* ---- simpler steps ------------------------------------------------------------------------- */

/* Changes a step, and returns true if that is another one then. */
typedef bool change_function(struct step *step, uint64_t from, uint64_t to);

static bool change_all(struct shrinking *s, change_function *change, uint64_t from, uint64_t to)
{
    struct call_list candidate = call_list_copy(s->list);
    bool any = false;
    for (size_t i = 0; i < candidate.count; i++)
        any = change(&candidate.at[i], from, to) || any;
    if (any)
        return take(s, &candidate);
    call_list_free(&candidate);
    return false;
}

static bool change_one(struct shrinking *s, size_t i, struct step step)
{
    struct call_list candidate = call_list_copy(s->list);
    if (candidate.count > 0)
        candidate.at[i] = step;
    return take(s, &candidate);
}

static bool shorten_pause(struct step *step, uint64_t least, uint64_t parts)
{
    bool is_long = step->kind == STEP_PAUSE && step->first >= least;
    step->first /= is_long ? parts : 1;
    return is_long;
}

/* On the first thread, or without errno. */
static bool simplify(struct step *step, uint64_t error, uint64_t to)
{
    bool changes = (error ? step->error : step->thread) != to;
    if (error)
        step->error = (uint8_t)to;
    else
        step->thread = (uint32_t)to;
    return changes;
}

static void lower_times(struct shrinking *s)
{
    for (size_t i = 0; i < s->list->count; i++) {
        uint32_t least = 0, most = s->list->at[i].times; /* the latter shows it */
        while (most - least > 1 && i < s->list->count && !is_over(s)) {
            struct step step = s->list->at[i];
            step.times = least + (most - least) / 2;
            if (change_one(s, i, step))
                most = step.times;
            else
                least = step.times;
        }
    }
}

/* True if a step before it has the same size. */
static bool was_before(const struct call_list *list, size_t i)
{
    size_t k = 0;
    while (k < i && (list->at[k].kind > STEP_FREE_NULL || list->at[k].first != list->at[i].first))
        k++;
    return k < i;
}

static void round_sizes(struct shrinking *s)
{
    enum { SHORT = 40 };
    static const uint64_t round[] = {1,    8,    16,   32,    64,    100,    128,     256,     512,
                                     1000, 1024, 4096, 10000, 65536, 100000, 1 << 20, 10 << 20};
    for (size_t i = 0; i < s->list->count && s->list->count <= SHORT && !is_over(s); i++) {
        uint64_t size = s->list->at[i].first;
        if (s->list->at[i].kind > STEP_FREE_NULL || was_before(s->list, i))
            continue;
        for (size_t k = 0; k < sizeof round / sizeof *round && round[k] < size; k++) {
            if (change_all(s, step_change_size, size, round[k]))
                break;
        }
    }
}

/* Makes one step of those that are the same again and again. */
static void join_steps(struct shrinking *s)
{
    struct call_list candidate = call_list_copy(s->list);
    call_list_tidy(&candidate);
    if (candidate.count > 0 && candidate.count < s->list->count)
        take(s, &candidate);
    else
        call_list_free(&candidate);
}

void shrink(const struct trial *trial, struct call_list *list, struct found *found, double seconds)
{
    enum { FEW = 20, LONG_PAUSE = 100, PARTS = 16 };
    struct shrinking s = {trial, list, found, clock_now(), seconds};
    bool of_growth = list->of_growth; /* there each attempt takes its time, and halves do as well */
    cut_end(list, found);
    if (!of_growth)
        cut_beginning(&s);
    if (list->count > FEW && !repeat_last(&s, true, false) && !repeat_last(&s, true, true) &&
        !of_growth && !repeat_last(&s, false, false))
        repeat_last(&s, false, true);
    change_all(&s, shorten_pause, LONG_PAUSE, PARTS);
    change_all(&s, simplify, false, 0);
    change_all(&s, simplify, true, 0);
    if (!of_growth && list->count > FEW)
        leave_blocks_out(&s);
    leave_all_steps_out(&s);
    if (!of_growth)
        join_steps(&s);
    lower_times(&s);
    if (!of_growth)
        round_sizes(&s);
    for (size_t i = 0; i < list->count; i++) {
        struct step step = list->at[i];
        if (simplify(&step, true, 0))
            change_one(&s, i, step);
    }
}

/* ---- by chance ----------------------------------------------------------------------------- */

static const struct step *any_step(const struct shrinking *s, struct random *random)
{
    return &s->list->at[random_below(random, s->list->count)];
}

/* Without a block or two, or a few steps that are apart. */
static bool leave_some_out(struct shrinking *s, struct random *random, bool blocks)
{
    enum { MOST = 4 };
    struct part parts[MOST] = {{0}};
    size_t count = blocks ? 1 + random_below(random, 2) : 2 + random_below(random, MOST - 1);
    for (size_t i = 0; i < count; i++) {
        size_t at = random_below(random, s->list->count);
        uint32_t block = s->list->at[at].block;
        parts[i] = blocks ? (struct part){.first_block = block, .block = block + 1}
                          : (struct part){.from = at, .to = at + 1};
    }
    return leave_out(s, parts, count);
}

/* Steps that only advance a counter are as good as a block that comes and goes. */
static bool make_stretch_a_row(struct shrinking *s, struct random *random)
{
    enum { STRETCH = 3 };
    size_t from = random_below(random, 2) == 0 ? 0 : random_below(random, s->list->count);
    const struct step *like = any_step(s, random);
    if (like->kind > STEP_REALLOC || from + STRETCH >= s->list->count)
        return false;
    size_t length = STRETCH + random_below(random, s->list->count - from - STRETCH);
    struct step row = {.kind = STEP_MALLOC_FREE,
                       .block = (uint32_t)call_list_blocks(s->list),
                       .times = (uint32_t)(2 * length),
                       .first = like->first};
    struct call_list candidate = call_list_copy(s->list);
    if (candidate.count > 0 && row.block < MOST_BLOCKS) {
        candidate.at[from] = row;
        call_list_cut(&candidate, from + 1, length - 1);
    }
    return take(s, &candidate);
}

/* Makes one size, wherever it is, another one that is there. */
static bool make_two_sizes_one(struct shrinking *s, struct random *random)
{
    const struct step *a = any_step(s, random), *b = any_step(s, random);
    return a->kind <= STEP_REALLOC && b->kind <= STEP_REALLOC && a->first != b->first &&
           change_all(s, step_change_size, a->first, b->first);
}

/* For a list that is longer than `enough` and that leaving out steps alone does not shrink. */
static void shrink_by_chance(const struct trial *trial, struct call_list *list, struct found *found,
                             size_t enough, double seconds)
{
    enum { SHORT = 600, TRIES = 16 };
    struct shrinking s = {trial, list, found, clock_now(), seconds};
    struct random random = {list->count};
    for (size_t tries = 0;
         list->count > enough && list->count < SHORT && tries < TRIES * list->count && !is_over(&s);
         tries++) {
        size_t what = random_below(&random, 5);
        bool any = what < 3    ? leave_some_out(&s, &random, what < 2)
                   : what == 3 ? make_stretch_a_row(&s, &random)
                               : make_two_sizes_one(&s, &random);
        tries = any && what < 4 ? 0 : tries;
    }
    while (list->count > 1 && !is_over(&s) && leave_steps_out(&s, 1)) {
    }
}

/* ---- what a search has found --------------------------------------------------------------- */

/* Replaces STEP_RIGHT_SIZE by the sizes, so that the reader of the list need not know them. */
static void write_sizes(struct call_list *list)
{
    uint64_t *size = calloc(call_list_blocks(list), sizeof *size);
    for (size_t i = 0; size != NULL && i < list->count; i++) {
        struct step *step = &list->at[i];
        for (uint32_t k = 0; k < step->times && step_makes(step); k++)
            size[step->block + k] = step_size(step);
        if (step->kind == STEP_FREE && step->second == STEP_RIGHT_SIZE)
            step->first = size[step->block];
        if (step->kind == STEP_FREE)
            step->second = 0;
    }
    free(size);
}

/* True if each attempt takes a second or more in which no call is made. */
static bool is_waiting(const struct call_list *list)
{
    enum { LONG = 500 };
    uint64_t milliseconds = 0;
    for (size_t i = 0; i < list->count; i++)
        milliseconds += list->at[i].kind == STEP_PAUSE ? list->at[i].first : 0;
    return milliseconds >= LONG;
}

/* Counts how often it shows, of so many times more. */
static void count_shown(struct trial *trial, struct search_result *result)
{
    enum { TIMES = 10, FEW = 3 };
    struct found found;
    bool hangs = result->found.kind == FOUND_HANGS;
    for (int i = 0; i < (hangs ? 1 : is_waiting(&result->list) ? FEW : TIMES); i++) {
        enum trial_outcome outcome = trial_run(trial, &result->list, &found);
        if (outcome == TRIAL_OVER)
            return;
        bool is_same = outcome == TRIAL_WRONG && (found.kind == FOUND_HANGS) == hangs;
        result->tried++;
        result->shown += is_same;
        if (is_same)
            result->found = found;
    }
}

static bool has_threads(const struct call_list *list)
{
    size_t i = 0;
    while (i < list->count && list->at[i].thread == list->at[0].thread)
        i++;
    return i < list->count;
}

/* Makes the list as it is to be read, if it still shows the failure then. */
static void make_readable(struct trial *trial, struct search_result *result)
{
    call_list_take_apart(&result->list);
    write_sizes(&result->list);
    struct search_result before = *result;
    before.list = call_list_copy(&result->list);
    result->list.at_once = result->list.at_once && has_threads(&result->list);
    result->list.in_turns = result->list.in_turns && result->list.at_once;
    call_list_tidy(&result->list);
    result->shown = result->tried = 0;
    count_shown(trial, result);
    if (result->tried == 0) { /* interrupted */
        result->shown = before.shown;
        result->tried = before.tried;
    } else if (result->shown == 0 && before.list.count != 0) {
        struct call_list tidied = result->list;
        result->list = before.list;
        before.list = tidied;
        result->tried = 0;
        count_shown(trial, result);
    }
    call_list_free(&before.list);
}

/* Tries libc's allocator as often as the handler was tried. */
static bool does_plain_show(struct trial trial, get_handler *get_plain,
                            const struct search_result *result)
{
    struct found found;
    enum trial_outcome outcome = TRIAL_PASSED;
    trial.get = get_plain;
    trial.options.rules.alignment = 0; /* it claims nothing */
    for (unsigned i = 0; i < result->tried && outcome == TRIAL_PASSED; i++)
        outcome = trial_run(&trial, &result->list, &found);
    return outcome == TRIAL_WRONG;
}

enum { MOST_SIZES = 12, FEW_STEPS = 8 };

/* The sizes that the last steps ask for, the last one first. */
static size_t last_sizes(const struct call_list *list, size_t *sizes)
{
    size_t count = 0;
    for (size_t i = list->count; i-- > 0 && count < MOST_SIZES;) {
        const struct step *step = &list->at[i];
        size_t size = (size_t)step_size(step);
        bool is_known = step->kind > STEP_REALLOC || size > PTRDIFF_MAX / 4;
        for (size_t k = 0; k < count; k++)
            is_known = is_known || sizes[k] == size;
        if (!is_known)
            sizes[count++] = size;
    }
    return count;
}

/* A short list with the sizes of a long one may show the same: that gains more than leaving out
 * what the long one has too much.  It has only such steps other than calls as the long one has. */
static void try_short_ones(const struct trial *trial, struct step *steps,
                           struct search_result *result, uint64_t seed, double seconds)
{
    enum { ROOMS = 7 };
    size_t sizes[MOST_SIZES];
    struct scenario_limits may = {0};
    size_t size_count = last_sizes(&result->list, sizes);
    struct random random = random_for(seed, "short ones");
    struct writer *writer = writer_new();
    struct found found;
    uint64_t begun = clock_now();
    for (size_t i = 0; i < result->list.count; i++) {
        const struct step *step = &result->list.at[i];
        may.exits = may.exits || step->thread == STEP_AT_EXIT;
        may.threads = may.threads || (step->thread != 0 && step->thread != STEP_AT_EXIT);
        may.forks = may.forks || step->kind == STEP_FORK;
        may.address_limits = may.address_limits || step->kind == STEP_LIMIT;
    }
    while (writer != NULL && size_count > 0 && result->list.count > FEW_STEPS &&
           clock_since(begun) < seconds) {
        size_t room = (size_t)FEW_STEPS << random_below(&random, ROOMS);
        writer_begin(writer, steps, MIN(room, result->list.count - 1));
        writer->size_dict = &trial->room->size_dict;
        writer->most_bytes = trial->options.most_bytes;
        writer->random = (struct random){random_next(&random)};
        writer->sizes = sizes;
        writer->size_count = random_below(&random, 3) != 0 ? size_count : 0;
        may.most_bytes = trial->options.most_bytes;
        may.most_steps = room;
        scenarios_write(&may, writer);
        struct call_list list = {.at = steps, .count = writer->count};
        enum trial_outcome outcome = trial_run(trial, &list, &found);
        if (outcome == TRIAL_OVER)
            break;
        if (outcome != TRIAL_WRONG || found.at >= result->list.count || found.kind == FOUND_HANGS)
            continue;
        cut_end(&list, &found);
        call_list_free(&result->list);
        result->list = call_list_copy(&list);
        result->found = found;
    }
    free(writer);
}

void shrink_result(const struct search_options *options, struct trial_room *room,
                   const struct call_list *list, struct search_result *result)
{
    enum { LONG = 2000, ROUNDS = 3 }; /* LONG: leaving out steps takes longer than there is */
    static const double seconds = 25, soon = 1;
    struct trial trial = search_trial(options, room);
    trial.is_over = is_interrupted;
    trial.options.rules.fill.whole = 1 << 17;
    trial.options.rules.fill.marks = true;
    bool at_once = list->at_once, hangs = result->found.kind == FOUND_HANGS;
    uint64_t begun = clock_now();
    result->length_before = list->count;
    result->list = call_list_copy(list);
    result->list.notes = false;
    trial.hangs = hangs ? options->hangs : MIN(options->hangs, 1.0); /* else it is but slow */
    if (!at_once && !hangs && list->count <= LONG)
        shrink(&trial, &result->list, &result->found, soon);
    if (!at_once && !hangs && result->list.count > FEW_STEPS && !is_waiting(&result->list))
        try_short_ones(&trial, list->at, result, options->seed,
                       seconds / (list->count > LONG ? 2 : 5));
    do
        count_shown(&trial, result);
    while (at_once && result->shown == 0 && clock_since(begun) < seconds / 2);
    if (result->shown == 0)
        return;
    trial.tries = result->tried / result->shown; /* as rarely as that, and not more so */
    trial.hangs = MIN(options->hangs, 1.0);
    double left = at_once                              ? seconds / 3
                  : hangs || is_waiting(&result->list) ? seconds / 2
                                                       : seconds - clock_since(begun);
    begun = clock_now();
    for (unsigned round = 0; round < ROUNDS && clock_since(begun) < left; round++) {
        size_t before = result->list.count;
        shrink(&trial, &result->list, &result->found, left - clock_since(begun));
        if (at_once || hangs || result->list.count <= FEW_STEPS || result->list.count == before)
            break;
        shrink_by_chance(&trial, &result->list, &result->found, FEW_STEPS,
                         MIN(left / 4, left - clock_since(begun)));
        try_short_ones(&trial, list->at, result, options->seed + round,
                       MIN(left / 4, left - clock_since(begun)));
    }
    trial.hangs = MIN(options->hangs, 2.0);
    make_readable(&trial, result);
    result->plain_shows = does_plain_show(trial, options->get_plain, result);
}
