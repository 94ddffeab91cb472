/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All steps of a history, in order or by threads at once.
 */
#include "search/execute.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "search/concurrent.h"
#include "search/coverage.h"
#include "search/interleaved.h"
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
    for (size_t i = e->from; i < e->to && e->passes && !is_late(e, i); i++) {
        atomic_store_explicit(&e->execution->at, i, memory_order_relaxed);
        e->passes = steps_do(e, &e->history->steps[i]);
    }
    return NULL;
}

/* Where the steps end that one thread makes in a row. */
static size_t end_of_row(const struct history *history, size_t from, unsigned thread)
{
    while (from < history->count && history->steps[from].thread == thread)
        from++;
    return from;
}

/* A thread, and what it does when it ends. */
struct leaving {
    struct executing *e;
    unsigned thread;
    pthread_key_t key;
    unsigned rounds; /* of destructors that are let pass: the handler's own may be among them */
};

static void when_it_ends(void *data)
{
    struct leaving *l = data;
    if (l->rounds-- > 0 && pthread_setspecific(l->key, l) == 0)
        return;
    l->e->from = l->e->to;
    l->e->to = end_of_row(l->e->history, l->e->from, l->thread | STEP_IN_DESTRUCTOR);
    do_row(l->e);
}

static void *be_thread(void *data)
{
    struct leaving *l = data;
    pthread_setspecific(l->key, l);
    return do_row(l->e);
}

/* Steps of a thread in a row are those of a new one, which then ends.  A thread that is begun with
 * little memory may lack what is no heap's to have: its own variables. */
static void in_thread(struct executing *e, unsigned number)
{
    pthread_t thread;
    struct leaving leaving = {.e = e, .thread = number, .rounds = e->to % 2};
    steps_limit(e, 0);
    e->passes = pthread_key_create(&leaving.key, when_it_ends) == 0;
    if (!e->passes) {
        e->heap.no_memory = true;
        return;
    }
    if (pthread_create(&thread, NULL, be_thread, &leaving) != 0 || pthread_join(thread, NULL) != 0)
        do_row(e);
    pthread_key_delete(leaving.key);
    e->heap.error = &errno;
}

/* Up to what is left for the exit. */
static void do_steps(struct executing *e)
{
    const struct history *history = e->history;
    for (e->from = e->to = 0; e->from < history->count && e->passes; e->from = e->to) {
        if (history->steps[e->from].thread == STEP_AT_EXIT)
            return;
        unsigned thread = history->steps[e->from].thread & ~(unsigned)STEP_IN_DESTRUCTOR;
        e->to = end_of_row(history, e->from, thread);
        if (thread == 0)
            do_row(e);
        else
            in_thread(e, thread);
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void conclude(struct executing *e)
{
    struct execution *execution = e->execution;
    atomic_store(&execution->at, e->passes ? e->history->count : execution->at);
    if (e->passes)
        e->passes = heap_look_at_all(&e->heap) && heap_state_holds(&e->heap);
    execution->warning = e->heap.warning;
    execution->violation = e->heap.violation;
    execution->state = e->passes           ? EXECUTION_PASSED
                       : e->heap.no_memory ? EXECUTION_NO_MEMORY
                                           : EXECUTION_VIOLATED;
}

static void finish(struct executing *e)
{
    steps_limit(e, 0);
    if (e->novelty != NULL)
        coverage_tell(e->novelty);
    conclude(e);
    if (e->is_child)
        _exit(0);
    for (unsigned i = 0; i < e->forks; i++)
        waitpid(e->children[i], &e->all->side[1 + i].status, 0);
    heap_end(&e->heap);
}

static struct executing *exiting; /* or NULL */

void execute_at_exit(void)
{
    if (exiting == NULL)
        return;
    exiting->to = exiting->history->count;
    do_row(exiting);
    finish(exiting);
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
        .passes = true,
    };
    e.execution->state = EXECUTION_UNDER_WAY;
    getrlimit(RLIMIT_AS, &e.room);
    struct heap_rules rules = options->rules;
    rules.without_map = history->at_once;
    e.passes = heap_begin(&e.heap, &rules) && heap_reserve(&e.heap, options->slots);
    e.heap.is_limited = options->may_refuse;
    if (history->in_turns && e.passes)
        interleaved_do(&e);
    else if (history->at_once && e.passes)
        concurrent_do(&e);
    else
        do_steps(&e);
    if (e.passes && e.from < history->count && !history->at_once) {
        exiting = &e;
        exit(0);
    }
    finish(&e);
}
