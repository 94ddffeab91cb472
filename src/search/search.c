/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The search: processes that choose what to try next and try it, and the one that waits for them.
 */
#include "search/search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "repro/call_log.h"
#include "search/concurrent.h"
#include "supervise/child.h"
#include "supervise/interrupt.h"

struct trial search_trial(const struct search_options *options, struct trial_room *room)
{
    return (struct trial){
        .options = {.rules = {.alignment = options->alignment, .unjudged = options->unjudged},
                    .most_bytes = options->most_bytes,
                    .huge = options->huge},
        .get = options->get,
        .get_data = options->data,
        .room = room,
        .hangs = options->hangs,
        .tries = 1,
    };
}

/* ---- a process that searches ----------------------------------------------------------------- */

/* What a searcher tells, in memory that is shared. */
struct search_slot {
    uint64_t trials, ended, calls;
    double busy; /* seconds, in histories */
    int broken;  /* errno, or 0 */
    int has_found;
    struct found found;
    struct call_list list; /* that is tried, and shows it; of `steps` */
    struct trial_room room;
    struct step steps[MOST_STEPS];
};

struct search_shared {
    struct novelty novelty;
    _Atomic int is_over; /* 1: somebody has found something, or whoever waits wants an end */
    struct search_slot slots[];
};

/* What a history is made by. */
enum way { MADE_UP, MUTATED, LARGE, HUGE, LONG_RUN, AT_ONCE, IN_TURNS, WAITING, WAYS };

struct searcher {
    const struct search_options *options;
    struct scenario_limits may;
    bool huge;
    struct search_shared *shared;
    struct search_slot *own;
    unsigned number;
    struct random random;
    struct trial trial;
    struct writer *writer;
    struct corpus corpus;
    unsigned huge_ones;   /* histories, so far */
    uint64_t spent[WAYS]; /* nanoseconds, as estimated */
    enum way way;         /* of the history that is tried */
    uint64_t until;
};

/* ---- ways to make one ------------------------------------------------------------------------ */

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

/* With random numbers of its own, and room for so many steps. */
static struct writer *begin(struct searcher *s, size_t room)
{
    writer_begin(s->writer, s->own->steps, room);
    s->writer->random = (struct random){random_next(&s->random)};
    return s->writer;
}

/* Rows with blocks of up to 4 KiB as often as with larger ones; with a few sizes as often as with
 * any. */
static void write_rows(struct searcher *s, size_t room, const struct scenario_limits *may)
{
    enum { FEW = 6 };
    static const size_t most[] = {4 << 10, 4 << 10, 4 << 10, 64 << 10, 64 << 10, 1 << 20, 0};
    struct writer *writer = begin(s, room);
    struct random *random = &s->random;
    struct scenario_limits limits = *may;
    size_t sizes[FEW];
    limits.most_size = most[random_below(random, sizeof most / sizeof *most)];
    limits.most_bytes = writer->most_bytes;
    limits.most_steps = room;
    if (random_below(random, 2) == 0) {
        writer->sizes = sizes;
        writer->size_count = 1 + random_below(random, FEW);
        for (size_t i = 0; i < writer->size_count; i++)
            sizes[i] = size_dict_size(writer->size_dict, random,
                                      limits.most_size != 0 ? limits.most_size : (size_t)1 << 20);
    }
    scenarios_write(&limits, writer);
    writer->size_count = 0;
}

static size_t make_up(struct searcher *s)
{
    write_rows(s, a_length(&s->random), &s->may);
    return s->writer->count;
}

static size_t mutate(struct searcher *s)
{
    return corpus_mutate(&s->corpus, &s->trial.room->size_dict, &s->random, s->own->steps,
                         MAX(a_length(&s->random), (size_t)1 << 12));
}

enum { FEW_STEPS = 1 << 10 };

/* Rows of blocks of many pages. */
static size_t make_large(struct searcher *s)
{
    enum { MOST_STEPS_OF_ROW = 128 };
    const struct scenario_limits limits = {.least_size = 64 << 10,
                                           .most_bytes = s->writer->most_bytes,
                                           .most_steps = MOST_STEPS_OF_ROW,
                                           .address_limits = s->may.address_limits};
    scenarios_write(&limits, begin(s, FEW_STEPS));
    return s->writer->count;
}

static size_t make_huge(struct searcher *s)
{
    enum { ZEROED_EVERY = 32 };
    write_huge_blocks(begin(s, FEW_STEPS), s->huge_ones++ % ZEROED_EVERY == 0);
    return s->writer->count;
}

static size_t run_long(struct searcher *s)
{
    write_long_run(begin(s, (size_t)1 << (12 + random_below(&s->random, 7))));
    return s->writer->count;
}

static size_t wait_long(struct searcher *s)
{
    const struct scenario_limits limits = {.most_bytes = s->writer->most_bytes,
                                           .most_steps = FEW_STEPS,
                                           .pauses = true,
                                           .level[FACTOR_TIME] = FROM_TO(1, 2)};
    scenarios_write(&limits, begin(s, FEW_STEPS));
    return s->writer->count;
}

/* For threads at once: what is about no block is left out.  Many wait for each other for long. */
static size_t write_at_once(struct searcher *s)
{
    enum { MANY = 16, MOST_TIMES = 256, LONGEST = MOST_STEPS / 4 };
    static const unsigned numbers[] = {2, 2, 2, 3, 4, 4, 8, 32, MOST_AT_ONCE};
    struct random *random = &s->random;
    const struct scenario_limits may = {0};
    unsigned threads = numbers[random_below(random, sizeof numbers / sizeof *numbers)];
    size_t room = (size_t)1 << ((threads > MANY ? 8 : 10) + random_below(random, 5));
    write_rows(s, room, &may);
    size_t each = s->writer->count * threads;
    if (each == 0)
        return 0;
    size_t times = 1 + random_below(random, MOST_TIMES);
    if (random_below(random, 2) == 0 && s->writer->slots * threads < MOST_SLOTS && each < LONGEST)
        return concurrent_multiply(s->own->steps, s->writer->count, s->writer->slots, threads,
                                   (unsigned)MIN(LONGEST / each, times));
    concurrent_assign(s->own->steps, s->writer->count, threads, random);
    return s->writer->count;
}

static size_t write_in_turns(struct searcher *s)
{
    enum { SHORTEST_LOG2 = 6, LENGTHS = 5, LEAST_LOG2 = 6, LARGEST_LOG2 = 14, SIZES = 3 };
    size_t room = (size_t)1 << (SHORTEST_LOG2 + random_below(&s->random, LENGTHS));
    struct writer *writer = begin(s, room);
    size_t most =
        (size_t)1 << (LEAST_LOG2 + random_below(&writer->random, LARGEST_LOG2 + 1 - LEAST_LOG2));
    size_t sizes[SIZES], count = 1 + random_below(&writer->random, SIZES);
    for (size_t i = 0; i < count; i++)
        sizes[i] = size_dict_size(writer->size_dict, &writer->random, most);
    interleaved_write(writer, sizes, count, room);
    return writer->count;
}

/* What a call costs is estimated: the same seed has to make the same histories. */
static const struct {
    unsigned share; /* of the time */
    uint64_t call;  /* nanoseconds */
    size_t (*write)(struct searcher *s);
} ways[WAYS] = {
    [MADE_UP] = {6, 150, make_up},           [MUTATED] = {4, 110, mutate},
    [LARGE] = {4, 70000, make_large},        [HUGE] = {1, 100000, make_huge},
    [LONG_RUN] = {3, 150, run_long},         [AT_ONCE] = {2, 2000, write_at_once},
    [IN_TURNS] = {3, 10000, write_in_turns}, [WAITING] = {2, 1000, wait_long},
};

/* Blocks of all sizes, by one thread after the other. */
static bool is_plain(enum way way)
{
    return way == MADE_UP || way == MUTATED || way == LONG_RUN;
}

/* Nanoseconds.  That a thread waits for another costs more than any call. */
static uint64_t cost(const struct step *steps, size_t count, enum way way)
{
    enum { PROCESS = 3000000, THREAD = 50000, STOP = 40000, MILLISECOND = 1000000, BYTES = 4 };
    enum { HUGE_BYTES = 128, LARGE_SIZE = 1 << 17, LARGE_CALL = 10000 };
    uint64_t cost = PROCESS;
    unsigned threads = 0;
    for (size_t i = 0; i < count; i++) {
        cost += steps[i].times * ways[way].call;
        cost += steps[i].first >= LARGE_SIZE && is_plain(way) ? steps[i].times * LARGE_CALL : 0;
        cost += way == LONG_RUN ? steps[i].first / BYTES : 0;
        cost += way == HUGE && steps[i].kind == STEP_CALLOC ? steps[i].first / HUGE_BYTES : 0;
        cost += steps[i].kind == STEP_STOP ? STOP : 0;
        cost += steps[i].kind == STEP_PAUSE ? steps[i].first * MILLISECOND : 0;
        if (steps[i].thread != STEP_AT_EXIT)
            threads = MAX(threads, steps[i].thread & ~(unsigned)STEP_IN_DESTRUCTOR);
    }
    return cost + (uint64_t)threads * THREAD;
}

/* How much of the blocks is written and looked at. */
static void choose_contents(struct searcher *s, enum way way)
{
    struct fill_rules *rules = &s->trial.options.rules.fill;
    rules->marks = is_plain(way) ? random_below(&s->random, 4) == 0
                                 : way == LARGE || way == HUGE || way == WAITING;
    rules->whole = is_plain(way) && random_below(&s->random, way == LONG_RUN ? 2 : 3) == 0
                       ? (size_t)1 << (7 + random_below(&s->random, 10))
                       : 0;
}

static size_t write_in(struct searcher *s, enum way way)
{
    s->own->list = (struct call_list){.at = s->own->steps,
                                      .at_once = way == AT_ONCE || way == IN_TURNS,
                                      .in_turns = way == IN_TURNS,
                                      .notes = true};
    choose_contents(s, way);
    return ways[way].write(s);
}

/* ---- trying one ------------------------------------------------------------------------------ */

/* Tries the sequence in the own slot; false if it shows a defect. */
static bool try_history(struct searcher *s, size_t count)
{
    enum { ONE_IN = 16 }; /* has huge pages */
    struct search_slot *own = s->own;
    own->list.count = count;
    own->room.huge_pages = count % ONE_IN == 0 && s->way != HUGE;
    uint64_t met = s->shared->novelty.count;
    enum trial_outcome outcome = trial_run(&s->trial, &own->list, &own->found);
    own->trials++;
    own->ended += outcome == TRIAL_PASSED;
    own->calls += own->room.executions.side[0].calls;
    own->busy += own->room.seconds;
    if (outcome == TRIAL_WRONG) {
        own->has_found = 1;
        return false;
    }
    bool is_cheap = s->way != HUGE && s->way != WAITING;
    if (outcome == TRIAL_PASSED && !own->list.at_once && is_cheap && s->shared->novelty.count > met)
        corpus_add(&s->corpus, own->steps, count, &s->random);
    return true;
}

/* ---- a process that searches ----------------------------------------------------------------- */

static bool is_over(void *data)
{
    const struct searcher *s = data;
    return s->shared->is_over != 0;
}

/* On a busy machine the first history may take a minute more. */
static bool is_late(void *data)
{
    const struct searcher *s = data;
    uint64_t more = s->own->ended == 0 ? (uint64_t)60 * 1000000000 : 0;
    return clock_now() > s->until + more;
}

static bool can_be(const struct searcher *s, enum way way)
{
    return way == MUTATED    ? s->corpus.count > 0
           : way == AT_ONCE  ? s->may.threads
           : way == IN_TURNS ? s->options->stops
           : way == HUGE     ? s->huge
           : way == WAITING  ? s->number + 1 == s->options->jobs
                             : true;
}

/* The one that has had least of its share; the first are short ones, which soon come to their end.
 */
static enum way choose(const struct searcher *s)
{
    enum way best = MADE_UP;
    for (enum way way = MADE_UP + 1; way < WAYS; way++) {
        if (can_be(s, way) && s->spent[way] * ways[best].share < s->spent[best] * ways[way].share)
            best = way;
    }
    return best;
}

static void search(struct searcher *s)
{
    enum { MILLISECONDS = 1000000 };
    trial_learn(&s->trial);
    s->spent[HUGE] = 20 * MILLISECONDS;     /* for who searches for more than a second */
    s->spent[WAITING] = 150 * MILLISECONDS; /* or a few */
    s->writer->size_dict = &s->trial.room->size_dict;
    for (s->way = choose(s); !is_over(s) && !is_late(s); s->way = choose(s)) {
        size_t count = write_in(s, s->way);
        s->spent[s->way] += cost(s->own->steps, count, s->way);
        if (count > 0 && !try_history(s, count))
            return;
    }
}

/* Searches in the slot of that number until clock_now() is past `until`.  None of these processes
 * loads the handler: the process of each trial does. */
_Noreturn static void be_searcher(const struct search_options *options,
                                  struct search_shared *shared, unsigned number, uint64_t until)
{
    struct searcher s = {
        .options = options,
        .may = options->may,
        .shared = shared,
        .own = &shared->slots[number],
        .number = number,
        .random = random_for(options->seed + number, "searcher"),
        .trial = search_trial(options, &shared->slots[number].room),
        .writer = writer_new(),
        .until = until,
    };
    child_prepare();
    s.trial.data = &s;
    s.trial.is_over = is_over;
    s.trial.is_late = is_late;
    s.trial.options.novelty = &shared->novelty;
    if (s.writer == NULL) {
        s.own->broken = ENOMEM;
        _exit(0);
    }
    s.writer->most_bytes = options->most_bytes / options->jobs;
    s.huge = options->huge && number == 0; /* memory for one who touches them all the same */
    search(&s);
    if (s.own->has_found)
        shared->is_over = 1;
    _exit(0);
}

/* ---- the process that waits for them --------------------------------------------------------- */

static bool pass_on(void *data)
{
    struct search_shared *shared = data;
    if (interrupt_came() != 0)
        shared->is_over = 1;
    return false;
}

static void gather(const struct search_options *options, struct search_shared *shared,
                   struct search_result *result)
{
    result->tuples = shared->novelty.count;
    result->edges = shared->slots[0].room.size_dict.count;
    for (size_t i = 0; i < options->jobs; i++) {
        const struct search_slot *own = &shared->slots[i];
        result->trials += own->trials;
        result->calls += own->calls;
        result->busy += own->busy;
        result->ended += own->ended;
        if (own->broken != 0) {
            result->is_broken = true;
            errno = own->broken;
        }
    }
}

static void search_by_processes(const struct search_options *options, struct search_shared *shared,
                                struct search_result *result)
{
    pid_t pids[MOST_SEARCHERS];
    uint64_t begun = clock_now(), until = begun + (uint64_t)(options->seconds * 1e9);
    int status;
    for (size_t i = 0; i < options->jobs; i++) {
        pids[i] = child_fork(true);
        if (pids[i] == 0)
            be_searcher(options, shared, (unsigned)i, until);
    }
    for (size_t i = 0; i < options->jobs; i++) {
        if (pids[i] < 0 || child_wait(pids[i], pass_on, shared, &status) < 0)
            result->is_broken = true;
    }
    result->seconds += clock_since(begun);
    gather(options, shared, result);
}

/* Searches for so many seconds, adds that to the result, and shrinks what was found, which takes
 * the place of what is there; false without memory. */
static bool run_once(const struct search_options *options, struct search_result *result)
{
    size_t size = sizeof(struct search_shared) + options->jobs * sizeof(struct search_slot), i = 0;
    struct search_shared *shared =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shared == MAP_FAILED)
        return false;
    search_by_processes(options, shared, result);
    while (i < options->jobs && !shared->slots[i].has_found)
        i++;
    if (i < options->jobs) {
        struct search_slot *own = &shared->slots[i];
        search_result_free(result);
        result->has_found = true;
        result->found = own->found;
        result->shown = result->tried = 0;
        own->list.at = own->steps; /* whatever the handler has written over it */
        shrink_result(options, &own->room, &own->list, result);
    }
    munmap(shared, size);
    return true;
}

/* What was seen once and not again is no verdict: the time that is left is for what is one. */
void search_run(const struct search_options *options, struct search_result *result)
{
    enum { MOST_ROUNDS = 4 };
    static const double least = 0.5; /* seconds, for which it is worth beginning anew */
    struct search_options again = *options;
    memset(result, 0, sizeof *result);
    trial_prepare();
    for (unsigned round = 0; round < MOST_ROUNDS; round++) {
        again.seconds = options->seconds - result->seconds;
        again.seed = options->seed + (uint64_t)round * MOST_SEARCHERS;
        result->is_broken = !run_once(&again, result) || result->is_broken;
        if (result->is_broken || !result->has_found || result->shown > 0 ||
            options->seconds - result->seconds <= least || interrupt_came() != 0)
            return;
    }
}

void search_result_free(struct search_result *result)
{
    call_list_free(&result->list);
}
