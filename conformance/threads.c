/* SPDX-License-Identifier: BSD-3-Clause
 *
 * threads: calls from several threads.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "harness/data_races.h"
#include "harness/gil_watch.h"
#include "harness/harness.h"
#include "harness/interleave.h"
#include "harness/perturb.h"
#include "python/python.h"

GROUP(threads, 6, "Calls from several threads, most of them without the GIL.");

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
    if (p != NULL)
        subject_free(p, size);
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
    .id     = "threads.first-call",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "each of the four functions can be the first that a new thread calls",
    .source = "NEP 49, PyDataMem_Handler thread safety and lifetime; NumPy 1.22 to 2.5: "
              "arrayobject.c array_dealloc and shape.c PyArray_Resize in any thread",
    .why    = "a thread that only receives arrays frees or resizes before it has allocated "
              "anything",
    .hint   = "make a thread's own state on demand in all four, and for any number of threads",
    .looks  = "CRASH: SIGSEGV at address 0, inside free(0x7f1b2c000b70, 100)",
    .fixture  = FIXTURE_BARE)
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

enum { IN_TURN = 1100, IF_INSTRUMENTED = 150, AT_ONCE = 100, A_FEW = 4 };
struct one_of_many {
    struct block *hand_over; /* what the one before left, and what this one leaves */
    struct one_of_many *next;
    pthread_barrier_t *all; /* NULL: they come one after the other */
    struct block own;
};

static struct block make_own(uint64_t number, const char *among)
{
    struct block own = {.size = 64 + number % 200, .number = number};
    own.p = must_calloc(own.size, 1);
    expect_zero(own.p, own.size, "in one of %s", among);
    subject_free(own.p, own.size);
    own.p = must_malloc(own.size);
    own.p = must_realloc(own.p, ++own.size);
    pattern_fill(own.p, own.size, own.number);
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

static void be_there(void *data)
{
    static const char among[] = "many threads at once";
    struct one_of_many *one = data;
    one->own = make_own(one->own.number, among);
    pthread_barrier_wait(one->all); /* each has a block */
    end_block(&one->next->own, among);
    pthread_barrier_wait(one->all);
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
        stopped_short("%zu threads, one after the other, took half of its %g s; give it more by "
                      "--timeout",
                      been, time_limit());
    end_block(&hand_over, "many threads");
    pthread_barrier_init(&all, NULL, (unsigned)at_once);
    for (size_t i = 0; i < at_once; i++)
        ones[i] = (struct one_of_many){
            .next = &ones[(i + 1) % at_once], .all = &all, .own = {.number = i}};
    in_threads(at_once, be_there, ones, sizeof ones[0]);
    pthread_barrier_destroy(&all);
}

static void crowd_of_few(void *unused)
{
    (void)unused;
    crowd(A_FEW, A_FEW);
}

PROPERTY(threads_any_number,
    .id     = "threads.any-number",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "threads are served alike however many there have been, and however many there are",
    .source = "NEP 49, PyDataMem_Handler thread safety and lifetime; NumPy 1.22 to 2.5: "
              "arrays are made and freed in whatever thread",
    .why    = "a server starts a thread for each request: the thousand and twenty-fifth would find "
              "no room in a table",
    .hint   = "a table of threads grows, or gives the place of a thread that has ended to the "
              "next; whoever finds none goes without a cache",
    .looks  = "FAIL: calloc(64, 1) to return a block: little else is live; NULL",
    .fixture  = FIXTURE_BARE)
{
    control_run(crowd_of_few, NULL, "with few threads");
    step("%d threads, one after the other, and then %d at once", IN_TURN, AT_ONCE);
    crowd(is_instrumented() ? IF_INSTRUMENTED : IN_TURN, AT_ONCE);
}

/* ---- at once ----------------------------------------------------------------------------- */

enum { THREADS = 3, SLOTS = 24, LEAST_NS = 8000000, LEAST_CPU_NS = 6000000, STEPS = 256 };
struct mixer {
    size_t number;
    uint64_t begun; /* on the clock */
    pthread_barrier_t *ready;
    atomic_int *busy; /* how many have not done enough */
    struct random random;
    struct block slots[SLOTS];
    uint64_t last_pattern;
};

static size_t mixed_size(struct mixer *m)
{
    static const size_t sizes[] = {1, 16, 24, 40, 64, 64, 100, 200, 240, 1000, 3000};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    size_t at = random_below(&m->random, 64);
    return at == 63 ? 40000 : sizes[at % SIZES];
}

static void fill_slot(struct mixer *m, struct block *slot)
{
    slot->number = ++m->last_pattern;
    pattern_fill(slot->p, slot->size, slot->number);
}

static void make_slot(struct mixer *m, struct block *slot)
{
    slot->size = mixed_size(m);
    switch (random_below(&m->random, 4)) {
    case 0:
        slot->p = must_calloc(slot->size, 1);
        expect_zero(slot->p, slot->size, "after calloc(%zu, 1) beside %d other threads", slot->size,
                    THREADS - 1);
        break;
    case 1:
        slot->p = must_realloc(must_malloc(1), slot->size);
        break;
    default:
        slot->p = must_malloc(slot->size);
    }
    fill_slot(m, slot);
}

static void end_slot(struct block *slot)
{
    expect_pattern(slot->p, slot->size, slot->number, "beside %d other threads", THREADS - 1);
    subject_free(slot->p, slot->size);
    slot->p = NULL;
}

static void resize_slot(struct mixer *m, struct block *slot, size_t size)
{
    slot->p = must_realloc(slot->p, size);
    expect_pattern(slot->p, MIN(slot->size, size), slot->number,
                   "after realloc from %zu to %zu beside %d other threads", slot->size, size,
                   THREADS - 1);
    slot->size = size;
    fill_slot(m, slot);
}

/* Anything, of any size. */
static void mix_slots(struct mixer *m)
{
    struct block *slot = &m->slots[random_below(&m->random, SLOTS)];
    if (slot->p == NULL)
        make_slot(m, slot);
    else if (random_below(&m->random, 3) == 0)
        resize_slot(m, slot, mixed_size(m));
    else
        end_slot(slot);
}

/* Two small sizes, so that most of the time goes into the subject: what threads share without a
 * lock shows here first. */
static void storm_slots(struct mixer *m)
{
    enum { STORM_SLOTS = 6 };
    static const size_t sizes[] = {40, 120};
    uint64_t dice = random_next(&m->random);
    struct block *slot = &m->slots[dice % STORM_SLOTS];
    size_t size = sizes[dice >> 8 & 1];
    if (slot->p != NULL && (dice >> 9) % 2 == 0) {
        end_slot(slot);
        return;
    }
    if (slot->p != NULL) {
        resize_slot(m, slot, size);
        return;
    }
    slot->p = must_malloc(size);
    slot->size = size;
    fill_slot(m, slot);
}

static void end_slots(struct mixer *m)
{
    for (size_t i = 0; i < SLOTS; i++) {
        if (m->slots[i].p != NULL)
            end_slot(&m->slots[i]);
    }
}

/* On a busy machine the clock alone says little. */
static bool has_done_enough(const struct mixer *m)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return is_instrumented() || (clock_now() - m->begun >= LEAST_NS &&
                                 (used.tv_sec > 0 || used.tv_nsec >= LEAST_CPU_NS));
}

/* Does enough, and then goes on as company for the others. */
static void mix(void *data)
{
    struct mixer *m = data;
    bool enough = false;
    pthread_barrier_wait(m->ready);
    perturb_begin(m->number);
    m->begun = clock_now();
    for (size_t round = 0; atomic_load(m->busy) > 0; round++) {
        for (size_t step = 0; step < STEPS; step++) {
            if (round % 2 == 0)
                storm_slots(m);
            else
                mix_slots(m);
        }
        if (!enough && has_done_enough(m)) {
            enough = true;
            atomic_fetch_sub(m->busy, 1);
        }
    }
    end_slots(m);
    perturb_end();
}

/* The same by one thread, without company. */
static void mix_alone(void *unused)
{
    enum { ROUNDS = 24 };
    struct mixer m = {.random = {random_next(rng())}};
    (void)unused;
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t step = 0; step < STEPS; step++) {
            if (round % 2 == 0)
                storm_slots(&m);
            else
                mix_slots(&m);
        }
    }
    end_slots(&m);
}

static void mix_at_once(void)
{
    struct mixer mixers[THREADS] = {0};
    pthread_barrier_t ready;
    atomic_int busy = THREADS;
    pthread_barrier_init(&ready, NULL, THREADS);
    for (size_t i = 0; i < THREADS; i++) {
        mixers[i].number = i;
        mixers[i].ready = &ready;
        mixers[i].busy = &busy;
        mixers[i].random = (struct random){random_next(rng())};
        mixers[i].last_pattern = (uint64_t)i << 32;
    }
    in_threads(THREADS, mix, mixers, sizeof mixers[0]);
    pthread_barrier_destroy(&ready);
}

PROPERTY(threads_concurrent,
    .id     = "threads.concurrent",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "the four functions can be called from several threads at once, without the GIL, and "
              "while signals arrive",
    .source = "NumPy 1.22 to 2.5: ctors.c array_from_text calls realloc without the GIL while "
              "others hold it; with a free-threaded CPython (NumPy 2.1 and later) all four so",
    .why    = "two threads would be given one block, and each overwrite the other's array",
    .hint   = "a lock round every list, table and counter that threads share, in all four "
              "functions, or lists of each thread's own; sem_wait and futex are called again where "
              "they say EINTR; addr2line -e names the line of an address",
    .looks  = "FAIL: byte 0 of 40 to be 0x6e as it was written, after calls of another thread in "
              "the midst of a malloc, at libmine.so+0x1139; seen 0x22",
    .fixture  = FIXTURE_BARE)
{
    control_run(mix_alone, NULL, "in one thread alone");
    interleave(false, false);
    mix_at_once();
}

/* ---- from hand to hand ------------------------------------------------------------------- */

/* A ring with one writer and one reader.  Blocks travel round a circle of threads, through one ring
 * between each two, and every thread does something else to them. */
enum { RING = 128, STATIONS = 3 };
struct ring {
    struct block at[RING];
    atomic_size_t read, written;
};
struct station {
    size_t number, blocks;
    struct random random;
    struct ring *in, *out;
};

static void ring_put(struct ring *ring, struct block block)
{
    size_t written = atomic_load(&ring->written);
    while (written - atomic_load(&ring->read) == RING)
        sched_yield();
    ring->at[written % RING] = block;
    data_races_hand_over(&ring->at[written % RING], 1);
    atomic_store(&ring->written, written + 1);
}

static struct block ring_take(struct ring *ring)
{
    size_t read = atomic_load(&ring->read);
    while (atomic_load(&ring->written) == read)
        sched_yield();
    data_races_take_over(&ring->at[read % RING], 1);
    struct block block = ring->at[read % RING];
    atomic_store(&ring->read, read + 1);
    return block;
}

static size_t travel_size(struct station *s)
{
    size_t most = random_below(&s->random, 16) == 0 ? 5000 : 240;
    return 1 + random_below(&s->random, most);
}

static struct block send_off(struct station *s, uint64_t number)
{
    struct block b = {.size = travel_size(s), .number = number};
    b.p = number % 3 == 0 ? must_calloc(b.size, 1) : must_malloc(b.size);
    pattern_fill(b.p, b.size, b.number);
    return b;
}

static void expect_handed_over(const struct block *b)
{
    expect_pattern(b->p, b->size, b->number, "when another thread has been given the block");
}

/* The first station makes blocks, and frees what comes back. */
static void make_and_meet(struct station *s)
{
    size_t out = 0;
    for (size_t back = 0; back < s->blocks;) {
        bool waiting = atomic_load(&s->in->written) != atomic_load(&s->in->read);
        bool full = atomic_load(&s->out->written) - atomic_load(&s->out->read) == RING;
        if (waiting || out == s->blocks || full) {
            if (!waiting) {
                sched_yield();
                continue;
            }
            struct block b = ring_take(s->in);
            expect_handed_over(&b);
            subject_free(b.p, b.size);
            back++;
        } else {
            ring_put(s->out, send_off(s, out++));
        }
    }
}

/* Every other station resizes each block, or frees it and sends one of its own on. */
static void change_and_pass(struct station *s)
{
    for (size_t i = 0; i < s->blocks; i++) {
        struct block b = ring_take(s->in);
        expect_handed_over(&b);
        if (random_below(&s->random, 2) == 0) {
            size_t size = travel_size(s);
            b.p = must_realloc(b.p, size);
            expect_pattern(b.p, MIN(b.size, size), b.number,
                           "after realloc from %zu to %zu in another thread", b.size, size);
            b.size = size;
            pattern_fill(b.p, b.size, b.number);
        } else {
            subject_free(b.p, b.size);
            b = send_off(s, ((uint64_t)s->number << 32) + i);
        }
        ring_put(s->out, b);
    }
}

static void stand(void *data)
{
    struct station *s = data;
    perturb_begin(s->number);
    if (s->number == 0)
        make_and_meet(s);
    else
        change_and_pass(s);
    perturb_end();
}

static void hand_round(void)
{
    static struct ring rings[STATIONS];
    struct station stations[STATIONS];
    for (size_t i = 0; i < STATIONS; i++)
        stations[i] = (struct station){.number = i,
                                       .blocks = is_instrumented() ? 300 : 800,
                                       .random = {random_next(rng())},
                                       .in = &rings[i],
                                       .out = &rings[(i + 1) % STATIONS]};
    in_threads(STATIONS, stand, stations, sizeof stations[0]);
}

PROPERTY(threads_hand_over,
    .id     = "threads.hand-over",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "a block can be made in one thread, resized in another and freed in a third, while "
              "all of them go on",
    .source = "NEP 49, High level design: an array keeps its handler; NumPy 1.22 to 2.5: "
              "arrayobject.c array_dealloc, shape.c PyArray_Resize",
    .why    = "a pipeline of threads passes arrays through queues",
    .hint   = "what comes back from another thread goes to its owner under a lock or by an atomic "
              "exchange",
    .looks  = "FAIL: byte 16 of 120 to be 0xe1 as it was written, when another thread has been "
              "given the block; seen 0x33",
    .fixture  = FIXTURE_BARE)
{
    control_run(mix_alone, NULL, "in one thread alone");
    interleave(true, false);
    hand_round();
}

/* ---- in order ---------------------------------------------------------------------------- */

PROPERTY(threads_no_data_race,
    .id     = "threads.no-data-race",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "no two threads use the same memory of the handler's, one of them to write, with "
              "nothing that puts them in order",
    .source = "C17 5.1.2.4 paragraph 35: such a data race has undefined behavior; 7.22.3 paragraph "
              "2; NumPy 1.22 to 2.5: ctors.c array_from_text calls realloc without the GIL while "
              "others hold it",
    .why    = "what seems to do no harm, a counter or a pointer that is set once, is lost or seen "
              "half made once in a million calls, and more often with the next compiler",
    .hint   = "hold one lock for both accesses that are named, or make both atomic: what publishes "
              "something that was made stores with release, and whoever uses it loads with acquire",
    .looks  = "FAIL: no two threads to use the same memory with nothing that puts them in order; "
              "2 data races, one of them: a write of 8 bytes at mine_malloc (mine.c:18), and a read "
              "of 8 bytes at mine_free (mine.c:25)",
    .fixture  = FIXTURE_BARE)
{
    if (!data_races_are_watched())
        skip("only ThreadSanitizer sees data races: compile it with -fsanitize=thread, and say "
             "--tsan");
    mix_at_once(); /* with the first call of all */
    hand_round();
}

/* ---- after the thread -------------------------------------------------------------------- */

/* A thread leaves blocks behind; some of those that it found it has freed. */
static void leave_blocks(void *data)
{
    struct blocks *blocks = data;
    for (size_t i = 0; i < 60; i++) {
        size_t size = i % 20 == 19 ? 20000 : 1 + 8 * i;
        void *p = i % 3 == 0   ? must_calloc(size, 1)
                  : i % 3 == 1 ? must_malloc(size)
                               : must_realloc(must_malloc(1), size);
        blocks_add(blocks, p, size);
        if (i % 4 == 0)
            blocks_free(blocks, blocks->count / 2);
    }
}

/* As the property, by one thread that lives. */
static void leave_blocks_here(void *unused)
{
    struct blocks blocks = {0};
    (void)unused;
    for (size_t i = 0; i < 6; i++) {
        leave_blocks(&blocks);
        blocks_verify(&blocks, "after others came");
    }
    blocks_expect_disjoint(&blocks);
    for (size_t i = 0; i < blocks.count; i++) {
        struct block *b = &blocks.at[i];
        b->p = must_realloc(b->p, b->size + 50);
        expect_pattern(b->p, b->size, b->number, "after realloc from %zu", b->size);
    }
    blocks_verify(&blocks, "after all blocks were resized");
    blocks_free_all(&blocks);
}

PROPERTY(threads_outlives_its_thread,
    .id     = "threads.outlives-its-thread",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "a block stays as it is after the thread that made it has ended, until it is freed",
    .source = "C17 7.22.3 paragraph 1: the lifetime of an allocated object extends until its "
              "deallocation",
    .why    = "what a worker thread computed is used when the worker is gone",
    .hint   = "an arena of a thread's own lives on, or is handed on with its live blocks",
    .looks  = "FAIL: byte 0 of 9 to be 0x2c as it was written, after the thread that made it "
              "ended and others came; seen 0x00",
    .fixture  = FIXTURE_BARE)
{
    struct blocks blocks = {0};
    control_run(leave_blocks_here, NULL, "in one thread alone");
    for (size_t i = 0; i < 6; i++) {
        in_threads(1, leave_blocks, &blocks, sizeof blocks);
        blocks_verify(&blocks, "after the thread that made it ended and others came");
    }
    blocks_expect_disjoint(&blocks);
    for (size_t i = 0; i < blocks.count; i++) {
        struct block *b = &blocks.at[i];
        b->p = must_realloc(b->p, b->size + 50);
        expect_pattern(b->p, b->size, b->number, "after realloc from %zu when its thread had ended",
                       b->size);
    }
    blocks_verify(&blocks, "after all blocks of ended threads were resized");
    blocks_free_all(&blocks);
}

/* ---- the GIL ----------------------------------------------------------------------------- */

/* Everything that the subject can be asked for, refusals and wrong sizes included; what it returns
 * is for others to judge. */
static void call_all(void *data)
{
    static const size_t sizes[] = {1, 24, 500, 512, 513, 5000, 70000, 300000};
    (void)data;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i];
        void *p = subject_malloc(size), *q = subject_calloc(1, size), *r;
        p = p != NULL && (r = subject_realloc(p, 2 * size)) != NULL ? r : p;
        q = q != NULL && (r = subject_realloc(q, size / 2 + 1)) != NULL ? r : q;
        absurd_begin();
        if (p != NULL && subject_realloc(p, PTRDIFF_MAX) == NULL)
            subject_free(p, 2 * size);
        absurd_end();
        if (q != NULL)
            subject_free(q, 1);
        subject_free(NULL, size);
    }
    absurd_begin();
    subject_malloc(PTRDIFF_MAX);
    subject_calloc(PTRDIFF_MAX, 4);
    absurd_end();
    void *nothing = subject_malloc(0);
    if (nothing != NULL)
        subject_free(nothing, 0);
}

PROPERTY(threads_no_gil_needed,
    .id     = "threads.no-gil-needed",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "none of the four functions needs its caller to hold the GIL, or to be a thread "
              "that Python knows",
    .source = "NumPy 1.22 to 2.5: ctors.c array_from_text calls realloc without the GIL; NEP 49 "
              "and the page on memory management promise the handler no GIL in any function",
    .why    = "PyMem_Malloc without the GIL damages Python's own heap, sooner or later; "
              "PyErr_SetString without it crashes",
    .hint   = "use malloc or PyMem_Raw*, never PyMem_* or PyObject_*; to call Python, take the "
              "GIL by PyGILState_Ensure first",
    .looks  = "FAIL: the handler not to call Python's allocators without the GIL; it called "
              "PyMem_Malloc",
    .fixture  = FIXTURE_PYTHON)
{
    char nothing;
    gil_watch();
    python_release();
    call_all(NULL);                                    /* a thread that has given up the GIL */
    in_threads(1, call_all, &nothing, sizeof nothing); /* and one that never had it */
    python_acquire();
}
