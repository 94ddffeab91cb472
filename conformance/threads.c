/* SPDX-License-Identifier: BSD-3-Clause
 *
 * threads: their first call, their number and their end.
 */
#include <pthread.h>

#include "block_checks.h"
#include "harness/interpose.h"
#include "python/python.h"

GROUP(threads, 6, "Calls from several threads, most of them without the GIL.",
      .rank = {RANK_IN_USE, RANK_IN_USE, 37}, .threads = true);

/* ---- the first call ---------------------------------------------------------------------- */

enum first_call { FIRST_MALLOC, FIRST_CALLOC, FIRST_REALLOC, FIRST_FREE, FIRST_FREE_NULL, FIRSTS };
static const char *const first_names[FIRSTS] = {"malloc", "calloc", "realloc", "free",
                                                "free(NULL, 0)"};
enum { INHERITED = 100 };

struct newcomer {
    enum first_call first;
    unsigned char *inherited; /* a block of another thread's, for realloc and free */
    pthread_barrier_t *ready; /* NULL: it is alone */
};

/* After its first call the thread can do everything. */
static void use_all(const char *first)
{
    for (size_t size = 1; size <= 4096; size = size * 2 + 1) {
        unsigned char *p = must_malloc(size), *q = must_calloc(1, size);
        expect_zero(q, size, "after calloc(1, %zu) in a thread that called %s first", size, first);
        pattern_fill(p, size, 1);
        p = must_realloc(p, size + 100);
        expect_pattern(p, size, 1, "after realloc from %zu in a thread that called %s first", size,
                       first);
        subject_free(NULL, 0);
        subject_free(p, size + 100);
        subject_free(q, size);
    }
}

static void call_first(void *data)
{
    struct newcomer *newcomer = data;
    unsigned char *p = NULL;
    size_t size = INHERITED;
    if (newcomer->ready != NULL)
        pthread_barrier_wait(newcomer->ready);
    switch (newcomer->first) {
    case FIRST_MALLOC:
        p = must_malloc(size);
        pattern_fill(p, size, INHERITED);
        break;
    case FIRST_CALLOC:
        p = must_calloc(size, 1);
        expect_zero(p, size, "after calloc as the first call of a thread");
        break;
    case FIRST_REALLOC:
        p = must_realloc(newcomer->inherited, 3 * size);
        expect_pattern(p, size, INHERITED, "after realloc as the first call of a thread");
        size *= 3;
        break;
    case FIRST_FREE:
        subject_free(newcomer->inherited, size);
        break;
    default:
        subject_free(NULL, 0);
    }
    use_all(first_names[newcomer->first]);
    give_back(p, size);
}

static void make_inherited(void *data)
{
    struct newcomer *newcomers = data;
    for (size_t i = 0; i < FIRSTS; i++) {
        if (newcomers[i].first != FIRST_REALLOC && newcomers[i].first != FIRST_FREE)
            continue;
        newcomers[i].inherited = must_malloc(INHERITED);
        pattern_fill(newcomers[i].inherited, INHERITED, INHERITED);
    }
}

static void use_all_here(void *unused)
{
    (void)unused;
    use_all("malloc");
}

PROPERTY(threads_first_call,
    .id     = "threads.first-call", .level = MUST, .basis = BASIS_CALLER, .ends_process = true,
    .fixture = FIXTURE_BARE,
    .clause = "each of the four functions can be the first that a new thread calls",
    .source = "NEP 49, PyDataMem_Handler thread safety and lifetime; array_dealloc, 1.22 to 2.5",
    .why    = "a thread that only receives arrays frees or resizes before it allocates",
    .hint   = "create a thread's state on demand in all four, for any number of threads",
    .looks  = "CRASH: SIGSEGV at address 0, inside free(0x7f1b2c000b70, 100)")
{
    struct newcomer newcomers[FIRSTS];
    pthread_barrier_t ready;
    for (size_t i = 0; i < FIRSTS; i++)
        newcomers[i] = (struct newcomer){.first = (enum first_call)i};
    control_run(use_all_here, NULL, "in the main thread");
    in_threads(1, make_inherited, newcomers, sizeof newcomers);
    for (size_t i = 0; i < FIRSTS; i++) /* one after the other */
        in_threads(1, call_first, &newcomers[i], sizeof newcomers[i]);
    pthread_barrier_init(&ready, NULL, FIRSTS);
    for (size_t round = 0; round < 3; round++) { /* and at once */
        make_inherited(newcomers);
        for (size_t i = 0; i < FIRSTS; i++)
            newcomers[i].ready = &ready;
        in_threads(FIRSTS, call_first, newcomers, sizeof newcomers[0]);
    }
    pthread_barrier_destroy(&ready);
}

/* ---- many threads ------------------------------------------------------------------------- */

enum { IN_TURN = 1100, IF_INSTRUMENTED = 150, AT_ONCE = 270, A_FEW = 4, ROUNDS = 3, ONE_IN = 32 };
struct one_of_many {
    struct block *hand_over; /* what the one before left, and what this one leaves */
    struct one_of_many *next;
    pthread_barrier_t *all; /* NULL: they come one after the other */
    bool has_large;
    struct block own;
};

/* Another, which comes and goes meanwhile, is written to, so that who is given the same sees it. */
static struct block make_own(uint64_t number, const char *among)
{
    struct block own = {.size = 64 + number % 200, .number = number};
    struct block brief = own;
    brief.p = must_calloc(brief.size, 1);
    expect_aligned(brief.p, brief.size, "calloc(%zu, 1) in one of %s", brief.size, among);
    expect_zero(brief.p, brief.size, "in one of %s", among);
    pattern_fill(brief.p, brief.size, ~number);
    own.p = must_malloc(own.size);
    expect_aligned(own.p, own.size, "malloc(%zu) in one of %s", own.size, among);
    pattern_fill(own.p, own.size, number);
    own.p = must_realloc(own.p, own.size + 1);
    expect_aligned(own.p, own.size + 1, "realloc to %zu in one of %s", own.size + 1, among);
    expect_pattern(own.p, own.size, number, "after realloc from %zu in one of %s", own.size, among);
    pattern_fill(own.p, ++own.size, own.number);
    expect_pattern(brief.p, brief.size, ~number, "in one of %s", among);
    subject_free(brief.p, brief.size);
    return own;
}

static void end_block(struct block *block, const char *among)
{
    expect_pattern(block->p, block->size, block->number, "in another of %s", among);
    subject_free(block->p, block->size);
    block->p = NULL;
}

static void take_turn(void *data)
{
    static const char among[] = "many threads, one after the other";
    struct one_of_many *one = data;
    uint64_t number = one->hand_over->number + 1;
    struct block kept = make_own(number, among), passed = make_own(number, among);
    if (one->hand_over->p != NULL)
        end_block(one->hand_over, among);
    *one->hand_over = passed;
    end_block(&kept, among);
}

/* All that a few have at once may not be refused. */
static void use_large(uint64_t number, const char *among)
{
    static const size_t sizes[] = {128 << 10, 1 << 20};
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        struct block large = {must_malloc(sizes[i]), sizes[i], number};
        expect_aligned(large.p, large.size, "malloc(%zu) in one of %s", large.size, among);
        sample_fill(large.p, large.size, number);
        expect_samples(large.p, large.size, number, "in one of %s", among);
        subject_free(large.p, large.size);
    }
}

static void be_there(void *data)
{
    static const char among[] = "many threads at once";
    struct one_of_many *one = data;
    for (size_t round = 0; round < ROUNDS; round++) {
        one->own = make_own(one->own.number, among);
        pthread_barrier_wait(one->all); /* each has a block */
        if (one->has_large && round == 0)
            use_large(one->own.number, among);
        end_block(&one->next->own, among);
        pthread_barrier_wait(one->all);
    }
    one->own = make_own(one->own.number, among);
    pthread_barrier_wait(one->all);
    end_block(&one->own, among);
}

static void crowd(size_t in_turn, size_t at_once)
{
    struct one_of_many ones[AT_ONCE] = {0};
    struct block hand_over = {0};
    pthread_barrier_t all;
    ones[0].hand_over = &hand_over;
    size_t been = 0;
    for (; been < in_turn && !time_is_up(); been++)
        in_threads(1, take_turn, &ones[0], sizeof ones[0]);
    if (been < in_turn)
        mark_incomplete("%zu threads, one after the other, took half of its %g s; give it more by "
                        "--timeout",
                        been, time_limit());
    end_block(&hand_over, "many threads");
    pthread_barrier_init(&all, NULL, (unsigned)at_once);
    for (size_t i = 0; i < at_once; i++)
        ones[i] = (struct one_of_many){.next = &ones[(i + 1) % at_once],
                                       .all = &all,
                                       .has_large = i % ONE_IN == 0,
                                       .own = {.number = i}};
    in_threads(at_once, be_there, ones, sizeof ones[0]);
    pthread_barrier_destroy(&all);
}

static void crowd_of_few(void *unused)
{
    (void)unused;
    crowd(A_FEW, A_FEW);
}

PROPERTY(threads_any_number,
    .id     = "threads.any-number", .level = MUST, .basis = BASIS_CALLER, .slow_ms = 150,
    .fixture = FIXTURE_BARE,
    .clause = "threads are served the same, however many are or have been",
    .source = "NEP 49, PyDataMem_Handler thread safety and lifetime; NumPy uses any thread",
    .why    = "a server starts a thread per request: the 1025th would find the table full",
    .hint   = "reuse the entry of an ended thread, or serve a thread without a cache",
    .looks  = "FAIL: calloc(64, 1) to return a block: little else is live; NULL")
{
    control_run(crowd_of_few, NULL, "with few threads");
    const int in_turn = is_instrumented() ? IF_INSTRUMENTED : IN_TURN;
    const int at_once = is_instrumented() ? IF_INSTRUMENTED / 2 : AT_ONCE;
    step("%d threads, one after the other, and then %d at once", in_turn, at_once);
    crowd((size_t)in_turn, (size_t)at_once);
}

/* ---- after the thread -------------------------------------------------------------------- */

/* A thread leaves blocks behind; some of those that it found it has freed. */
static void leave_blocks(void *data)
{
    struct blocks *blocks = data;
    for (size_t i = 0; i < 60; i++) {
        size_t size = i % 20 == 19 ? 20000 : 1 + 8 * i;
        blocks_add(blocks, must_make(i, size), size);
        if (i % 4 == 0)
            blocks_free(blocks, blocks->count / 2);
    }
}

static void look_at_left_blocks(bool is_thread_gone)
{
    struct blocks blocks = {0};
    for (size_t i = 0; i < 6; i++) {
        if (is_thread_gone)
            in_threads(1, leave_blocks, &blocks, sizeof blocks);
        else
            leave_blocks(&blocks);
        blocks_verify(&blocks, "after %sothers came",
                      is_thread_gone ? "the thread that made it ended and " : "");
    }
    blocks_expect_disjoint(&blocks);
    for (size_t i = 0; i < blocks.count; i++) {
        struct block *b = &blocks.at[i];
        b->p = must_realloc(b->p, b->size + 50);
        expect_pattern(b->p, b->size, b->number, "after realloc from %zu%s", b->size,
                       is_thread_gone ? " when its thread had ended" : "");
    }
    blocks_verify(&blocks, "after all blocks%s were resized",
                  is_thread_gone ? " of ended threads" : "");
    blocks_free_all(&blocks);
}

static void look_in_one_thread(void *unused)
{
    (void)unused;
    look_at_left_blocks(false);
}

PROPERTY(threads_outlives_its_thread,
    .id     = "threads.outlives-its-thread", .level = MUST, .basis = BASIS_CALLER,
    .fixture = FIXTURE_BARE,
    .clause = "a block stays as it is after the thread that made it has ended, until it is freed",
    .source = "C17 7.22.3 paragraph 1: an allocated object lives until its deallocation",
    .why    = "what a worker thread computed is used when the worker is gone",
    .hint   = "keep a thread's arena, or hand it on with its live blocks",
    .looks  = "FAIL: byte 0 of 9 to be 0x2c as it was written, after its thread ended; seen 0x00")
{
    control_run(look_in_one_thread, NULL, "in one thread alone");
    look_at_left_blocks(true);
}

/* ---- the GIL ----------------------------------------------------------------------------- */

/* Everything that the subject can be asked for, refusals and wrong sizes included; others test
 * what it returns. */
static void call_all(void *data)
{
    static const size_t sizes[] = {1, 24, 500, 512, 513, 5000, 70000, 300000};
    (void)data;
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        size_t size = sizes[i];
        void *p = subject_malloc(size), *q = subject_calloc(1, size), *r;
        p = p != NULL && (r = subject_realloc(p, 2 * size)) != NULL ? r : p;
        q = q != NULL && (r = subject_realloc(q, size / 2 + 1)) != NULL ? r : q;
        absurd_begin();
        if (p != NULL && subject_realloc(p, PTRDIFF_MAX) == NULL)
            subject_free(p, 2 * size);
        absurd_end();
        give_back(q, 1);
        subject_free(NULL, size);
    }
    absurd_begin();
    subject_malloc(PTRDIFF_MAX);
    subject_calloc(PTRDIFF_MAX, 4);
    absurd_end();
    void *nothing = subject_malloc(0);
    give_back(nothing, 0);
}

PROPERTY(threads_no_gil_needed,
    .id     = "threads.no-gil-needed", .level = MUST, .basis = BASIS_CALLER,
    .clause = "no function needs its caller to hold the GIL or to be a thread that Python knows",
    .source = "NumPy 1.22 to 2.5: ctors.c array_from_text calls realloc without the GIL; NEP 49",
    .why    = "PyMem_Malloc without the GIL damages Python's own heap; PyErr_SetString crashes",
    .hint   = "use malloc or PyMem_Raw*; to call Python, take the GIL by PyGILState_Ensure first",
    .looks  = "FAIL: the handler not to call Python without the GIL; it called PyMem_Malloc")
{
    gil_watch();
    python_release();
    call_all(NULL);                   /* a thread that has given up the GIL */
    in_threads(1, call_all, NULL, 0); /* and one that never had it */
    python_acquire();
}
