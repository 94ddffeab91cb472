/* SPDX-License-Identifier: BSD-3-Clause
 *
 * threads: calls at once, and blocks from hand to hand.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "harness/data_races.h"
#include "harness/harness.h"
#include "harness/interleave.h"
#include "harness/threads.h"
#include "ordinary_use.h"

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
    size_t at = random_below(&m->random, 64);
    return at == 63 ? 40000 : sizes[at % LENGTH(sizes)];
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

static void take_steps(struct mixer *m, size_t round)
{
    for (size_t step = 0; step < STEPS; step++) {
        if (round % 2 == 0)
            storm_slots(m);
        else
            mix_slots(m);
    }
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
        take_steps(m, round);
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
    for (size_t round = 0; round < ROUNDS; round++)
        take_steps(&m, round);
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
    .id     = "threads.concurrent", .level = MUST, .basis = BASIS_CALLER, .slow_ms = 101,
    .fixture = FIXTURE_BARE,
    .clause = "threads can call the four functions at once, without the GIL, during signals",
    .source = "NumPy 1.22 to 2.5: array_from_text without the GIL; free-threaded CPython, all four",
    .why    = "two threads would get one block, and each overwrite the other's array",
    .hint   = "lock every list, table and counter that threads share, in all four functions; "
              "retry sem_wait and futex on EINTR; addr2line -e names the line",
    .looks  = "FAIL: byte 0 of 40 to be 0x6e, after calls of another thread; seen 0x22")
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
    .id     = "threads.hand-over", .level = MUST, .basis = BASIS_CALLER, .slow_ms = 137,
    .fixture = FIXTURE_BARE,
    .clause = "a block can be made in one thread, resized in another and freed in a third",
    .source = "NEP 49, High level design; NumPy 1.22 to 2.5: array_dealloc, PyArray_Resize",
    .why    = "a pipeline of threads passes arrays through queues",
    .hint   = "return a block to its owner under a lock or by an atomic exchange",
    .looks  = "FAIL: byte 16 of 120 to be 0xe1, when another thread has been given it; seen 0x33")
{
    control_run(mix_alone, NULL, "in one thread alone");
    interleave(true, false);
    hand_round();
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
    .clause = "no two threads access the same memory unordered, one of them to write",
    .source = "C17 5.1.2.4 paragraph 35: a data race has undefined behavior; 7.22.3 paragraph 2",
    .why    = "a lost update or half-made pointer shows once in a million calls",
    .hint   = "hold one lock for both accesses, or make both atomic: release and acquire",
    .looks  = "FAIL: no two threads to use the same memory unordered; 2 data races")
{
    if (!data_races_are_watched())
        skip("only ThreadSanitizer sees data races: compile it with -fsanitize=thread, and say "
             "--tsan");
    use_first();
    for (int round = 0; round < 3; round++) {
        mix_at_once();
        hand_round();
    }
}
