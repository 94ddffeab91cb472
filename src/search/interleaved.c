/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A thread begins a step when all before it are done, or stopped.  Where one waits for a lock that
 * the stopped one has, or spins for it, that one goes on after a while, and neither is wrong.
 */
#include "search/interleaved.h"

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

struct hand {
    struct executing e;
    struct execution execution; /* of its own, for its calls */
    uint64_t told;              /* of these, the first one */
    pthread_t thread;
    unsigned number;
    bool can_stop;
    size_t stop;      /* the STEP_STOP of its next call, + 1; 0: that is not stopped */
    size_t at;        /* the step */
    bool was_stopped; /* in that step */
};

struct function {
    uintptr_t at;
    struct points *points; /* that are known */
};

static struct {
    struct executing *first;
    _Atomic size_t now;       /* the step that is to begin */
    _Atomic size_t end;       /* the one that waits until the stopped thread has gone on, or all */
    _Atomic uint32_t changes; /* of these */
    _Atomic int stop;         /* 1: all are to end */
    struct hand *stopped;
    size_t stops;
    uintptr_t object;        /* that has malloc: where it begins, or 0 */
    struct points points[4]; /* of each function */
    struct hand hands[MOST_IN_TURNS];
} game;

/* ---- turns -------------------------------------------------------------------------------------
 */

static void wait_for_change(uint32_t since, long nanoseconds)
{
    struct timespec most = {0, nanoseconds};
    syscall(SYS_futex, &game.changes, FUTEX_WAIT_PRIVATE, since, &most, NULL, 0);
}

static void change(_Atomic size_t *what, size_t to)
{
    atomic_store(what, to);
    atomic_fetch_add(&game.changes, 1);
    syscall(SYS_futex, &game.changes, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* False where all is to end. */
static bool wait_for_turn(size_t i)
{
    enum { A_WHILE_NS = 20000000 };
    for (;;) {
        uint32_t changes = atomic_load(&game.changes);
        if (game.stop)
            return false;
        if (i <= game.now && i < game.end)
            return true;
        wait_for_change(changes, A_WHILE_NS);
    }
}

/* Where the stopped one has to go on: at its own next step, or at one that is about its block. */
static size_t end_of_stop(const struct hand *hand)
{
    const struct history *history = hand->e.history;
    const struct step *stopped = &history->steps[hand->at];
    size_t i = hand->at + 1;
    for (; i < history->count && history->steps[i].thread != hand->number; i++) {
        const struct step *step = &history->steps[i];
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
    struct hand *hand = game.stopped;
    int saved = errno;
    hand->was_stopped = true;
    game.end = end_of_stop(hand);
    change(&game.now, hand->at + 1);
    while (game.now < game.end && !game.stop) {
        uint32_t changes = atomic_load(&game.changes);
        if (game.now < game.end)
            wait_for_change(changes, LONGEST_NS);
        if (atomic_load(&game.changes) == changes)
            break;
    }
    errno = saved;
}

/* ---- hands -------------------------------------------------------------------------------------
 */

/* False where it is about no block. */
static bool find_function(const PyDataMemAllocator *a, const struct step *step,
                          struct function *function)
{
    switch ((enum step_kind)step->kind) {
    case STEP_MALLOC:
    case STEP_MALLOC_FREE:
        *function = (struct function){(uintptr_t)a->malloc, &game.points[0]};
        return true;
    case STEP_CALLOC:
    case STEP_CALLOC_FREE:
        *function = (struct function){(uintptr_t)a->calloc, &game.points[1]};
        return true;
    case STEP_REALLOC:
        *function = (struct function){(uintptr_t)a->realloc, &game.points[2]};
        return true;
    case STEP_FREE:
    case STEP_FREE_NULL:
        *function = (struct function){(uintptr_t)a->free, &game.points[3]};
        return true;
    default:
        return false;
    }
}

/* By single steps, which say where its instructions are, the first time and now and then again, as
 * there are other ways through it; else by a breakpoint, at a tenth of the cost. */
static void set_stop(struct hand *hand, const struct function *function, const struct step *stop)
{
    enum { STEPS_EVERY = 8 };
    const struct points *points = function->points;
    game.stopped = hand;
    if (stop->second == STOP_AT)
        breakpoint_set(game.object + (uintptr_t)stop->first, let_others);
    else if (game.stops++ % STEPS_EVERY == 0 || points->count == 0)
        breakpoint_stop_behind(function->at, (size_t)stop->first, function->points, let_others);
    else
        breakpoint_set(points->at[stop->first % points->count], let_others);
}

static uintptr_t object_of(uintptr_t address)
{
    Dl_info info;
    return dladdr((void *)address, &info) != 0 ? (uintptr_t)info.dli_fbase : 0;
}

/* Without the stops before it, it would not be known which instruction that is. */
static void tell_where(const struct hand *hand, size_t stop)
{
    struct step *told = game.first->history->told;
    uintptr_t where = breakpoint_where();
    if (told == NULL || game.object == 0)
        return;
    if (hand->was_stopped && object_of(where) == game.object) {
        told[stop].first = where - game.object;
        told[stop].second = STOP_AT;
    } else if (!hand->was_stopped) {
        told[stop].second = STOP_NOWHERE;
    }
}

static bool do_step(struct hand *hand, const struct step *step)
{
    struct function function;
    const struct step *steps = game.first->history->steps;
    size_t stop = hand->stop;
    if (step->kind == STEP_STOP) {
        hand->stop = hand->can_stop ? hand->at + 1 : 0;
        return true;
    }
    if (!find_function(hand->e.allocator, step, &function))
        return true;
    hand->stop = 0;
    if (stop == 0 || steps[stop - 1].second == STOP_NOWHERE)
        return steps_do(&hand->e, step);
    set_stop(hand, &function, &steps[stop - 1]);
    bool passes = steps_do(&hand->e, step);
    breakpoint_clear();
    tell_where(hand, stop - 1);
    return passes;
}

/* Those of two threads can be wrong: the first of them is told. */
static void report(struct hand *hand)
{
    struct executing *first = game.first;
    if (atomic_exchange(&game.stop, 1) != 0)
        return;
    first->passes = false;
    first->heap.violation = hand->e.heap.violation;
    first->heap.no_memory = hand->e.heap.no_memory;
    first->execution->at = hand->at;
}

static void *do_hand(void *data)
{
    struct hand *hand = data;
    const struct history *history = game.first->history;
    hand->e.heap.error = &errno;
    hand->can_stop = hand->number == 0 && breakpoint_begin();
    for (hand->at = 0; hand->at < history->count; hand->at++) {
        size_t i = hand->at;
        if (history->steps[i].thread != hand->number)
            continue;
        if (!wait_for_turn(i))
            break;
        hand->was_stopped = false;
        if (!do_step(hand, &history->steps[i]))
            report(hand);
        atomic_fetch_add(&game.first->execution->calls, hand->execution.calls - hand->told);
        hand->told = hand->execution.calls;
        if (hand->was_stopped)
            change(&game.end, SIZE_MAX);
        else
            change(&game.now, i + 1);
    }
    return NULL;
}

static bool begin_hand(unsigned number)
{
    struct hand *hand = &game.hands[number];
    hand->number = number;
    hand->e = *game.first;
    hand->e.execution = &hand->execution;
    hand->e.novelty = NULL;
    hand->e.numbers = (uint64_t)(number + 1) << 32;
    hand->e.heap.is_limited = true; /* what the others have live is not known */
    return pthread_create(&hand->thread, NULL, do_hand, hand) == 0;
}

static unsigned threads_of(const struct history *history)
{
    unsigned most = 0;
    for (size_t i = 0; i < history->count; i++)
        most = MAX(most, (unsigned)history->steps[i].thread);
    return most + 1;
}

void interleaved_do(struct executing *first)
{
    unsigned count = threads_of(first->history), begun = 0;
    memset(&game, 0, sizeof game);
    game.first = first;
    game.object = object_of((uintptr_t)first->allocator->malloc);
    game.end = SIZE_MAX;
    game.stop = count > MOST_IN_TURNS;
    while (!game.stop && begun < count) {
        if (begin_hand(begun))
            begun++;
        else
            game.stop = 1;
    }
    for (unsigned i = 0; i < begun; i++)
        pthread_join(game.hands[i].thread, NULL);
    if (begun < count) {
        first->passes = false;
        first->heap.no_memory = true;
    }
    if (first->passes)
        first->passes = heap_disjoint(&first->heap);
}

/* ---- writing -----------------------------------------------------------------------------------
 */

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
