/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Turns: how many steps of a block have to be done before one can be.
 */
#include "search/at_once.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

struct crew {
    struct executing *first;
    uint32_t *turn;         /* of each step, and of each time that it is done */
    size_t *turn_of;        /* where those of a step begin */
    _Atomic uint32_t *done; /* steps of each block */
    _Atomic int stop;
    pthread_mutex_t lock; /* of what the first one is told */
    pthread_barrier_t start;
    unsigned hands; /* that began */
};

struct hand {
    struct crew *crew;
    struct executing e;
    struct execution execution; /* nobody looks at */
    pthread_t thread;
    unsigned number;
};

/* ---- turns -------------------------------------------------------------------------------------
 */

static bool is_of_block(const struct step *step)
{
    return step->kind <= STEP_CALLOC_FREE;
}

/* A pair is one block, however often. */
static uint32_t times_of(const struct step *step)
{
    bool is_pair = step->kind == STEP_MALLOC_FREE || step->kind == STEP_CALLOC_FREE;
    return !is_of_block(step) ? 0 : is_pair ? 1 : step->times;
}

static bool deal_turns(struct crew *crew)
{
    const struct history *history = crew->first->history;
    size_t slots = (size_t)crew->first->options->slots + 1, total = 0;
    for (size_t i = 0; i < history->count; i++)
        total += times_of(&history->steps[i]);
    crew->turn = calloc(total + 1, sizeof *crew->turn);
    crew->turn_of = calloc(history->count + 1, sizeof *crew->turn_of);
    crew->done = calloc(slots, sizeof *crew->done);
    uint32_t *next = calloc(slots, sizeof *next);
    bool good = crew->turn != NULL && crew->turn_of != NULL && crew->done != NULL && next != NULL;
    total = 0;
    for (size_t i = 0; good && i < history->count; i++) {
        const struct step *step = &history->steps[i];
        crew->turn_of[i] = total;
        for (uint32_t k = 0; k < times_of(step); k++)
            crew->turn[total++] = next[step->block + k]++;
    }
    free(next);
    return good;
}

/* False where all is to stop. */
static bool wait_for_turn(struct crew *crew, uint32_t block, uint32_t turn)
{
    enum { SPINS = 200, YIELDS = 5 };
    static const struct timespec a_moment = {0, 20000};
    for (unsigned i = 1; atomic_load_explicit(&crew->done[block], memory_order_acquire) != turn;
         i++) {
        if (crew->stop)
            return false;
        if (i > YIELDS * SPINS)
            nanosleep(&a_moment,
                      NULL); /* hundreds that wait would leave nothing to whom they wait for */
        else if (i % SPINS == 0)
            sched_yield();
    }
    return true;
}

/* ---- hands -------------------------------------------------------------------------------------
 */

static bool do_step(struct hand *hand, size_t i)
{
    struct crew *crew = hand->crew;
    struct step step = crew->first->history->steps[i];
    uint32_t times = times_of(&step);
    if (times > 1)
        step.times = 1;
    for (uint32_t k = 0; k < times; k++, step.block++) {
        if (!wait_for_turn(crew, step.block, crew->turn[crew->turn_of[i] + k]))
            return true;
        if (!steps_do(&hand->e, &step))
            return false;
        atomic_fetch_add_explicit(&crew->done[step.block], 1, memory_order_release);
    }
    return true;
}

/* The first that found something is the one that is told. */
static void report(struct hand *hand, size_t i)
{
    struct executing *first = hand->crew->first;
    pthread_mutex_lock(&hand->crew->lock);
    if (first->holds) {
        first->holds = false;
        first->heap.violation = hand->e.heap.violation;
        first->heap.no_memory = hand->e.heap.no_memory;
        first->execution->at = i;
    }
    pthread_mutex_unlock(&hand->crew->lock);
    hand->crew->stop = 1;
}

static void *do_hand(void *data)
{
    enum { TELL_EVERY = 16 };
    struct hand *hand = data;
    struct crew *crew = hand->crew;
    const struct history *history = crew->first->history;
    hand->e.heap.error = &errno;
    pthread_barrier_wait(&crew->start);
    for (size_t i = 0; i < history->count && !crew->stop; i++) {
        if (history->steps[i].thread != hand->number)
            continue;
        if (!do_step(hand, i))
            report(hand, i);
        if (i % TELL_EVERY == 0)
            atomic_fetch_add(&crew->first->execution->calls, 1);
    }
    return NULL;
}

static void begin_hand(struct hand *hand, struct crew *crew, unsigned number)
{
    hand->crew = crew;
    hand->number = number;
    hand->e = *crew->first;
    hand->e.execution = &hand->execution;
    hand->e.novelty = NULL;
    hand->e.numbers = (uint64_t)(number + 1) << 32;
    hand->e.heap.is_limited = true; /* what the others have live is not known */
}

static unsigned threads_of(const struct history *history)
{
    unsigned most = 0;
    for (size_t i = 0; i < history->count; i++)
        most = history->steps[i].thread > most ? history->steps[i].thread : most;
    return most + 1;
}

/* Where one of them cannot begin, the others wait at the start for ever: the process is left. */
static void run_hands(struct crew *crew, struct hand *hands, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        begin_hand(&hands[i], crew, i);
        if (pthread_create(&hands[i].thread, NULL, do_hand, &hands[i]) != 0) {
            crew->first->execution->state = EXECUTION_NO_MEMORY;
            _Exit(0);
        }
    }
    for (unsigned i = 0; i < count; i++)
        pthread_join(hands[i].thread, NULL);
}

void at_once_do(struct executing *first)
{
    struct crew crew = {.first = first, .lock = PTHREAD_MUTEX_INITIALIZER};
    unsigned count = threads_of(first->history);
    struct hand *hands = calloc(count, sizeof *hands);
    if (count > MOST_HANDS || hands == NULL || !deal_turns(&crew)) {
        first->holds = false;
        first->heap.no_memory = true;
    } else {
        pthread_barrier_init(&crew.start, NULL, count);
        run_hands(&crew, hands, count);
        pthread_barrier_destroy(&crew.start);
    }
    if (first->holds)
        first->holds = heap_disjoint(&first->heap);
    free(hands);
    free(crew.turn);
    free(crew.turn_of);
    free((void *)crew.done);
}

/* ---- dealing -----------------------------------------------------------------------------------
 */

void at_once_deal(struct step *steps, size_t count, unsigned threads, struct random *random)
{
    static uint16_t owner[1 << 18];
    enum { SLOTS = sizeof owner / sizeof *owner };
    const unsigned handed_over = (unsigned)1 << random_below(random, 6); /* one in so many */
    for (size_t i = 0; i < count; i++) {
        struct step *step = &steps[i];
        bool makes = step->kind != STEP_FREE && step->kind != STEP_REALLOC;
        if (makes && random_below(random, 4) == 0)
            owner[step->block % SLOTS] = (uint16_t)random_below(random, threads);
        step->thread = owner[step->block % SLOTS] % threads;
        if (random_below(random, handed_over + 1) == 0)
            step->thread = (uint16_t)random_below(random, threads);
    }
}
