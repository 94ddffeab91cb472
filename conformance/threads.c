/* SPDX-License-Identifier: BSD-3-Clause
 *
 * threads: whose block it is, calls at once, and the GIL.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "harness/data_races.h"
#include "harness/harness.h"
#include "harness/interpose.h"
#include "harness/threads.h"
#include "ordinary_use.h"
#include "python/python.h"
#include "scenarios.h"

GROUP(threads, 6, "Calls from several threads, most of them without the GIL.",
      .rank = {RANK_IN_USE, RANK_IN_USE, 37}, .threads = true);

/* ---- one after the other --------------------------------------------------------------------- */

/* Rows whose level of the factor threads is one of these. */
static void check_threads(double cost, unsigned first, unsigned last)
{
    const struct scenario_limits limits = {
        .most_size = 8 << 10,
        .most_bytes = 16 << 20,
        .threads = true,
        .level[FACTOR_THREADS] = {(uint8_t)first, (uint8_t)(last - first + 1)}};
    check_scenarios(cost, &limits);
}

PROPERTY(threads_first_call,
    .id     = "threads.first-call", .level = MUST, .basis = BASIS_CALLER, .ends_process = true,
    .fixture = FIXTURE_BARE, .scenarios = true,
    .title  = "any function can be called first",
    .clause = "Each of the four functions can be the first that a new thread calls.",
    .source = "NEP 49, PyDataMem_Handler thread safety and lifetime; array_dealloc, 1.22 to 2.5",
    .why    = "A thread that only receives arrays frees or resizes before it allocates.",
    .wrong  = "cache = pthread_getspecific(key); /* NULL before the first malloc */",
    .right  = "if ((cache = pthread_getspecific(key)) == NULL)\n"
              "    cache = new_cache();",
    .hint   = "Create a thread's state on demand in all four functions, for any number of threads.",
    .looks  = "CRASH: SIGSEGV at address 0, inside free(0x7f1b2c000b70, 100)")
{
    check_threads(20000, FREED_THERE, CHAIN);
}

PROPERTY(threads_any_number,
    .id     = "threads.any-number", .level = MUST, .basis = BASIS_CALLER, .slow_ms = 50,
    .fixture = FIXTURE_BARE, .scenarios = true,
    .title  = "any number of threads is served",
    .clause = "The handler serves any number of threads, past and present, in the same way.",
    .source = "NEP 49, PyDataMem_Handler thread safety and lifetime; NumPy uses any thread",
    .why    = "A server starts a thread per request: the 1025th would find the table full.",
    .hint   = "Reuse the entry of an ended thread, or serve a thread without a cache.",
    .looks  = "malloc(64): it was refused with 128 bytes live in 2 blocks")
{
    struct scenario_limits limits = {
        .least_size = 64,
        .most_size = 1 << 10,
        .most_bytes = 4 << 20,
        .threads = true,
        .level = {[FACTOR_THREADS] = FROM_TO(ONE_AFTER_ANOTHER, ONE_AFTER_ANOTHER),
                  [FACTOR_MADE_BY] = FROM_TO(RESIZED_AND_BACK, RESIZED_AND_BACK),
                  [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 2),
                  [FACTOR_REPETITION] = FROM_TO(3, 3),
                  [FACTOR_RESIZES] = FROM_TO(AS_MADE, AS_MADE)}};
    check_scenarios(260000, &limits);
    limits.threads = false;
    limits.level[FACTOR_THREADS].first = HUNDREDS_AT_ONCE;
    limits.level[FACTOR_MADE_BY] = (struct level_range){0};
    limits.level[FACTOR_REPETITION].first = 1;
    check_scenarios(60000, &limits);
}

PROPERTY(threads_outlives_its_thread,
    .id     = "threads.outlives-its-thread", .level = MUST, .basis = BASIS_CALLER,
    .fixture = FIXTURE_BARE, .scenarios = true,
    .title  = "blocks outlive their thread",
    .clause = "A block stays unchanged after the thread that made it ended, until it is freed.",
    .source = "C17 7.22.3 paragraph 1: an allocated object lives until its deallocation",
    .why    = "Programs use the results of a worker thread after the worker ended.",
    .hint   = "Keep a thread's arena, or pass it on together with its live blocks.",
    .looks  = "byte 0 is 0x00 and not 0x2c as it was written, when it was looked at")
{
    check_threads(40000, MADE_THERE, MADE_THERE);
}

PROPERTY(threads_in_destructors,
    .id     = "threads.in-destructors", .level = MUST, .basis = BASIS_CALLER, .ends_process = true,
    .fixture = FIXTURE_BARE, .scenarios = true,
    .title  = "calls work in thread destructors",
    .clause = "A thread can make, resize and free blocks in destructors that run after the "
              "handler's own destructor.",
    .source = "NEP 49, PyDataMem_Handler thread safety and lifetime; POSIX.1-2024, "
              "pthread_key_create(): destructors run in no order and in several rounds; "
              "arrayobject.c array_dealloc, 1.22 to 2.5",
    .why    = "A thread_local C++ object that owns an array frees it there, when the cache is "
              "gone.",
    .wrong  = "free(cache); /* the thread's pointer stays */",
    .right  = "free(cache);\n"
              "pthread_setspecific(key, NULL);",
    .hint   = "In the cache's destructor set its pointer to NULL, so that the next call makes "
              "another cache.",
    .looks  = "CRASH: SIGSEGV, inside free(0x7f1b2c000b70, 100); step: round 2 of destructors")
{
    check_threads(20000, IN_DESTRUCTOR, IN_DESTRUCTOR);
}

PROPERTY(threads_hand_over,
    .id     = "threads.hand-over", .level = MUST, .basis = BASIS_CALLER,
    .fixture = FIXTURE_BARE, .scenarios = true,
    .title  = "blocks can move between threads",
    .clause = "A block can be made in one thread, resized in a second and freed in a third.",
    .source = "NEP 49, High level design; NumPy 1.22 to 2.5: array_dealloc, PyArray_Resize",
    .why    = "A pipeline of threads passes arrays through queues.",
    .hint   = "Store with the block what realloc and free need. Return it to its owner under a "
              "lock.",
    .looks  = "byte 0 is 0x00 and not 0xc3 as it was written, of the 17 that had to be kept")
{
    check_threads(40000, FREED_THERE, ONE_AFTER_ANOTHER);
}

/* ---- at once --------------------------------------------------------------------------------- */

/* In a child process: the kernel kills code that blocks SIGTRAP and meets a breakpoint. */
static void check_stopped(void *unused)
{
    struct scenario_limits limits = {
        .most_size = 256,
        .most_bytes = 16 << 20,
        .level = {[FACTOR_THREADS] = FROM_TO(STOPPED_INSIDE, STOPPED_INSIDE),
                  [FACTOR_REPETITION] = FROM_TO(2, 2)}};
    (void)unused;
    check_scenarios(250000, &limits);
    limits.most_size = 128 << 10;
    check_scenarios(50000, &limits);
}

static void check_at_once(double cost)
{
    const struct scenario_limits limits = {.most_size = 1 << 20,
                                           .most_bytes = 16 << 20,
                                           .level[FACTOR_THREADS] =
                                               FROM_TO(FEW_AT_ONCE, TEN_AT_ONCE)};
    check_scenarios(cost, &limits);
}

PROPERTY(threads_concurrent,
    .id     = "threads.concurrent", .level = MUST, .basis = BASIS_CALLER, .slow_ms = 101,
    .fixture = FIXTURE_BARE, .scenarios = true,
    .title  = "threads can call at the same time",
    .clause = "Threads can call the four functions at the same time.",
    .tests  = "The threads call without the GIL and while signals arrive.",
    .source = "NumPy 1.22 to 2.5: array_from_text without the GIL; free-threaded CPython, all four",
    .why    = "Two threads would get the same block, and each would overwrite the other's array.",
    .wrong  = "block = list;\n"
              "list = block->next;",
    .right  = "pthread_mutex_lock(&lock);\n"
              "block = list;\n"
              "list = block->next;\n"
              "pthread_mutex_unlock(&lock);",
    .hint   = "Lock every list, table and counter that threads share, in all four functions. Retry "
              "sem_wait and futex on EINTR. addr2line -e names the line.",
    .looks  = "byte 0 is 0x22 and not 0x6e as it was written, before the call")
{
    if (!is_instrumented())
        in_child_unless(SIGTRAP, check_stopped, NULL);
    check_at_once(30000);
}

/* ---- in order ---------------------------------------------------------------------------- */

struct use {
    size_t turn;
    _Atomic size_t *now;
    pthread_barrier_t *at;
};

/* So few calls that what a thread has touched is still known when another one comes, and none ends
 * before that: of what is made once that is the only use which shows.  One after the other, since a
 * watcher takes two uses at the very same moment for none (2 of 100 runs); and by turns that put
 * nothing in order, as a lock or an acquire would hide the race. */
static void use_once(void *data)
{
    enum { LARGE = 1 << 20, LARGER = 8 << 20, WAIT_NS = 20000 };
    struct use *use = data;
    pthread_barrier_wait(&use->at[0]);
    while (atomic_load_explicit(use->now, memory_order_relaxed) != use->turn)
        nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
    void *p = must_realloc(must_malloc(100), 200), *q = must_calloc(100, 1);
    subject_free(p, 200);
    subject_free(q, 100);
    resize_and_free(subject_malloc(LARGE), LARGE, LARGER, LARGER);
    give_back(subject_calloc(1, LARGE), LARGE);
    atomic_store_explicit(use->now, use->turn + 1, memory_order_relaxed);
    pthread_barrier_wait(
        &use->at[1]); /* who leaves the first late would be behind that one's end */
}

enum { THREADS = 3 };
static void use_first(void)
{
    _Atomic size_t now = 0;
    pthread_barrier_t at[2];
    struct use uses[THREADS];
    pthread_barrier_init(&at[0], NULL, THREADS);
    pthread_barrier_init(&at[1], NULL, THREADS);
    for (size_t i = 0; i < THREADS; i++)
        uses[i] = (struct use){i, &now, at};
    in_threads(THREADS, use_once, uses, sizeof uses[0]);
    pthread_barrier_destroy(&at[0]);
    pthread_barrier_destroy(&at[1]);
}

PROPERTY(threads_no_data_race,
    .id     = "threads.no-data-race", .level = MUST, .basis = BASIS_C,
    .answers_for = ABOUT(DATA_RACE), .fixture = FIXTURE_BARE,
    .title  = "no data races",
    .clause = "No two threads access the same memory without synchronization if one of them "
              "writes.",
    .source = "C17 5.1.2.4 paragraph 35: a data race has undefined behavior; 7.22.3 paragraph 2",
    .why    = "A lost update or a half-written pointer shows up once in a million calls.",
    .wrong  = "static size_t live;\n"
              "live++;",
    .right  = "static _Atomic size_t live;\n"
              "atomic_fetch_add(&live, 1);",
    .hint   = "Hold one lock for both accesses, or make both atomic with release and acquire "
              "order.",
    .looks  = "expected no two threads to use the same memory unordered; seen 2 data races")
{
    if (!data_races_are_watched())
        skip("only ThreadSanitizer sees data races: compile it with -fsanitize=thread, and say "
             "--tsan");
    use_first();
    check_at_once(400000);
}

/* ---- the GIL --------------------------------------------------------------------------------- */

/* Requests that are refused are among them. */
static void check_without_gil(void *unused)
{
    const struct scenario_limits limits = {.most_size = 64 << 10,
                                           .most_bytes = 16 << 20,
                                           .level[FACTOR_PRESSURE] =
                                               FROM_TO(NO_PRESSURE, REFUSED_BEFORE)};
    (void)unused;
    check_scenarios(5000, &limits);
}

/* Beside a thread that calls with the GIL: a handler that waits for the GIL while it has a lock
 * then hangs.  Where there is no GIL, collecting garbage stops all threads, which is as long to
 * wait for. */
static atomic_bool is_over;
static bool collects;
static void call_with_gil(void *unused)
{
    enum { CALLS = 64 };
    (void)unused;
    while (!is_over) {
        PyGILState_STATE state = PyGILState_Ensure();
        for (size_t i = 0; i < CALLS; i++)
            give_back(subject_malloc(100), 100);
        if (collects)
            PyGC_Collect();
        PyGILState_Release(state);
    }
}

static void resize_without_gil(void *unused)
{
    const struct scenario_limits limits = {
        .least_size = 8 << 20,
        .most_size = 16 << 20,
        .most_bytes = 64 << 20,
        .level = {[FACTOR_MADE_BY] = FROM_TO(GROWN, GROWN), [FACTOR_REPETITION] = FROM_TO(0, 1)}};
    (void)unused;
    check_scenarios(50000, &limits);
    is_over = true;
}

static void run_part(void *part)
{
    (*(void (**)(void *))part)(NULL);
}

PROPERTY(threads_no_gil_needed,
    .id     = "threads.no-gil-needed", .level = MUST, .basis = BASIS_CALLER, .scenarios = true,
    .title  = "no call needs the GIL",
    .clause = "No function requires that its caller holds the GIL or is a thread known to Python.",
    .source = "NumPy 1.22 to 2.5: ctors.c array_from_text calls realloc without the GIL; NEP 49",
    .why    = "PyMem_Malloc without the GIL corrupts Python's heap, and PyErr_SetString crashes.",
    .wrong  = "p = PyMem_Malloc(size);",
    .right  = "p = PyMem_RawMalloc(size);",
    .hint   = "Use malloc or PyMem_Raw*. To call Python, first take the GIL with "
              "PyGILState_Ensure, and hold no lock while you wait for it.",
    .looks  = "expected the handler not to call Python without the GIL; seen it called "
              "PyMem_Malloc")
{
    void (*parts[])(void *) = {resize_without_gil, call_with_gil, call_with_gil};
    collects = !python_uses_gil();
    gil_watch();
    python_release();
    check_without_gil(NULL);                   /* in a thread that has given up the GIL */
    in_threads(1, check_without_gil, NULL, 0); /* and in one that never had it */
    step("growing large blocks without the GIL, beside a thread that has it and asks for blocks");
    in_threads(collects ? 3 : 2, run_part, parts, sizeof parts[0]);
    python_acquire();
}
