/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Processes that search, and whoever waits for them.  None of these loads the handler: that is for
 * the process of each trial.
 */
#include "search/search.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "repro/shrink.h"
#include "search/at_once.h"
#include "search/mutate.h"
#include "search/small_scope.h"
#include "supervise/child.h"

/* What a searcher tells, in memory that is shared. */
struct desk {
    uint64_t trials, calls, small;
    int is_small_done;
    double busy; /* seconds, in histories */
    int broken;  /* errno, or 0 */
    int has_found;
    struct found found;
    size_t count; /* of the steps that show it */
    int at_once;  /* 1: by threads at once */
    struct trial_room room;
    struct step steps[MOST_STEPS];
};

struct hall {
    struct novelty novelty;
    _Atomic int is_over; /* 1: somebody has found something, or whoever waits wants an end */
    struct desk desks[];
};

struct searcher {
    const struct search_options *options;
    struct hall *hall;
    struct desk *desk;
    unsigned number;
    struct random random;
    struct trial trial;
    struct writer *writer;
    struct corpus *corpus;
    struct small_scope small;
    uint64_t until;
};

/* ---- histories ------------------------------------------------------------------------------- */

static unsigned small_calls(double seconds)
{
    return seconds < 1 ? 3 : seconds < 5 ? 4 : seconds < 60 ? 5 : 6;
}

/* The four sizes are the same for all who search: of the first of them, on whom the seed decides.
 */
static void begin_small_scope(struct searcher *s)
{
    const struct palette *palette = &s->trial.room->palette;
    struct random random = random_for(s->options->seed, "small scope");
    s->small = (struct small_scope){
        .calls = small_calls(s->options->seconds),
        .part = s->number,
        .parts = (unsigned)s->options->jobs,
    };
    size_t edge = palette->count > 0 ? palette->edge[random_below(&random, palette->count)] : 64;
    s->small.size[0] = 1 + random_below(&random, 32);
    s->small.size[1] = edge;
    s->small.size[2] = edge + 1;
    s->small.size[3] = palette_size(palette, &random, 256 << 10);
}

/* So that short histories and long ones have about as much time. */
static size_t a_length(struct random *random)
{
    switch (random_below(random, 64)) {
    case 0:
        return MOST_STEPS / 2;
    case 1:
    case 2:
    case 3:
        return 1 << 17;
    default:
        return (size_t)1 << (6 + random_below(random, 10));
    }
}

static size_t write_history(struct searcher *s)
{
    struct random *random = &s->random;
    size_t room = a_length(random);
    s->trial.options.rules.whole =
        random_below(random, 3) == 0 ? (size_t)1 << (7 + random_below(random, 10)) : 0;
    if (corpus_count(s->corpus) > 0 && random_below(random, 2) == 0)
        return corpus_mutate(s->corpus, &s->trial.room->palette, random, s->desk->steps,
                             MAX(room, (size_t)1 << 12));
    writer_begin(s->writer, s->desk->steps, room);
    s->writer->random = (struct random){random_next(random)};
    behaviours_write(s->writer, &s->options->may);
    return s->writer->count;
}

/* Tries what is on the desk; false where the search is to end. */
static bool try_history(struct searcher *s, size_t count)
{
    struct desk *desk = s->desk;
    struct history history = {desk->steps, count, desk->at_once != 0};
    uint64_t met = s->hall->novelty.count;
    enum trial_outcome outcome = trial_run(&s->trial, &history, &desk->found);
    desk->trials++;
    desk->calls += desk->room.executions.side[0].calls;
    desk->busy += desk->room.seconds;
    if (outcome == TRIAL_WRONG) {
        desk->count = count;
        desk->has_found = 1;
        return false;
    }
    if (outcome == TRIAL_HELD && !desk->at_once && s->hall->novelty.count > met)
        corpus_add(s->corpus, desk->steps, count, &s->random);
    return outcome != TRIAL_OVER;
}

/* ---- a process that searches ----------------------------------------------------------------- */

static bool is_over(void *data)
{
    const struct searcher *s = data;
    return s->hall->is_over != 0 || clock_now() > s->until;
}

static PyDataMem_Handler *get(void *data)
{
    const struct searcher *s = data;
    return s->options->get(s->options->data);
}

/* Every so often, and all the time when half of it is over: all of them are to be tried. */
static bool is_turn_of_small_scope(const struct searcher *s, size_t i)
{
    enum { EVERY = 8 };
    uint64_t half = (uint64_t)(s->options->seconds / 2 * 1e9);
    return !s->small.is_done && (i % EVERY == EVERY - 1 || clock_now() + half > s->until);
}

/* For threads at once: what is about no block is left out. */
static size_t write_at_once(struct searcher *s)
{
    static const unsigned numbers[] = {2, 2, 2, 3, 4, 4, 8, 32, MOST_HANDS};
    struct random *random = &s->random;
    const struct behaviour_options may = {.is_brief = true};
    writer_begin(s->writer, s->desk->steps, (size_t)1 << (10 + random_below(random, 5)));
    s->writer->random = (struct random){random_next(random)};
    s->trial.options.rules.whole = 0;
    behaviours_write(s->writer, &may);
    at_once_deal(s->desk->steps, s->writer->count,
                 numbers[random_below(random, sizeof numbers / sizeof *numbers)], random);
    return s->writer->count;
}

static size_t write_any(struct searcher *s, size_t i)
{
    enum { AT_ONCE_EVERY = 6 };
    bool small = is_turn_of_small_scope(s, i);
    s->desk->at_once = !small && s->options->may.threads && i % AT_ONCE_EVERY == AT_ONCE_EVERY - 1;
    if (s->desk->at_once)
        return write_at_once(s);
    if (!small)
        return write_history(s);
    s->trial.options.rules.whole = 0;
    return small_scope_write(&s->small, s->desk->steps, MOST_STEPS);
}

static void search(struct searcher *s)
{
    trial_learn(&s->trial);
    begin_small_scope(s);
    s->writer->palette = &s->trial.room->palette;
    for (size_t i = 0; !is_over(s); i++) {
        size_t count = write_any(s, i);
        if (count > 0 && !try_history(s, count))
            return;
        s->desk->small = s->small.written;
        s->desk->is_small_done = s->small.is_done;
    }
}

static struct trial trial_of(const struct search_options *options, struct trial_room *room)
{
    return (struct trial){
        .options = {.rules = {.alignment = options->alignment, .unjudged = options->unjudged},
                    .most_bytes = options->most_bytes,
                    .huge = options->may.huge},
        .room = room,
        .hangs = options->hangs,
        .tries = 1,
    };
}

static _Noreturn void be_searcher(const struct search_options *options, struct hall *hall,
                                  unsigned number, uint64_t until)
{
    static const char *const names = "searcher";
    struct searcher s = {
        .options = options,
        .hall = hall,
        .desk = &hall->desks[number],
        .number = number,
        .random = random_for(options->seed + number, names),
        .trial = trial_of(options, &hall->desks[number].room),
        .writer = writer_new(),
        .corpus = corpus_new(),
        .until = until,
    };
    child_prepare();
    s.trial.get = get;
    s.trial.data = &s;
    s.trial.is_over = is_over;
    s.trial.options.novelty = &hall->novelty;
    if (s.writer == NULL || s.corpus == NULL) {
        s.desk->broken = ENOMEM;
        _exit(0);
    }
    s.writer->most_bytes = options->most_bytes / options->jobs;
    search(&s);
    if (s.desk->has_found)
        hall->is_over = 1;
    _exit(0);
}

/* ---- cutting it short ------------------------------------------------------------------------ */

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

/* How often it shows, of so many times. */
static void count_shown(struct trial *trial, struct search_result *result)
{
    enum { TIMES = 10 };
    struct history history = {result->list.at, result->list.count, result->list.checks.at_once};
    struct found found;
    bool hangs = strcmp(result->found.kind, "hangs") == 0;
    result->shown = result->tried = 0;
    for (int i = 0; i < (hangs ? 1 : TIMES); i++) {
        enum trial_outcome outcome = trial_run(trial, &history, &found);
        if (outcome == TRIAL_OVER)
            return;
        result->tried++;
        result->shown += outcome == TRIAL_WRONG;
        if (outcome == TRIAL_WRONG)
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
    call_list_tidy(&result->list);
    count_shown(trial, result);
    if (result->shown > 0 || before.count == 0) {
        call_list_free(&before);
        return;
    }
    call_list_free(&result->list);
    result->list = before;
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
    struct history history = {result->list.at, result->list.count, result->list.checks.at_once};
    struct found found;
    enum trial_outcome outcome = TRIAL_HELD;
    trial.get = get_plain;
    trial.options.rules.alignment = 0; /* it claims nothing */
    for (unsigned i = 0; i < result->tried && outcome == TRIAL_HELD; i++)
        outcome = trial_run(&trial, &history, &found);
    return outcome == TRIAL_WRONG;
}

static void cut_short(const struct search_options *options, struct desk *desk,
                      struct search_result *result)
{
    static const double seconds = 30;
    struct trial trial = trial_of(options, &desk->room);
    trial.get = get_for_shrinking;
    trial.data = (void *)options;
    trial.is_over = is_over_for_shrinking;
    trial.options.rules.whole = 1 << 17;
    trial.hangs = MIN(options->hangs, 1.0);
    struct call_list found = {
        .at = desk->steps, .count = desk->count, .checks.at_once = desk->at_once != 0};
    result->length_before = desk->count;
    result->list = call_list_copy(&found);
    count_shown(&trial, result);
    if (result->shown == 0)
        return;
    trial.tries = result->tried / result->shown; /* as rarely as that, and not more so */
    struct attempt seen = {.outcome = REPRODUCED,
                           .at = found.checks.at_once ? found.count : result->found.at};
    snprintf(seen.what, sizeof seen.what, "%s",
             strcmp(result->found.kind, "hangs") == 0 ? "hangs" : "wrong");
    shrink(trial_attempt, &trial, &result->list, seen,
           found.checks.at_once ? seconds / 3 : seconds);
    make_readable(&trial, result);
    result->plain_shows = does_plain_show(&trial, result);
}

/* ---- around the processes -------------------------------------------------------------------- */

struct waiting {
    const struct search_options *options;
    struct hall *hall;
};

static bool pass_on(void *data)
{
    const struct waiting *waiting = data;
    if (waiting->options->is_over != NULL && waiting->options->is_over())
        waiting->hall->is_over = 1;
    return false;
}

static void gather(const struct search_options *options, struct hall *hall,
                   struct search_result *result)
{
    result->small_calls = small_calls(options->seconds);
    result->is_small_done = true;
    result->branches = hall->novelty.branches;
    result->tuples = hall->novelty.count - result->branches;
    result->edges = hall->desks[0].room.palette.count;
    for (size_t i = 0; i < options->jobs; i++) {
        const struct desk *desk = &hall->desks[i];
        result->trials += desk->trials;
        result->calls += desk->calls;
        result->small += desk->small;
        result->busy += desk->busy;
        result->is_small_done = result->is_small_done && desk->is_small_done;
        if (desk->broken != 0) {
            result->is_broken = true;
            errno = desk->broken;
        }
    }
}

static void search_by_processes(const struct search_options *options, struct hall *hall,
                                struct search_result *result)
{
    pid_t pids[MOST_SEARCHERS];
    struct waiting waiting = {options, hall};
    uint64_t begun = clock_now(), until = begun + (uint64_t)(options->seconds * 1e9);
    int status;
    for (size_t i = 0; i < options->jobs; i++) {
        pids[i] = child_fork(true);
        if (pids[i] == 0)
            be_searcher(options, hall, (unsigned)i, until);
    }
    for (size_t i = 0; i < options->jobs; i++) {
        if (pids[i] < 0 || child_wait(pids[i], pass_on, &waiting, &status) < 0)
            result->is_broken = true;
    }
    result->seconds = clock_since(begun);
    gather(options, hall, result);
}

void search_run(const struct search_options *options, struct search_result *result)
{
    size_t size = sizeof(struct hall) + options->jobs * sizeof(struct desk);
    struct hall *hall =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memset(result, 0, sizeof *result);
    if (hall == MAP_FAILED) {
        result->is_broken = true;
        return;
    }
    search_by_processes(options, hall, result);
    for (size_t i = 0; i < options->jobs && !result->has_found; i++) {
        struct desk *desk = &hall->desks[i];
        if (!desk->has_found)
            continue;
        result->has_found = true;
        result->found = desk->found;
        cut_short(options, desk, result);
    }
    munmap(hall, size);
}

void search_result_free(struct search_result *result)
{
    call_list_free(&result->list);
}
