/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A thread begins a step when all before it are done, or stopped.  Where one waits for a lock that
 * the stopped one has, or spins for it, that one goes on after a while, and neither is wrong.
 */
#include "search/concurrent.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/param.h>
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
};

static struct {
    struct executing *first;
    _Atomic size_t now;       /* the step that is to begin */
    _Atomic size_t end;       /* the one that waits until the stopped thread has gone on, or all */
    _Atomic uint32_t changes; /* of these */
    _Atomic int stop;         /* 1: all are to end */
    struct worker *stopped;
    size_t stops;
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

/* In a signal handler, between two instructions of a call. */
static void let_others(void)
{
    enum { LONGEST_NS = 1000000 };
    struct worker *worker = turns.stopped;
    int saved = errno;
    worker->was_stopped = true;
    turns.end = end_of_stop(worker);
    change(&turns.now, worker->at + 1);
    while (turns.now < turns.end && !turns.stop) {
        uint32_t changes = atomic_load(&turns.changes);
        if (turns.now < turns.end)
            wait_for_change(changes, LONGEST_NS);
        if (atomic_load(&turns.changes) == changes)
            break;
    }
    errno = saved;
}

/* ---- workers --------------------------------------------------------------------------------- */

/* By single steps, which say where its instructions are, the first time and now and then again, as
 * there are other ways through it; else by a breakpoint, at a tenth of the cost. */
static void set_stop(struct worker *worker, enum step_kind function, const struct step *stop)
{
    enum { STEPS_EVERY = 8 };
    struct points *points = &turns.points[function];
    turns.stopped = worker;
    if (stop->second == STOP_AT)
        breakpoint_set(turns.object + (uintptr_t)stop->first, let_others);
    else if (turns.stops++ % STEPS_EVERY == 0 || points->count == 0)
        breakpoint_stop_behind(breakpoint_function(worker->thread.e.allocator, function),
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
    return NULL;
}

void interleaved_do(struct executing *first)
{
    unsigned count = thread_count(first->list), begun = 0;
    memset(&turns, 0, sizeof turns);
    turns.first = first;
    turns.object = object_of((uintptr_t)first->allocator->malloc);
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

/* ---- writing --------------------------------------------------------------------------------- */

enum { SIZES = 3 };
struct few {
    size_t sizes[SIZES], count;
};

static size_t any_size(struct writer *writer, const struct few *few)
{
    return few->sizes[random_below(&writer->random, few->count)];
}

static void write_any(struct writer *writer, const struct few *few)
{
    uint32_t slot = writer_any(writer);
    size_t size = any_size(writer, few);
    if (slot == NO_SLOT || random_below(&writer->random, 2) == 0)
        write_made(writer, size);
    else if (random_below(&writer->random, 4) == 0)
        write_realloc(writer, slot, size);
    else
        write_free(writer, slot);
}

/* Two are made and the first goes: a list then begins as before, and is another.  What counts its
 * changes has to come round to the same number. */
static void write_exchange(struct writer *writer, size_t size)
{
    enum { MOST_PAIRS = 32 };
    uint32_t first = write_malloc(writer, size), second = write_malloc(writer, size);
    if (random_below(&writer->random, 2) == 0)
        write_temporaries(writer, size, 1 + random_below(&writer->random, MOST_PAIRS), false);
    if (random_below(&writer->random, 4) == 0)
        write_malloc(writer, size);
    if (first != NO_SLOT && second != NO_SLOT)
        write_free(writer, first);
}

static void write_stopped(struct writer *writer, const struct few *few)
{
    enum { LONGEST_LOG2 = 8, MOST_CALLS = 4, EXCHANGES = 4 };
    size_t power = (size_t)1 << random_below(&writer->random, LONGEST_LOG2);
    writer->thread = 0;
    write_other(writer, STEP_STOP, power + random_below(&writer->random, power), 0);
    write_any(writer, few);
    writer->thread = 1;
    if (random_below(&writer->random, EXCHANGES) == 0) {
        write_exchange(writer, any_size(writer, few));
        return;
    }
    for (size_t calls = 1 + random_below(&writer->random, MOST_CALLS); calls > 0; calls--)
        write_any(writer, few);
}

void interleaved_write(struct writer *writer)
{
    enum { LEAST_LOG2 = 6, LARGEST_LOG2 = 14, BEFORE = 24, STOPPED = 3, LONGEST = 8 };
    size_t most =
        (size_t)1 << (LEAST_LOG2 + random_below(&writer->random, LARGEST_LOG2 + 1 - LEAST_LOG2));
    struct few few = {.count = 1 + random_below(&writer->random, SIZES)};
    for (size_t i = 0; i < few.count; i++)
        few.sizes[i] = size_dict_size(writer->size_dict, &writer->random, most);
    for (size_t i = random_below(&writer->random, BEFORE); i > 0; i--) {
        writer->thread = (uint16_t)random_below(&writer->random, 2);
        write_any(writer, &few);
    }
    while (writer_left(writer) > LONGEST) {
        if (random_below(&writer->random, STOPPED) != 0) {
            write_stopped(writer, &few);
            continue;
        }
        writer->thread = (uint16_t)random_below(&writer->random, 2);
        write_any(writer, &few);
    }
    writer->thread = 0;
}
