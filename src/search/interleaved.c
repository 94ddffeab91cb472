/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A thread begins a step when all before it are done, or stopped.  All stay on one core: there
 * another runs as soon as one is stopped, on a busy machine too.  If it waits for a lock that the
 * stopped one has, or spins for it, the stopped one goes on, and neither is wrong.  A signal
 * interrupts some of these waits.
 */
#include "search/concurrent.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "harness/breakpoint.h"

struct worker {
    struct list_thread thread; /* first */
    bool can_stop;
    size_t stop;      /* the STEP_STOP of its next call, + 1; 0: that is not stopped */
    size_t at;        /* the step */
    bool was_stopped; /* in that step */
    int stat;         /* /proc/self/task/TID/stat */
    clockid_t clock;  /* of its processor time */
};

static struct {
    struct executing *first;
    const PyDataMem_Handler *handler; /* without what may be around it */
    _Atomic size_t now;               /* the step that is to begin */
    _Atomic size_t end;       /* the one that waits until the stopped thread has gone on, or all */
    _Atomic uint32_t changes; /* of these */
    _Atomic int stop;         /* 1: all are to end */
    struct worker *stopped;
    size_t stops;
    int cpu;
    uintptr_t object;                    /* that has malloc: where it begins, or 0 */
    struct points points[STEP_FREE + 1]; /* that are known, by function */
    struct worker workers[MOST_IN_TURNS];
} turns;

/* ---- turns ----------------------------------------------------------------------------------- */

static void wait_for_change(uint32_t since, long nanoseconds)
{
    struct timespec most = {0, nanoseconds};
    syscall(SYS_futex, &turns.changes, FUTEX_WAIT_PRIVATE, since, &most, NULL, 0);
}

static void change(_Atomic size_t *what, size_t to)
{
    atomic_store(what, to);
    atomic_fetch_add(&turns.changes, 1);
    syscall(SYS_futex, &turns.changes, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* False where all is to end. */
static bool wait_for_turn(size_t i)
{
    enum { A_WHILE_NS = 20000000 };
    for (;;) {
        uint32_t changes = atomic_load(&turns.changes);
        if (turns.stop)
            return false;
        if (i <= turns.now && i < turns.end)
            return true;
        wait_for_change(changes, A_WHILE_NS);
    }
}

/* Where the stopped one has to go on: at its own next step, or at one that is about its block. */
static size_t end_of_stop(const struct worker *worker)
{
    const struct call_list *list = worker->thread.e.list;
    const struct step *stopped = &list->at[worker->at];
    size_t i = worker->at + 1;
    for (; i < list->count && list->at[i].thread != worker->thread.number; i++) {
        const struct step *step = &list->at[i];
        if (step->block < stopped->block + stopped->times &&
            stopped->block < step->block + step->times)
            break;
    }
    return i;
}

static uint64_t time_of(const struct worker *worker)
{
    struct timespec t = {0};
    clock_gettime(worker->clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* False if it only waits for the processor. */
static bool is_asleep(const struct worker *worker)
{
    char line[128];
    ssize_t length = pread(worker->stat, line, sizeof line - 1, 0);
    line[length > 0 ? length : 0] = '\0';
    const char *behind_name = strrchr(line, ')');
    return behind_name == NULL || strncmp(behind_name, ") R", 3) != 0;
}

/* Returns when others have done all that comes before the next step of the stopped thread, or when
 * one of them cannot. */
static void wait_for_others(void)
{
    enum { FIRST_WAIT_NS = 30000, LONGEST_WAIT_NS = 4000000, SPINNING_NS = 400000 };
    const struct step *steps = turns.first->list->at;
    size_t begun_at = SIZE_MAX;
    uint64_t begun = 0;
    for (long wait = FIRST_WAIT_NS; turns.now < turns.end && !turns.stop; wait *= 2) {
        uint32_t changes = atomic_load(&turns.changes);
        size_t now = turns.now;
        const struct worker *other = &turns.workers[steps[now].thread];
        if (now != begun_at) {
            begun_at = now;
            begun = time_of(other);
            wait = FIRST_WAIT_NS;
        }
        if (now < turns.end)
            wait_for_change(changes, wait);
        if (atomic_load(&turns.changes) != changes)
            continue;
        bool sleeps = is_asleep(other);
        if (sleeps && turns.stops % 2 == 0) {
            pthread_kill(other->thread.id, SIGUSR2);
            wait_for_change(changes, FIRST_WAIT_NS);
        }
        if (sleeps || time_of(other) - begun > SPINNING_NS || wait > LONGEST_WAIT_NS)
            break;
    }
}

/* In a signal handler, between two instructions of a call. */
static void let_others(void)
{
    struct worker *worker = turns.stopped;
    int saved = errno;
    worker->was_stopped = true;
    turns.end = end_of_stop(worker);
    change(&turns.now, worker->at + 1);
    wait_for_others();
    errno = saved;
}

static void on_interruption(int number)
{
    (void)number;
}

/* ---- workers --------------------------------------------------------------------------------- */

static void stay_on_core(struct worker *worker)
{
    char path[64];
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(turns.cpu, &one);
    sched_setaffinity(0, sizeof one, &one); /* where that is not allowed it takes longer */
    prctl(PR_SET_TIMERSLACK, 1);
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", syscall(SYS_gettid));
    worker->stat = open(path, O_RDONLY | O_CLOEXEC);
    pthread_getcpuclockid(pthread_self(), &worker->clock);
}

/* By single steps, which say where its instructions are, the first time and now and then again, as
 * there are other ways through it; else by a breakpoint, at a tenth of the cost. */
static void set_stop(struct worker *worker, enum step_kind function, const struct step *stop)
{
    enum { STEPS_EVERY = 8 };
    struct points *points = &turns.points[function];
    turns.stopped = worker;
    if (stop->second == STOP_AT)
        breakpoint_set(turns.object + (uintptr_t)stop->first, let_others);
    else if (++turns.stops % STEPS_EVERY == 0 || points->count == 0)
        breakpoint_stop_behind(breakpoint_function(&turns.handler->allocator, function),
                               (size_t)stop->first, points, let_others);
    else
        breakpoint_set(points->at[stop->first % points->count], let_others);
}

static uintptr_t object_of(uintptr_t address)
{
    Dl_info info;
    return dladdr((void *)address, &info) != 0 ? (uintptr_t)info.dli_fbase : 0;
}

/* Without the stops before it, it would not be known which instruction that is. */
static void tell_where(const struct worker *worker, size_t stop)
{
    const struct call_list *list = turns.first->list;
    uintptr_t where = breakpoint_where();
    if (!list->notes || turns.object == 0)
        return;
    if (worker->was_stopped && object_of(where) == turns.object) {
        list->at[stop].first = where - turns.object;
        list->at[stop].second = STOP_AT;
    } else if (!worker->was_stopped) {
        list->at[stop].second = STOP_NOWHERE;
    }
}

static bool do_step(struct worker *worker, const struct step *step)
{
    enum step_kind function = step_called(step);
    const struct step *steps = turns.first->list->at;
    size_t stop = worker->stop;
    if (step->kind == STEP_STOP) {
        worker->stop = worker->can_stop ? worker->at + 1 : 0;
        return true;
    }
    if (function == OUTSIDE)
        return true;
    worker->stop = 0;
    if (stop == 0 || steps[stop - 1].second == STOP_NOWHERE)
        return steps_do(&worker->thread.e, step);
    set_stop(worker, function, &steps[stop - 1]);
    bool passes = steps_do(&worker->thread.e, step);
    breakpoint_clear();
    tell_where(worker, stop - 1);
    return passes;
}

static void *run_worker(void *data)
{
    struct worker *worker = data;
    const struct call_list *list = turns.first->list;
    worker->thread.e.heap.error = &errno;
    stay_on_core(worker);
    worker->can_stop = worker->thread.number == 0 && breakpoint_begin();
    for (worker->at = 0; worker->at < list->count; worker->at++) {
        size_t i = worker->at;
        if (list->at[i].thread != worker->thread.number)
            continue;
        if (!wait_for_turn(i))
            break;
        worker->was_stopped = false;
        if (!do_step(worker, &list->at[i])) {
            thread_report(&worker->thread, i);
            turns.stop = 1;
        }
        thread_tell(&worker->thread);
        if (worker->was_stopped)
            change(&turns.end, SIZE_MAX);
        else
            change(&turns.now, i + 1);
    }
    close(worker->stat);
    return NULL;
}

void interleaved_do(struct executing *first)
{
    unsigned count = thread_count(first->list), begun = 0;
    memset(&turns, 0, sizeof turns);
    turns.first = first;
    turns.handler = first->options->rules.watched;
    turns.object = object_of((uintptr_t)turns.handler->allocator.malloc);
    turns.cpu = sched_getcpu();
    sigaction(SIGUSR2, &(struct sigaction){.sa_handler = on_interruption}, NULL);
    turns.end = SIZE_MAX;
    turns.stop = count > MOST_IN_TURNS;
    while (!turns.stop && begun < count) {
        if (thread_begin(&turns.workers[begun].thread, first, begun, run_worker))
            begun++;
        else
            turns.stop = 1;
    }
    for (unsigned i = 0; i < begun; i++)
        pthread_join(turns.workers[i].thread.id, NULL);
    if (begun < count) {
        first->passes = false;
        first->heap.no_memory = true;
    }
    if (first->passes)
        first->passes = heap_disjoint(&first->heap);
}
