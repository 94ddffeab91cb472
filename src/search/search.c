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
#include "search/at_once.h"
#include "search/cut_short.h"
#include "search/in_turns.h"
#include "search/large.h"
#include "search/long_run.h"
#include "search/mutate.h"
#include "search/small_scope.h"
#include "supervise/child.h"

/* What a searcher tells, in memory that is shared. */
struct desk {
    uint64_t trials, ended, calls, small;
    unsigned small_whole;
    double busy; /* seconds, in histories */
    int broken;  /* errno, or 0 */
    int has_found;
    struct found found;
    size_t count; /* of the steps that show it */
    int at_once;  /* 1: by threads at once */
    int in_turns; /* 1: by those, but one at a time */
    struct trial_room room;
    struct step steps[MOST_STEPS];
};

struct hall {
    struct novelty novelty;
    _Atomic int is_over; /* 1: somebody has found something, or whoever waits wants an end */
    struct desk desks[];
};

/* What a history is made by, and how much of the time is each one's.  What it costs is estimated:
 * the same seed has to make the same histories. */
enum way { MADE_UP, MUTATED, LARGE, LONG_RUN, AT_ONCE, IN_TURNS, SMALL, WAYS };
static const unsigned shares[WAYS] = {[MADE_UP] = 6, [MUTATED] = 4,  [LARGE] = 2, [LONG_RUN] = 3,
                                      [AT_ONCE] = 2, [IN_TURNS] = 3, [SMALL] = 3};

struct searcher {
    const struct search_options *options;
    struct behaviour_options may;
    struct hall *hall;
    struct desk *desk;
    unsigned number;
    struct random random;
    struct trial trial;
    struct writer *writer;
    struct corpus *corpus;
    struct small_scope small;
    unsigned small_rooms; /* that were filled with its histories */
    bool is_small_lost;   /* some of them did not come to their end */
    uint64_t spent[WAYS]; /* nanoseconds, as estimated */
    enum way way;         /* of the history that is tried */
    uint64_t until, until_small;
};

/* ---- histories ------------------------------------------------------------------------------- */

/* Calls, whose histories are for every search, and seconds that they may take behind its end. */
enum { SMALL_IN_EACH = 5, SMALL_SECONDS = 60 };

static unsigned small_calls(double seconds)
{
    return seconds < 60 ? SMALL_IN_EACH : MOST_SMALL_CALLS;
}

/* The four sizes are the same for all who search: of the first of them, on whom the seed decides.
 */
static void begin_small_scope(struct searcher *s)
{
    const struct palette *palette = &s->trial.room->palette;
    struct random random = random_for(s->options->seed, "small scope");
    s->small = (struct small_scope){
        .calls = 1,
        .most = small_calls(s->options->seconds),
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

static size_t mutate(struct searcher *s)
{
    return corpus_mutate(s->corpus, &s->trial.room->palette, &s->random, s->desk->steps,
                         MAX(a_length(&s->random), (size_t)1 << 12));
}

static size_t make_up(struct searcher *s)
{
    writer_begin(s->writer, s->desk->steps, a_length(&s->random));
    s->writer->random = (struct random){random_next(&s->random)};
    behaviours_write(s->writer, &s->may);
    return s->writer->count;
}

static size_t make_large(struct searcher *s)
{
    writer_begin(s->writer, s->desk->steps, 1 << 10);
    s->writer->random = (struct random){random_next(&s->random)};
    large_write(s->writer, &s->may);
    return s->writer->count;
}

static size_t run_long(struct searcher *s)
{
    writer_begin(s->writer, s->desk->steps, (size_t)1 << (12 + random_below(&s->random, 7)));
    s->writer->random = (struct random){random_next(&s->random)};
    long_run_write(s->writer);
    return s->writer->count;
}

static struct history history_at(struct desk *desk, size_t count)
{
    return (struct history){.steps = desk->steps,
                            .count = count,
                            .at_once = desk->at_once != 0,
                            .in_turns = desk->in_turns != 0,
                            .told = desk->steps};
}

/* Tries what is on the desk; false where it shows a defect. */
static bool try_history(struct searcher *s, size_t count)
{
    enum { ONE_IN = 16 }; /* has huge pages */
    struct desk *desk = s->desk;
    struct history history = history_at(desk, count);
    desk->room.huge_pages = count % ONE_IN == 0;
    uint64_t met = s->hall->novelty.count;
    enum trial_outcome outcome = trial_run(&s->trial, &history, &desk->found);
    desk->trials++;
    desk->ended += outcome == TRIAL_PASSED;
    desk->calls += desk->room.executions.side[0].calls;
    desk->busy += desk->room.seconds;
    if (outcome == TRIAL_WRONG) {
        desk->count = count;
        desk->has_found = 1;
        return false;
    }
    if (outcome == TRIAL_PASSED && !desk->at_once && s->hall->novelty.count > met)
        corpus_add(s->corpus, desk->steps, count, &s->random);
    return true;
}

/* ---- a process that searches ----------------------------------------------------------------- */

static bool is_over(void *data)
{
    const struct searcher *s = data;
    return s->hall->is_over != 0;
}

static bool is_late(void *data)
{
    const struct searcher *s = data;
    bool is_for_each = s->way == SMALL && s->desk->small_whole < SMALL_IN_EACH;
    return clock_now() > (is_for_each ? s->until_small : s->until);
}

static PyDataMem_Handler *get(void *data)
{
    const struct searcher *s = data;
    return s->options->get(s->options->data);
}

/* For threads at once: what is about no block is left out.  Many wait for each other for long. */
static size_t write_at_once(struct searcher *s)
{
    enum { MANY = 16, MOST_TIMES = 256, LONGEST = MOST_STEPS / 4 };
    static const unsigned numbers[] = {2, 2, 2, 3, 4, 4, 8, 32, MOST_HANDS};
    struct random *random = &s->random;
    const struct behaviour_options may = {.is_brief = true};
    unsigned threads = numbers[random_below(random, sizeof numbers / sizeof *numbers)];
    size_t room = (size_t)1 << ((threads > MANY ? 8 : 10) + random_below(random, 5));
    writer_begin(s->writer, s->desk->steps, room);
    s->writer->random = (struct random){random_next(random)};
    behaviours_write(s->writer, &may);
    size_t each = s->writer->count * threads;
    if (each == 0)
        return 0;
    size_t times = 1 + random_below(random, MOST_TIMES);
    if (random_below(random, 2) == 0 && s->writer->slots * threads < MOST_SLOTS && each < LONGEST)
        return at_once_multiply(s->desk->steps, s->writer->count, s->writer->slots, threads,
                                (unsigned)MIN(LONGEST / each, times));
    at_once_deal(s->desk->steps, s->writer->count, threads, random);
    return s->writer->count;
}

static size_t write_in_turns(struct searcher *s)
{
    enum { SHORTEST_LOG2 = 6, LENGTHS = 5 };
    writer_begin(s->writer, s->desk->steps,
                 (size_t)1 << (SHORTEST_LOG2 + random_below(&s->random, LENGTHS)));
    s->writer->random = (struct random){random_next(&s->random)};
    in_turns_write(s->writer);
    return s->writer->count;
}

/* Towards the end all of the small scope that is left is to be tried. */
static bool is_turn_of_small_scope(const struct searcher *s)
{
    uint64_t left = (uint64_t)(s->options->seconds / 5 * 1e9);
    return !s->small.is_done && clock_now() + left > s->until;
}

static bool can_be(const struct searcher *s, enum way way)
{
    return way == MUTATED    ? corpus_count(s->corpus) > 0
           : way == AT_ONCE  ? s->may.threads
           : way == IN_TURNS ? s->options->stops
           : way == SMALL    ? !s->small.is_done
                             : true;
}

/* The one that has had least of its share; the first are short ones, which soon come to their end.
 */
static enum way choose(const struct searcher *s)
{
    enum way best = MADE_UP;
    for (enum way way = MADE_UP + 1; way < WAYS; way++) {
        if (can_be(s, way) && s->spent[way] * shares[best] < s->spent[best] * shares[way])
            best = way;
    }
    return is_turn_of_small_scope(s) || s->small.written == 0 ? SMALL : best;
}

static size_t write_small(struct searcher *s)
{
    enum { LEAST_LOG2 = 10, MOST_LOG2 = 16 };
    size_t room = (size_t)1 << MIN(LEAST_LOG2 + s->small_rooms, (unsigned)MOST_LOG2);
    s->small_rooms++;
    return small_scope_write(&s->small, s->desk->steps, room);
}

static size_t write_in(struct searcher *s, enum way way)
{
    struct random *random = &s->random;
    s->desk->at_once = way == AT_ONCE || way == IN_TURNS;
    s->desk->in_turns = way == IN_TURNS;
    s->trial.options.rules.whole = 0;
    if (way == AT_ONCE)
        return write_at_once(s);
    if (way == IN_TURNS)
        return write_in_turns(s);
    if (way == SMALL)
        return write_small(s);
    if (way == LARGE)
        return make_large(s);
    if (random_below(random, way == LONG_RUN ? 2 : 3) == 0)
        s->trial.options.rules.whole = (size_t)1 << (7 + random_below(random, 10));
    return way == LONG_RUN ? run_long(s) : way == MUTATED ? mutate(s) : make_up(s);
}

/* Nanoseconds.  That a thread waits for another costs more than any call. */
static uint64_t cost(const struct step *steps, size_t count, enum way way)
{
    enum { PROCESS = 2000000, THREAD = 50000, STOP = 40000, MILLISECOND = 1000000, BYTES = 4 };
    static const uint64_t a_call[WAYS] = {
        [MADE_UP] = 150,  [MUTATED] = 110,    [LARGE] = 70000, [LONG_RUN] = 150,
        [AT_ONCE] = 2000, [IN_TURNS] = 10000, [SMALL] = 150};
    uint64_t cost = PROCESS;
    unsigned threads = 0;
    for (size_t i = 0; i < count; i++) {
        cost += steps[i].times * a_call[way];
        cost += way == LONG_RUN ? steps[i].first / BYTES : 0;
        cost += steps[i].kind == STEP_STOP ? STOP : 0;
        cost += steps[i].kind == STEP_PAUSE ? steps[i].first * MILLISECOND : 0;
        if (steps[i].thread != STEP_AT_EXIT)
            threads = MAX(threads, steps[i].thread & ~(unsigned)STEP_IN_DESTRUCTOR);
    }
    return cost + (uint64_t)threads * THREAD;
}

static void search(struct searcher *s)
{
    trial_learn(&s->trial);
    begin_small_scope(s);
    s->writer->palette = &s->trial.room->palette;
    for (s->way = choose(s); !is_over(s) && !is_late(s); s->way = choose(s)) {
        uint64_t ended = s->desk->ended;
        size_t count = write_in(s, s->way);
        s->spent[s->way] += cost(s->desk->steps, count, s->way);
        if (count > 0 && !try_history(s, count))
            return;
        s->is_small_lost =
            s->is_small_lost || (s->way == SMALL && count > 0 && s->desk->ended == ended);
        s->desk->small = s->small.written;
        if (!s->is_small_lost)
            s->desk->small_whole = s->small.whole;
    }
}

struct trial search_trial(const struct search_options *options, struct trial_room *room)
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
        .may = options->may,
        .hall = hall,
        .desk = &hall->desks[number],
        .number = number,
        .random = random_for(options->seed + number, names),
        .trial = search_trial(options, &hall->desks[number].room),
        .writer = writer_new(),
        .corpus = corpus_new(),
        .until = until,
        .until_small = until + (uint64_t)SMALL_SECONDS * 1000000000,
    };
    child_prepare();
    s.trial.get = get;
    s.trial.data = &s;
    s.trial.is_over = is_over;
    s.trial.is_late = is_late;
    s.trial.options.novelty = &hall->novelty;
    if (s.writer == NULL || s.corpus == NULL) {
        s.desk->broken = ENOMEM;
        _exit(0);
    }
    s.writer->most_bytes = options->most_bytes / options->jobs;
    s.may.huge =
        options->may.huge && number == 0; /* memory for one who touches them all the same */
    search(&s);
    if (s.desk->has_found)
        hall->is_over = 1;
    _exit(0);
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
    result->small_whole = result->small_calls;
    result->branches = hall->novelty.branches;
    result->tuples = hall->novelty.count - result->branches;
    result->edges = hall->desks[0].room.palette.count;
    for (size_t i = 0; i < options->jobs; i++) {
        const struct desk *desk = &hall->desks[i];
        result->trials += desk->trials;
        result->calls += desk->calls;
        result->small += desk->small;
        result->busy += desk->busy;
        result->ended += desk->ended;
        result->small_whole = MIN(result->small_whole, desk->small_whole);
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

/* Searches for so many seconds, and cuts short what was found; false without memory. */
static bool run_once(const struct search_options *options, struct search_result *result)
{
    size_t size = sizeof(struct hall) + options->jobs * sizeof(struct desk);
    struct hall *hall =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (hall == MAP_FAILED)
        return false;
    search_by_processes(options, hall, result);
    for (size_t i = 0; i < options->jobs && !result->has_found; i++) {
        struct desk *desk = &hall->desks[i];
        if (!desk->has_found)
            continue;
        result->has_found = true;
        result->found = desk->found;
        cut_short(options,
                  &(struct uncut){&desk->room, desk->steps, desk->count, desk->at_once != 0,
                                  desk->in_turns != 0},
                  result);
    }
    munmap(hall, size);
    return true;
}

/* All that was tried until now, in the sums of the one that comes last. */
static void add_up(struct search_result *result, const struct search_result *before)
{
    result->trials += before->trials + before->small;
    result->calls += before->calls;
    result->ended += before->ended;
    result->seconds += before->seconds;
    result->busy += before->busy;
}

/* What was seen once and not again is no verdict: the time that is left is for what is one. */
void search_run(const struct search_options *options, struct search_result *result)
{
    enum { MOST_ROUNDS = 4 };
    static const double least = 0.5; /* seconds, for which it is worth beginning anew */
    struct search_options again = *options;
    memset(result, 0, sizeof *result);
    result->is_broken = !run_once(options, result);
    for (unsigned round = 1; round < MOST_ROUNDS && !result->is_broken && result->has_found &&
                             result->shown == 0 && options->seconds - result->seconds > least;
         round++) {
        struct search_result before = *result;
        if (options->is_over != NULL && options->is_over())
            return;
        memset(result, 0, sizeof *result);
        again.seconds = options->seconds - before.seconds;
        again.seed = options->seed + (uint64_t)round * MOST_SEARCHERS;
        result->is_broken = !run_once(&again, result);
        add_up(result, &before);
        bool is_better = result->has_found && result->shown > 0;
        if (is_better) {
            search_result_free(&before);
            return;
        }
        search_result_free(result);
        result->has_found = true;
        result->found = before.found;
        result->list = before.list;
        result->length_before = before.length_before;
        result->shown = before.shown;
        result->tried = before.tried;
    }
}

void search_result_free(struct search_result *result)
{
    call_list_free(&result->list);
}
