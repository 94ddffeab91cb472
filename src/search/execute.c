/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All steps of a history, in order or by threads at once.
 */
#include "search/execute.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "search/at_once.h"
#include "search/coverage.h"
#include "search/steps.h"

static bool is_late(const struct executing *e, size_t step)
{
    enum { LOOK_EVERY = 16 };
    return step % LOOK_EVERY == 0 && e->options->until != UINT64_MAX &&
           clock_now() > e->options->until;
}

static void *do_row(void *data)
{
    struct executing *e = data;
    e->heap.error = &errno;
    for (size_t i = e->from; i < e->to && e->holds && !is_late(e, i); i++) {
        atomic_store_explicit(&e->execution->at, i, memory_order_relaxed);
        e->holds = steps_do(e, &e->history->steps[i]);
    }
    return NULL;
}

/* Steps of a thread in a row are those of a new one, which then ends.  A thread that is begun with
 * little memory may lack what is no heap's to have: its own variables. */
static void in_thread(struct executing *e)
{
    pthread_t thread;
    steps_limit(e, 0);
    if (pthread_create(&thread, NULL, do_row, e) != 0 || pthread_join(thread, NULL) != 0)
        do_row(e);
    e->heap.error = &errno;
}

static void do_steps(struct executing *e)
{
    const struct history *history = e->history;
    for (e->from = 0; e->from < history->count && e->holds; e->from = e->to) {
        unsigned thread = history->steps[e->from].thread;
        for (e->to = e->from; e->to < history->count; e->to++) {
            if (history->steps[e->to].thread != thread)
                break;
        }
        if (thread == 0)
            do_row(e);
        else
            in_thread(e);
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void conclude(struct executing *e)
{
    struct execution *execution = e->execution;
    atomic_store(&execution->at, e->holds ? e->history->count : execution->at);
    if (e->holds)
        e->holds = heap_look_at_all(&e->heap) && heap_state_holds(&e->heap);
    execution->warning = e->heap.warning;
    execution->violation = e->heap.violation;
    execution->state = e->holds            ? EXECUTION_HELD
                       : e->heap.no_memory ? EXECUTION_NO_MEMORY
                                           : EXECUTION_VIOLATED;
}

void execute(const struct history *history, PyDataMem_Handler *handler,
             const struct execute_options *options, struct executions *executions)
{
    struct executing e = {
        .history = history,
        .allocator = &handler->allocator,
        .options = options,
        .execution = &executions->side[0],
        .all = executions,
        .novelty = options->novelty,
        .holds = true,
    };
    e.execution->state = EXECUTION_UNDER_WAY;
    getrlimit(RLIMIT_AS, &e.room);
    struct heap_rules rules = options->rules;
    rules.without_map = history->at_once;
    e.holds = heap_begin(&e.heap, &rules) && heap_reserve(&e.heap, options->slots);
    e.heap.is_limited = options->may_refuse;
    if (history->at_once && e.holds)
        at_once_do(&e);
    else
        do_steps(&e);
    steps_limit(&e, 0);
    if (e.novelty != NULL)
        coverage_tell(e.novelty);
    conclude(&e);
    if (e.is_child)
        _exit(0);
    for (unsigned i = 0; i < e.forks; i++)
        waitpid(e.children[i], &executions->side[1 + i].status, 0);
    heap_end(&e.heap);
}
