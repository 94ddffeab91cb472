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

struct shared {
    struct executing *first;
    uint32_t *turn;            /* of each step, and of each time that it is done */
    size_t *turn_of;           /* where those of a step begin */
    _Atomic uint32_t *done;    /* steps of each block */
    _Atomic uint32_t *waiting; /* threads that sleep until more of it are */
    _Atomic int stop;
    pthread_barrier_t start, end;
};

struct worker {
    struct list_thread thread; /* first */
    struct shared *shared;
    size_t first, end; /* its steps are there */
    uint64_t tell_every;
    timer_t timer;
    struct random random;
};

/* ---- threads --------------------------------------------------------------------------------- */

unsigned thread_count(const struct call_list *list)
{
    unsigned most = 0;
    for (size_t i = 0; i < list->count; i++)
        most = list->at[i].thread > most ? list->at[i].thread : most;
    return most + 1;
}

bool thread_begin(struct list_thread *thread, struct executing *first, unsigned number,
                  void *(*run)(void *))
{
    thread->first = first;
    thread->number = number;
    thread->e = *first;
    thread->e.execution = &thread->execution;
    thread->e.novelty = NULL;
    thread->e.numbers = (uint64_t)(number + 1) << 32;
    /* What the others have live is not known, unless it is little. */
    thread->e.heap.is_limited = first->options->most_bytes > HEAP_GRANTED_BYTES;
    return pthread_create(&thread->id, NULL, run, thread) == 0;
}

void thread_tell(struct list_thread *thread)
{
    atomic_fetch_add(&thread->first->execution->calls, thread->execution.calls - thread->told);
    thread->told = thread->execution.calls;
}

void thread_report(struct list_thread *thread, size_t at)
{
    static atomic_flag is_told = ATOMIC_FLAG_INIT; /* once in a process */
    struct executing *first = thread->first;
    if (atomic_flag_test_and_set(&is_told))
        return;
    first->passes = false;
    first->heap.violation = thread->e.heap.violation;
    first->heap.no_memory = thread->e.heap.no_memory;
    first->execution->at = at;
}

/* ---- turns ----------------------------------------------------------------------------------- */

static bool is_of_block(const struct step *step)
{
    return step->kind <= STEP_CALLOC_FREE;
}

/* A pair is one block, however often. */
static uint32_t times_of(const struct step *step)
{
    bool is_pair = step_is_pair(step);
    return !is_of_block(step) ? 0 : is_pair ? 1 : step->times;
}

static bool assign_turns(struct shared *shared)
{
    const struct call_list *list = shared->first->list;
    size_t slots = (size_t)shared->first->options->slots + 1, total = 0;
    for (size_t i = 0; i < list->count; i++)
        total += times_of(&list->at[i]);
    shared->turn = calloc(total + 1, sizeof *shared->turn);
    shared->turn_of = calloc(list->count + 1, sizeof *shared->turn_of);
    shared->done = calloc(slots, sizeof *shared->done);
    shared->waiting = calloc(slots, sizeof *shared->waiting);
    uint32_t *next = calloc(slots, sizeof *next);
    bool good = shared->turn != NULL && shared->turn_of != NULL && shared->done != NULL &&
                shared->waiting != NULL && next != NULL;
    total = 0;
    for (size_t i = 0; good && i < list->count; i++) {
        const struct step *step = &list->at[i];
        shared->turn_of[i] = total;
        for (uint32_t k = 0; k < times_of(step); k++)
            shared->turn[total++] = next[step->block + k]++;
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
static bool wait_for_turn(struct shared *shared, uint32_t block, uint32_t turn)
{
    enum { SPINS = 200 };
    for (unsigned i = 0;; i++) {
        uint32_t done = atomic_load_explicit(&shared->done[block], memory_order_acquire);
        if (done == turn)
            return true;
        if (shared->stop)
            return false;
        if (i < SPINS)
            continue;
        atomic_fetch_add(&shared->waiting[block], 1);
        sleep_while(&shared->done[block], done);
        atomic_fetch_sub(&shared->waiting[block], 1);
    }
}

static void end_turn(struct shared *shared, uint32_t block)
{
    atomic_fetch_add(&shared->done[block], 1);
    if (atomic_load(&shared->waiting[block]) > 0)
        syscall(SYS_futex, &shared->done[block], FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* ---- workers --------------------------------------------------------------------------------- */

/* One after the other. */
static bool do_times(struct worker *worker, struct step step)
{
    uint32_t times = step.times;
    step.times = 1;
    for (uint32_t i = 0; i < times; i++) {
        if (!steps_do(&worker->thread.e, &step))
            return false;
        if (worker->thread.execution.calls - worker->thread.told >= worker->tell_every)
            thread_tell(&worker->thread);
    }
    return true;
}

static bool do_step(struct worker *worker, size_t i)
{
    struct shared *shared = worker->shared;
    struct step step = shared->first->list->at[i];
    uint32_t times = times_of(&step);
    if (times > 1)
        step.times = 1;
    for (uint32_t k = 0; k < times; k++, step.block++) {
        if (!wait_for_turn(shared, step.block, shared->turn[shared->turn_of[i] + k]))
            return true;
        if (!do_times(worker, step))
            return false;
        end_turn(shared, step.block);
    }
    return true;
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
static bool begin_disturbing(struct worker *worker)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR2};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    return timer_create(CLOCK_MONOTONIC, &event, &worker->timer) == 0;
}

static void disturb(struct worker *worker)
{
    enum { EVERY = 32, LONGEST_NS = 4000 };
    if (random_below(&worker->random, EVERY) != 0)
        return;
    struct itimerspec soon = {.it_value = {0, 1 + (long)random_below(&worker->random, LONGEST_NS)}};
    timer_settime(worker->timer, 0, &soon, NULL);
}

static void *run_worker(void *data)
{
    struct worker *worker = data;
    struct shared *shared = worker->shared;
    const struct call_list *list = shared->first->list;
    worker->thread.e.heap.error = &errno;
    bool is_disturbed = worker->tell_every > 1 && begin_disturbing(worker);
    pthread_barrier_wait(&shared->start);
    for (size_t i = worker->first; i < worker->end && !shared->stop; i++) {
        if (list->at[i].thread != worker->thread.number)
            continue;
        if (is_disturbed)
            disturb(worker);
        if (!do_step(worker, i)) {
            thread_report(&worker->thread, i);
            shared->stop = 1;
        }
    }
    pthread_barrier_wait(&shared->end); /* until then all are there */
    thread_tell(&worker->thread);
    if (is_disturbed)
        timer_delete(worker->timer);
    return NULL;
}

/* If one of them cannot begin, the others wait at the start for ever: the process is left. */
static void run_workers(struct shared *shared, struct worker *workers, unsigned count)
{
    enum { UNTOLD = 64 }; /* calls, of all together */
    const struct call_list *list = shared->first->list;
    /* Half of the lists interrupt system calls, as Python's own handlers of signals do. */
    struct sigaction action = {.sa_handler = stop_a_while,
                               .sa_flags = random_mix(list->count) % 2 == 0 ? SA_RESTART : 0};
    sigaction(SIGUSR2, &action, NULL);
    for (size_t i = 0; i < list->count; i++) {
        struct worker *worker = &workers[list->at[i].thread];
        worker->first = worker->end == 0 ? i : worker->first;
        worker->end = i + 1;
    }
    for (unsigned i = 0; i < count; i++) {
        workers[i].shared = shared;
        workers[i].tell_every = 1 + UNTOLD / count;
        workers[i].random = (struct random){random_mix(i + 1)};
        if (!thread_begin(&workers[i].thread, shared->first, i, run_worker)) {
            shared->first->execution->state = EXECUTION_NO_MEMORY;
            _Exit(0);
        }
    }
    for (unsigned i = 0; i < count; i++)
        pthread_join(workers[i].thread.id, NULL);
}

void concurrent_do(struct executing *first)
{
    struct shared shared = {.first = first};
    unsigned count = thread_count(first->list);
    struct worker *workers = calloc(count, sizeof *workers);
    if (count > MOST_AT_ONCE || workers == NULL || !assign_turns(&shared)) {
        first->passes = false;
        first->heap.no_memory = true;
    } else {
        pthread_barrier_init(&shared.start, NULL, count);
        pthread_barrier_init(&shared.end, NULL, count);
        run_workers(&shared, workers, count);
        pthread_barrier_destroy(&shared.start);
        pthread_barrier_destroy(&shared.end);
    }
    if (first->passes)
        first->passes = heap_disjoint(&first->heap);
    free(workers);
    free(shared.turn);
    free(shared.turn_of);
    free((void *)shared.done);
    free((void *)shared.waiting);
}

/* ---- dealing --------------------------------------------------------------------------------- */

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
