/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All steps of a list, in order or by threads at once.
 */
#include "search/execute.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#ifndef REPRODUCER
#include "search/concurrent.h"
#endif

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
        e->passes = steps_do(e, &e->list->at[i]);
    }
    return NULL;
}

/* Where the steps end that one thread makes in a row. */
static size_t end_of_row(const struct call_list *list, size_t from, unsigned thread)
{
    while (from < list->count && list->at[from].thread == thread)
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
    l->e->to = end_of_row(l->e->list, l->e->from, l->thread | STEP_IN_DESTRUCTOR);
    do_row(l->e);
}

static void *be_thread(void *data)
{
    struct leaving *l = data;
    pthread_setspecific(l->key, l);
    do_row(l->e);
    return l;
}

/* Steps of a thread in a row are those of a new one, which then ends.  A thread that is begun with
 * little memory may lack what is no heap's to have: its own variables. */
static void in_thread(struct executing *e, unsigned number)
{
    pthread_t thread;
    void *returned = NULL;
    struct leaving leaving = {.e = e, .thread = number, .rounds = e->to % 2};
    steps_limit(e, 0);
    e->passes = pthread_key_create(&leaving.key, when_it_ends) == 0;
    if (!e->passes) {
        e->heap.no_memory = true;
        return;
    }
    if (pthread_create(&thread, NULL, be_thread, &leaving) != 0)
        do_row(e);
    else if (pthread_join(thread, &returned) == 0 && returned != &leaving && e->passes)
        e->passes = heap_violated(&e->heap, HEAP_RETURNS, "the thread ends");
    pthread_key_delete(leaving.key);
    e->heap.error = &errno;
}

/* Up to what is left for the exit. */
static void do_steps(struct executing *e)
{
    const struct call_list *list = e->list;
    for (e->from = e->to = 0; e->from < list->count && e->passes; e->from = e->to) {
        if (list->at[e->from].thread == STEP_AT_EXIT)
            return;
        unsigned thread = list->at[e->from].thread & ~(unsigned)STEP_IN_DESTRUCTOR;
        e->to = end_of_row(list, e->from, thread);
        if (thread == 0)
            do_row(e);
        else
            in_thread(e, thread);
    }
}

/* ---- growth ---------------------------------------------------------------------------------- */

static size_t growth_over(struct executing *e, size_t rounds)
{
    size_t before = steps_bytes(true);
    for (; rounds > 0 && e->passes; rounds--)
        do_steps(e);
    size_t after = steps_bytes(true);
    return after > before ? after - before : 0;
}

/* Does the steps, which free their blocks, again and again: twice as often each time, until they
 * have taken much memory, and as much as ever in the end, or for long enough. */
static void repeat(struct executing *e)
{
    const size_t mib = 1 << 20, much = 16 * mib;
    const double most = e->options->growth_seconds;
    uint64_t begun = clock_now();
    size_t grown = 0;
    do_steps(e);
    for (size_t rounds = 1;
         e->passes && clock_since(begun) < most && (grown > mib || clock_since(begun) < most / 8);
         rounds *= 2) {
        size_t more = growth_over(e, rounds);
        if (grown + more > much && more >= grown / 4)
            e->passes = heap_violated(&e->heap, HEAP_RECLAIMS,
                                      "%zu KiB in %zu rounds, %zu of it in the second half",
                                      (grown + more) >> 10, 2 * rounds, more >> 10);
        grown += more;
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void conclude(struct executing *e)
{
    struct execution *execution = e->execution;
    atomic_store(&execution->at, e->passes ? e->list->count : execution->at);
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
    steps_end_turn(e);
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
    exiting->to = exiting->list->count;
    do_row(exiting);
    finish(exiting);
}

void execute(const struct call_list *list, PyDataMem_Handler *handler,
             const struct execute_options *options, struct executions *executions)
{
    struct executing e = {
        .list = list,
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
    rules.without_map = list->at_once;
    e.passes = heap_begin(&e.heap, &rules) && heap_reserve(&e.heap, options->slots);
    e.heap.is_limited = options->may_refuse;
    if (list->of_growth && e.passes)
        repeat(&e);
#ifndef REPRODUCER
    else if (list->in_turns && e.passes)
        interleaved_do(&e);
    else if (list->at_once && e.passes)
        concurrent_do(&e);
#endif
    else
        do_steps(&e);
    if (e.passes && e.from < list->count && !list->at_once) {
        exiting = &e;
        exit(0);
    }
    finish(&e);
}

void execute_use_memory(size_t largest, size_t each)
{
    enum { MOST = 32 };
    void *p[MOST];
    for (size_t size = 24; size < largest; size += size / 4 / 16 * 16 + 16) {
        for (size_t i = 0; i < each && i < MOST; i++) {
            p[i] = malloc(size);
            if (p[i] != NULL)
                memset(p[i], 0xa5, size);
        }
        void *volatile stays = malloc(size); /* so that not all of it goes back to the kernel */
        (void)stays;
        for (size_t i = 0; i < each && i < MOST; i++)
            free(p[i]);
    }
}
