/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whoever waits for the processes that search.
 */
#include "search/search.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "search/cut_short.h"
#include "search/searcher.h"
#include "supervise/child.h"

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

struct waiting {
    const struct search_options *options;
    struct search_shared *shared;
};

static bool pass_on(void *data)
{
    const struct waiting *waiting = data;
    if (waiting->options->is_over != NULL && waiting->options->is_over())
        waiting->shared->is_over = 1;
    return false;
}

static void gather(const struct search_options *options, struct search_shared *shared,
                   struct search_result *result)
{
    result->small_calls = searcher_small_calls(options->seconds);
    result->small_whole = result->small_calls;
    result->branches = shared->novelty.branches;
    result->tuples = shared->novelty.count - result->branches;
    result->edges = shared->slots[0].room.size_dict.count;
    for (size_t i = 0; i < options->jobs; i++) {
        const struct search_slot *own = &shared->slots[i];
        result->trials += own->trials;
        result->calls += own->calls;
        result->small += own->small;
        result->busy += own->busy;
        result->ended += own->ended;
        result->small_whole = MIN(result->small_whole, own->small_whole);
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
    struct waiting waiting = {options, shared};
    uint64_t begun = clock_now(), until = begun + (uint64_t)(options->seconds * 1e9);
    int status;
    for (size_t i = 0; i < options->jobs; i++) {
        pids[i] = child_fork(true);
        if (pids[i] == 0)
            searcher_be(options, shared, (unsigned)i, until);
    }
    for (size_t i = 0; i < options->jobs; i++) {
        if (pids[i] < 0 || child_wait(pids[i], pass_on, &waiting, &status) < 0)
            result->is_broken = true;
    }
    result->seconds = clock_since(begun);
    gather(options, shared, result);
}

/* Searches for so many seconds, and cuts short what was found; false without memory. */
static bool run_once(const struct search_options *options, struct search_result *result)
{
    size_t size = sizeof(struct search_shared) + options->jobs * sizeof(struct search_slot);
    struct search_shared *shared =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shared == MAP_FAILED)
        return false;
    search_by_processes(options, shared, result);
    for (size_t i = 0; i < options->jobs && !result->has_found; i++) {
        struct search_slot *own = &shared->slots[i];
        if (!own->has_found)
            continue;
        result->has_found = true;
        result->found = own->found;
        cut_short(options,
                  &(struct uncut){&own->room, own->steps, own->count, own->at_once != 0,
                                  own->in_turns != 0},
                  result);
    }
    munmap(shared, size);
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
    trial_prepare();
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
