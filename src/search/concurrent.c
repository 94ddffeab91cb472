/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Turns: how many steps of a block have to be done before one can be.
 */
#include "search/concurrent.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct crew {
    struct executing *first;
    uint32_t *turn;            /* of each step, and of each time that it is done */
    size_t *turn_of;           /* where those of a step begin */
    _Atomic uint32_t *done;    /* steps of each block */
    _Atomic uint32_t *waiting; /* threads that sleep until more of it are */
    _Atomic int stop;
    pthread_mutex_t lock; /* of what the first one is told */
    pthread_barrier_t start;
};

struct hand {
    struct crew *crew;
    struct executing e;
    struct execution execution; /* of its own, for its calls */
    uint64_t told;              /* of these, the first one */
    uint64_t tell_every;
    pthread_t thread;
    unsigned number;
    timer_t timer;
    struct random random;
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

static bool assign_turns(struct crew *crew)
{
    const struct history *history = crew->first->history;
    size_t slots = (size_t)crew->first->options->slots + 1, total = 0;
    for (size_t i = 0; i < history->count; i++)
        total += times_of(&history->steps[i]);
    crew->turn = calloc(total + 1, sizeof *crew->turn);
    crew->turn_of = calloc(history->count + 1, sizeof *crew->turn_of);
    crew->done = calloc(slots, sizeof *crew->done);
    crew->waiting = calloc(slots, sizeof *crew->waiting);
    uint32_t *next = calloc(slots, sizeof *next);
    bool good = crew->turn != NULL && crew->turn_of != NULL && crew->done != NULL &&
                crew->waiting != NULL && next != NULL;
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

/* For a while only: what stops all wakes nobody. */
static void sleep_while(_Atomic uint32_t *done, uint32_t is)
{
    static const struct timespec a_while = {0, 20000000};
    syscall(SYS_futex, done, FUTEX_WAIT_PRIVATE, is, &a_while, NULL, 0);
}

/* False where all is to stop.  Hundreds that looked again and again would leave nothing to those
 * that they wait for. */
static bool wait_for_turn(struct crew *crew, uint32_t block, uint32_t turn)
{
    enum { SPINS = 200 };
    for (unsigned i = 0;; i++) {
        uint32_t done = atomic_load_explicit(&crew->done[block], memory_order_acquire);
        if (done == turn)
            return true;
        if (crew->stop)
            return false;
        if (i < SPINS)
            continue;
        atomic_fetch_add(&crew->waiting[block], 1);
        sleep_while(&crew->done[block], done);
        atomic_fetch_sub(&crew->waiting[block], 1);
    }
}

static void end_turn(struct crew *crew, uint32_t block)
{
    atomic_fetch_add(&crew->done[block], 1);
    if (atomic_load(&crew->waiting[block]) > 0)
        syscall(SYS_futex, &crew->done[block], FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* ---- hands -------------------------------------------------------------------------------------
 */

/* Also that somebody gets on, however slow the handler is, and however many of them wait: see
 * whoever waits for the process. */
static void tell_calls(struct hand *hand)
{
    uint64_t calls = hand->execution.calls;
    if (calls - hand->told < hand->tell_every)
        return;
    atomic_fetch_add(&hand->crew->first->execution->calls, calls - hand->told);
    hand->told = calls;
}

/* One after the other. */
static bool do_times(struct hand *hand, struct step step)
{
    uint32_t times = step.times;
    step.times = 1;
    for (uint32_t i = 0; i < times; i++) {
        if (!steps_do(&hand->e, &step))
            return false;
        tell_calls(hand);
    }
    return true;
}

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
        if (!do_times(hand, step))
            return false;
        end_turn(crew, step.block);
    }
    return true;
}

/* The first that found something is the one that is told. */
static void report(struct hand *hand, size_t i)
{
    struct executing *first = hand->crew->first;
    pthread_mutex_lock(&hand->crew->lock);
    if (first->passes) {
        first->passes = false;
        first->heap.violation = hand->e.heap.violation;
        first->heap.no_memory = hand->e.heap.no_memory;
        first->execution->at = i;
    }
    pthread_mutex_unlock(&hand->crew->lock);
    hand->crew->stop = 1;
}

/* Stops it in the midst of a call, or behind it, for the others to get far meanwhile: by itself the
 * machine does so a few hundred times a second. */
static void stop_a_while(int number)
{
    static const struct timespec a_while = {0, 20000};
    int saved = errno;
    (void)number;
    nanosleep(&a_while, NULL);
    errno = saved;
}

/* False where there is no timer to be had. */
static bool begin_disturbing(struct hand *hand)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR2};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    return timer_create(CLOCK_MONOTONIC, &event, &hand->timer) == 0;
}

static void disturb(struct hand *hand)
{
    enum { EVERY = 32, LONGEST_NS = 4000 };
    if (random_below(&hand->random, EVERY) != 0)
        return;
    struct itimerspec soon = {.it_value = {0, 1 + (long)random_below(&hand->random, LONGEST_NS)}};
    timer_settime(hand->timer, 0, &soon, NULL);
}

static void *do_hand(void *data)
{
    struct hand *hand = data;
    struct crew *crew = hand->crew;
    const struct history *history = crew->first->history;
    hand->e.heap.error = &errno;
    bool is_disturbed = begin_disturbing(hand);
    pthread_barrier_wait(&crew->start);
    for (size_t i = 0; i < history->count && !crew->stop; i++) {
        if (history->steps[i].thread != hand->number)
            continue;
        if (is_disturbed)
            disturb(hand);
        if (!do_step(hand, i))
            report(hand, i);
    }
    hand->tell_every = 1;
    tell_calls(hand);
    if (is_disturbed)
        timer_delete(hand->timer);
    return NULL;
}

static void begin_hand(struct hand *hand, struct crew *crew, unsigned number, unsigned count)
{
    enum { UNTOLD = 64 }; /* calls, of all hands together */
    hand->crew = crew;
    hand->number = number;
    hand->tell_every = 1 + UNTOLD / count;
    hand->random = (struct random){random_mix(number + 1)};
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

static void begin_thread(struct crew *crew, pthread_t *thread, void *(*how)(void *), void *data)
{
    if (pthread_create(thread, NULL, how, data) == 0)
        return;
    crew->first->execution->state = EXECUTION_NO_MEMORY;
    _Exit(0);
}

/* Where one of them cannot begin, the others wait at the start for ever: the process is left. */
static void run_hands(struct crew *crew, struct hand *hands, unsigned count)
{
    struct sigaction action = {.sa_handler = stop_a_while, .sa_flags = SA_RESTART};
    sigaction(SIGUSR2, &action, NULL);
    for (unsigned i = 0; i < count; i++) {
        begin_hand(&hands[i], crew, i, count);
        begin_thread(crew, &hands[i].thread, do_hand, &hands[i]);
    }
    for (unsigned i = 0; i < count; i++)
        pthread_join(hands[i].thread, NULL);
}

void concurrent_do(struct executing *first)
{
    struct crew crew = {.first = first, .lock = PTHREAD_MUTEX_INITIALIZER};
    unsigned count = threads_of(first->history);
    struct hand *hands = calloc(count, sizeof *hands);
    if (count > MOST_HANDS || hands == NULL || !assign_turns(&crew)) {
        first->passes = false;
        first->heap.no_memory = true;
    } else {
        pthread_barrier_init(&crew.start, NULL, count);
        run_hands(&crew, hands, count);
        pthread_barrier_destroy(&crew.start);
    }
    if (first->passes)
        first->passes = heap_disjoint(&first->heap);
    free(hands);
    free(crew.turn);
    free(crew.turn_of);
    free((void *)crew.done);
    free((void *)crew.waiting);
}

/* ---- dealing -----------------------------------------------------------------------------------
 */

void concurrent_assign(struct step *steps, size_t count, unsigned threads, struct random *random)
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

size_t concurrent_multiply(struct step *steps, size_t count, uint32_t slots, unsigned threads,
                           unsigned times)
{
    size_t at = 0;
    for (unsigned thread = 0; thread < threads; thread++) {
        for (size_t i = 0; i < count * times; i++) {
            struct step step = steps[i % count];
            step.thread = (uint16_t)thread;
            step.block += (at + i < count ? 0 : thread * slots);
            steps[at + i] = step;
        }
        at += count * times;
    }
    return at;
}
