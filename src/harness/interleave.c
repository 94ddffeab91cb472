/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The victim is stopped, the intruder calls meanwhile.  Both stay on one core: there the intruder
 * runs because the victim sleeps, at once and on a busy machine too.  Where the intruder waits for
 * a lock that the victim has, or spins for it, the victim goes on, and neither is wrong.  In the
 * second half of the time a signal interrupts that wait now and then: what then goes wrong did not
 * without.
 */
#include "harness/interleave.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness/blocks.h"
#include "harness/breakpoint.h"
#include "harness/property_child.h"
#include "python/python.h"

/* So long, and so many tries, however busy the machine; but no longer than that. */
enum { ENOUGH_NS = 50000000, ENOUGH_TRIES = 1200, LONGEST_NS = 1000000000 };

/* The victim has the first blocks for itself, the intruder the others, or all are everybody's. */
enum { OWN_BLOCKS = 4, BLOCKS = 2 * OWN_BLOCKS };
static struct {
    bool hands_over, in_python;
    struct block blocks[BLOCKS];
    size_t in_hand; /* of the victim */
    uint64_t last_pattern;
    struct random victims, intruders;
    struct points points[STEP_FREE + 1]; /* by function */
    size_t traces[STEP_FREE + 1];
    uint64_t begun, traced; /* the clock, and nanoseconds spent on traces */
    enum step_kind op;      /* the victim's call, and where it is stopped: 0, nowhere */
    uintptr_t point;
    int cpu;
    pthread_barrier_t ready;
    int stat; /* /proc/self/task/TID/stat of the intruder */
    pthread_t intruder;
    bool interrupts, was_interrupted; /* the intruder, while it waited */
    clockid_t intruders_clock;
    atomic_uint asked, answered; /* turns of the intruder */
    bool is_over;
} game;

/* ---- in Python --------------------------------------------------------------------------- */

static _Thread_local struct {
    PyGILState_STATE before;
    PyThreadState *state; /* while it waits for the other, for which it is not attached */
} python;

static void enter_python(void)
{
    if (game.in_python)
        python.before = PyGILState_Ensure();
}

static void leave_python(void)
{
    if (game.in_python)
        PyGILState_Release(python.before);
}

static void begin_wait(void)
{
    if (game.in_python)
        python.state = PyEval_SaveThread();
}

static void end_wait(void)
{
    if (game.in_python)
        PyEval_RestoreThread(python.state);
}

/* ---- calls ------------------------------------------------------------------------------ */

static size_t any_size(struct random *random)
{
    static const size_t sizes[] = {40, 40, 40, 40, 40, 120, 120, 120, 16, 200, 1000, 3000};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    return sizes[random_below(random, SIZES)];
}

static enum step_kind any_op(struct random *random, const struct block *block)
{
    bool either = random_below(random, 2) == 0;
    return block->p == NULL ? (either ? STEP_MALLOC : STEP_CALLOC)
           : either         ? STEP_REALLOC
                            : STEP_FREE;
}

static const char *when(void)
{
    return game.point == 0
               ? "in one thread"
               : fmt("after calls of another thread in the midst of a %s, at %s%s",
                     step_function(game.op), breakpoint_name(game.point),
                     game.was_interrupted
                         ? ", and after signals interrupted a wait for it (EINTR is no success)"
                         : "");
}

static void *call(const struct block *block, enum step_kind op, size_t size)
{
    void *p = NULL;
    if (op == STEP_MALLOC)
        p = subject_malloc(size);
    else if (op == STEP_CALLOC)
        p = subject_calloc(size, 1);
    else if (op == STEP_REALLOC)
        p = subject_realloc(block->p, size);
    else
        subject_free(block->p, block->size);
    if (p == NULL && op != STEP_FREE)
        fail(fmt("%s of %zu bytes to return a block, %s", step_function(op), size, when()), "NULL");
    return p;
}

/* What came of the call, and fills the block anew. */
static void settle(struct block *block, enum step_kind op, void *p, size_t size)
{
    if (op == STEP_CALLOC)
        expect_zero(p, size, "%s", when());
    if (op == STEP_REALLOC)
        expect_pattern(p, MIN(block->size, size), block->number, "%s", when());
    *block = (struct block){p, size, ++game.last_pattern};
    if (p != NULL)
        pattern_fill(p, size, block->number);
}

static void expect_all(void)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        const struct block *block = &game.blocks[i];
        if (block->p != NULL && i != game.in_hand)
            expect_pattern(block->p, block->size, block->number, "%s", when());
    }
}

/* ---- the intruder ----------------------------------------------------------------------- */

static void futex_wait(atomic_uint *word, unsigned while_it_is, const struct timespec *most)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_it_is, most, NULL, 0);
}

static void futex_wake(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void stay_on_core(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(game.cpu, &one);
    sched_setaffinity(0, sizeof one, &one); /* where that is not allowed it takes longer */
}

static struct block *intruders_empty_block(const struct block *but)
{
    size_t first = game.hands_over ? 0 : OWN_BLOCKS;
    for (size_t i = first; i < BLOCKS; i++) {
        if (game.blocks[i].p == NULL && i != game.in_hand && &game.blocks[i] != but)
            return &game.blocks[i];
    }
    return NULL;
}

/* Makes two blocks and frees the first: a list then begins as before, and is another.  False where
 * it has no room for two. */
static bool exchange_second(void)
{
    struct block *first = intruders_empty_block(NULL);
    struct block *second = first != NULL ? intruders_empty_block(first) : NULL;
    size_t size = any_size(&game.intruders);
    if (second == NULL)
        return false;
    settle(first, STEP_MALLOC, call(first, STEP_MALLOC, size), size);
    settle(second, STEP_MALLOC, call(second, STEP_MALLOC, size), size);
    settle(first, STEP_FREE, call(first, STEP_FREE, size), size);
    return true;
}

static void intrude(void)
{
    enum { MOST_CALLS = 4, EXCHANGES_EVERY = 4 };
    if (random_below(&game.intruders, EXCHANGES_EVERY) == 0 && exchange_second())
        return;
    for (size_t calls = 1 + random_below(&game.intruders, MOST_CALLS); calls > 0; calls--) {
        size_t at = game.hands_over ? random_below(&game.intruders, BLOCKS - 1)
                                    : OWN_BLOCKS + random_below(&game.intruders, OWN_BLOCKS);
        struct block *block = &game.blocks[at + (game.hands_over && at >= game.in_hand)];
        enum step_kind op = any_op(&game.intruders, block);
        size_t size = any_size(&game.intruders);
        settle(block, op, call(block, op, size), size);
    }
}

static void intrude_when_asked(void)
{
    char path[64];
    stay_on_core();
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", syscall(SYS_gettid));
    game.stat = open(path, O_RDONLY | O_CLOEXEC);
    game.intruder = pthread_self();
    pthread_getcpuclockid(game.intruder, &game.intruders_clock);
    pthread_barrier_wait(&game.ready);
    enter_python();
    for (unsigned turn = 1;; turn++) {
        begin_wait();
        while (atomic_load(&game.asked) != turn)
            futex_wait(&game.asked, turn - 1, NULL);
        end_wait();
        if (game.is_over)
            break;
        intrude();
        atomic_store(&game.answered, turn);
        futex_wake(&game.answered);
    }
    leave_python();
}

/* ---- the victim ------------------------------------------------------------------------- */

static uint64_t intruders_time(void)
{
    struct timespec t = {0};
    clock_gettime(game.intruders_clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Whether it sleeps, inside a call; and not where it only waits for the processor. */
static bool intruder_sleeps(void)
{
    char line[128];
    ssize_t length = pread(game.stat, line, sizeof line - 1, 0);
    line[length > 0 ? length : 0] = '\0';
    const char *behind_name = strrchr(line, ')');
    return behind_name == NULL || strncmp(behind_name, ") R", 3) != 0;
}

static void on_interruption(int number)
{
    (void)number;
}

static bool has_answered(void)
{
    return atomic_load(&game.answered) == atomic_load(&game.asked);
}

/* Whoever waits for a lock goes on waiting for it; who does not is let. */
static void interrupt_intruder(unsigned turn)
{
    enum { EVERY = 2, WAIT_NS = 100000 };
    if (!game.interrupts || random_below(&game.victims, EVERY) != 0)
        return;
    game.was_interrupted = true;
    pthread_kill(game.intruder, SIGUSR2);
    futex_wait(&game.answered, turn - 1, &(struct timespec){0, WAIT_NS});
}

/* In a signal handler, between two instructions of a call. */
static void let_intrude(void)
{
    enum { FIRST_WAIT_NS = 30000, LONGEST_WAIT_NS = 4000000, SPINNING_NS = 400000 };
    uint64_t before = intruders_time(), begun = clock_now();
    unsigned turn = atomic_fetch_add(&game.asked, 1) + 1;
    futex_wake(&game.asked);
    for (long wait = FIRST_WAIT_NS; !has_answered(); wait *= 2) {
        futex_wait(&game.answered, turn - 1, &(struct timespec){0, wait});
        bool sleeps = !has_answered() && intruder_sleeps();
        if (sleeps)
            interrupt_intruder(turn);
        if (!has_answered() && (sleeps || intruders_time() - before > SPINNING_NS ||
                                wait > LONGEST_WAIT_NS || clock_now() - begun > LONGEST_NS))
            return;
    }
}

static void wait_for_answer(void)
{
    unsigned turn = atomic_load(&game.asked);
    if (has_answered())
        return;
    begin_wait();
    while (!has_answered())
        futex_wait(&game.answered, turn - 1, NULL);
    end_wait();
}

/* Tracing is slow: now and then, for there are other ways through a call, and for a quarter of the
 * time. */
static bool wants_trace(enum step_kind op)
{
    enum { FIRST_TRACES = 2, EVERY = 16 };
    return game.traces[op] < FIRST_TRACES || (random_below(&game.victims, EVERY) == 0 &&
                                              game.traced < (clock_now() - game.begun) / 4);
}

static void *call_traced(const struct block *block, enum step_kind op, size_t size)
{
    uint64_t begun = clock_now();
    breakpoint_trace(breakpoint_function(&subject_handler()->allocator, op), &game.points[op]);
    void *p = call(block, op, size);
    breakpoint_clear();
    game.traces[op]++;
    game.traced += clock_now() - begun;
    return p;
}

static void *call_stopped(const struct block *block, enum step_kind op, size_t size)
{
    const struct points *points = &game.points[op];
    game.op = op;
    game.point = points->at[random_below(&game.victims, points->count)];
    breakpoint_set(game.point, let_intrude);
    void *p = call(block, op, size);
    breakpoint_clear();
    wait_for_answer();
    return p;
}

static void free_all(void)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        if (game.blocks[i].p != NULL)
            subject_free(game.blocks[i].p, game.blocks[i].size);
        game.blocks[i].p = NULL;
    }
}

static void try_one(void)
{
    enum { FREE_ALL_EVERY = 4 };
    if (random_below(&game.victims, FREE_ALL_EVERY) == 0)
        free_all();
    game.in_hand = random_below(&game.victims, game.hands_over ? BLOCKS : OWN_BLOCKS);
    struct block *block = &game.blocks[game.in_hand];
    enum step_kind op = any_op(&game.victims, block);
    size_t size = any_size(&game.victims);
    game.point = 0;
    void *p = wants_trace(op)             ? call_traced(block, op, size)
              : game.points[op].count > 0 ? call_stopped(block, op, size)
                                          : call(block, op, size);
    settle(block, op, p, size);
    game.in_hand = BLOCKS;
    expect_all();
}

static bool has_points(void)
{
    size_t count = 0;
    for (size_t i = STEP_MALLOC; i <= STEP_FREE; i++)
        count += game.points[i].count + (game.traces[i] < 2);
    return count > 0;
}

static void suffer(void)
{
    stay_on_core();
    prctl(PR_SET_TIMERSLACK, 1);
    pthread_barrier_wait(&game.ready);
    enter_python();
    game.begun = clock_now();
    bool can_stop = breakpoint_begin();
    for (size_t tries = 0; can_stop && has_points(); tries++) {
        uint64_t spent = clock_now() - game.begun;
        if (spent > LONGEST_NS || (spent > ENOUGH_NS && tries > ENOUGH_TRIES))
            break;
        game.interrupts = spent > ENOUGH_NS / 2 && tries > ENOUGH_TRIES / 2;
        try_one();
    }
    free_all();
    leave_python();
    game.is_over = true;
    atomic_fetch_add(&game.asked, 1);
    futex_wake(&game.asked);
}

static void run_thread(void *is_victim)
{
    if (*(const bool *)is_victim)
        suffer();
    else
        intrude_when_asked();
}

static void interleave_here(void *unused)
{
    bool is_victim[] = {true, false};
    (void)unused;
    game.cpu = sched_getcpu();
    game.in_hand = BLOCKS;
    /* without SA_RESTART, as Python's signal.signal does it */
    sigaction(SIGUSR2, &(struct sigaction){.sa_handler = on_interruption}, NULL);
    pthread_barrier_init(&game.ready, NULL, 2);
    in_threads(2, run_thread, is_victim, sizeof is_victim[0]);
}

void interleave(bool hands_over, bool in_python)
{
    if (is_instrumented())
        return;
    game.hands_over = hands_over;
    game.in_python = in_python;
    game.victims = (struct random){random_next(rng())};
    game.intruders = (struct random){random_next(rng())};
    in_child_unless(SIGTRAP, interleave_here, NULL);
}
