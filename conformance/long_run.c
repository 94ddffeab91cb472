/* SPDX-License-Identifier: BSD-3-Clause
 *
 * realloc, continued: a long run of all four functions, in which thousands of blocks live.
 */
#include "base/clock.h"
#include "base/fill.h"
#include "harness/harness.h"
#include "heap/heap.h"

static const struct fill_rules parts; /* of a block are filled */

enum { LIVE = 10000, CALLS = 120000, LIVE_IF_INSTRUMENTED = 500, CALLS_IF_INSTRUMENTED = 5000 };

struct run {
    struct block at[LIVE];
    size_t count; /* of those, how many are to live */
    size_t live, bytes;
    size_t calls;  /* so far */
    uint64_t last; /* number of a pattern */
};

/* Mostly small, as the arrays of a program that keeps ten thousand are. */
static size_t some_size(void)
{
    uint64_t r = random_next(rng());
    size_t most = r % 512 == 0 ? 20000 : r % 32 == 0 ? 2000 : 240;
    return 1 + (size_t)(r >> 16) % most;
}

static _Noreturn void contents_fail(const struct run *run, const struct block *b, size_t at,
                                    const char *when)
{
    fail(fmt("byte %zu of %zu to be 0x%02x as it was written, %s, after %zu calls and among %zu "
             "blocks",
             at, b->size, pattern_byte(b->number, at), when, run->calls, run->live),
         "0x%02x, in the block at %p", b->p[at], (void *)b->p);
}

static void verify(const struct run *run, const struct block *b)
{
    size_t at = fill_check(b->p, b->size, &parts, b->number);
    if (at != b->size)
        contents_fail(run, b, at, "while others came and went");
}

/* It is a block, and aligned. */
static void expect_block(const struct run *run, const void *p, size_t size, const char *call)
{
    size_t alignment = required_alignment(size);
    if (p == NULL && !heap_may_refuse(size, run->bytes, run->live))
        fail(fmt("%s of %zu bytes to return a block: %zu others are live", call, size, run->live),
             "NULL, after %zu calls", run->calls);
    if (p == NULL)
        skip("it refuses %zu bytes while %zu blocks of %zu bytes live", size, run->live,
             run->bytes);
    if ((uintptr_t)p % alignment != 0)
        fail(fmt("%s of %zu bytes to be aligned to %zu, after %zu calls and among %zu blocks", call,
                 size, alignment, run->calls, run->live),
             "%p, which is aligned to %zu", p, alignment_of(p));
}

/* It takes the place of what b was, and is filled from here on. */
static void keep(struct run *run, struct block *b, void *p, size_t size, const char *call)
{
    run->calls++;
    expect_block(run, p, size, call);
    run->live += b->p == NULL;
    run->bytes += size - b->size;
    *b = (struct block){p, size, ++run->last};
    fill_write(p, size, &parts, b->number);
}

static void make(struct run *run, struct block *b)
{
    size_t size = some_size(), way = run->calls % 8;
    *b = (struct block){NULL, 0, 0};
    if (way < 5) {
        keep(run, b, subject_malloc(size), size, "malloc");
    } else if (way == 5) {
        keep(run, b, subject_realloc(NULL, size), size, "realloc of NULL");
    } else {
        void *p = subject_calloc(size, 1);
        size_t at = p != NULL ? fill_check_zero(p, size, &parts, 1) : size;
        if (at != size) {
            suspect_not_zero(size, 1);
            fail(fmt("byte %zu of %zu to be 0, after calloc(%zu, 1), %zu calls and among %zu "
                     "blocks",
                     at, size, size, run->calls, run->live),
                 "0x%02x", ((const unsigned char *)p)[at]);
        }
        keep(run, b, p, size, "calloc");
    }
}

static void drop(struct run *run, struct block *b)
{
    verify(run, b);
    subject_free(b->p, b->size);
    run->live--;
    run->bytes -= b->size;
    run->calls++;
}

static void resize_to(struct run *run, struct block *b, size_t size)
{
    size_t kept = MIN(b->size, size);
    verify(run, b);
    if (!fill_is_whole(b->size, &parts))
        fill_last(b->p, kept, b->number);
    unsigned char *p = subject_realloc(b->p, size);
    const struct block moved = {p != NULL ? p : b->p, b->size, b->number};
    size_t at = fill_check_kept(moved.p, kept, (uintptr_t)b->p, b->size, &parts, b->number);
    if (at != kept)
        contents_fail(run, &moved, at, fmt("after realloc from %zu to %zu", b->size, size));
    keep(run, b, p, size, "realloc");
}

/* Blocks come and go while few are alive, so that all counters get on.  It is worth a moment: a
 * slow handler has calls enough with what follows. */
static void wear(struct run *run, size_t pairs)
{
    enum { RING = 64 };
    static const double a_moment = 0.2;
    struct block ring[RING] = {0};
    uint64_t begun = clock_now();
    for (size_t i = 0; i < pairs && (i % 64 != 0 || clock_since(begun) < a_moment); i++) {
        struct block *b = &ring[i % RING];
        subject_free(b->p, b->size);
        *b = (struct block){NULL, 1 + i * 7 % 200, 0};
        b->p = i % 8 == 7 ? subject_calloc(b->size, 1) : subject_malloc(b->size);
        expect_block(run, b->p, b->size, i % 8 == 7 ? "calloc" : "malloc");
        run->calls += 2;
    }
    for (size_t i = 0; i < RING; i++)
        subject_free(ring[i].p, ring[i].size);
}

/* Blocks that live long, while more than 2^20 are made and freed: what is noted for each under a
 * number of its own must not be somebody else's by then. */
static void outlive_a_million(struct run *run)
{
    enum { OLD = 6, PAIRS = 1100000, SMALL = 64 };
    static const size_t sizes[OLD] = {40, 200, 3000, 48, 150, 5000};
    struct block old[OLD] = {{0}};
    for (size_t i = 0; i < OLD; i++)
        keep(run, &old[i], i % 2 == 0 ? subject_malloc(sizes[i]) : subject_realloc(NULL, sizes[i]),
             sizes[i], i % 2 == 0 ? "malloc" : "realloc of NULL");
    run->calls += 2 * subject_malloc_and_free(SMALL, is_instrumented() ? 1000 : PAIRS);
    for (size_t i = 0; i < OLD; i++) {
        struct block *b = &old[i];
        resize_to(run, b, 2 * b->size);
        drop(run, b);
    }
}

/* The bytes that were asked for come to more than 2 GiB, and to less than 4.  Blocks that nobody
 * writes to do that at no cost. */
static void ask_for_gigabytes(struct run *run)
{
    enum { COUNT = 5, SIZE = 512 << 20 };
    if (is_instrumented() || subject_fills_blocks())
        return;
    for (size_t i = 0; i < COUNT; i++, run->calls += 2) {
        void *p = subject_malloc(SIZE);
        give_back(p, SIZE);
    }
}

/* More than 2^18 blocks live.  What is known of the first and the last of them is seen by realloc.
 */
static void crowd(struct run *run)
{
    enum { CROWD = 300000, SIZE = 24, SOME = 64, EACH = 5000 };
    size_t wanted = is_instrumented() ? SOME : CROWD;
    void **blocks = malloc(wanted * sizeof *blocks);
    if (blocks == NULL)
        harness_broke("out of memory for the list of blocks");
    size_t made = subject_malloc_many(blocks, wanted, SIZE), live = run->live;
    for (size_t i = 0; i < made; i += i < SOME || i + SOME >= made ? 1 : EACH) {
        struct block b = {blocks[i], SIZE, ++run->last};
        fill_write(b.p, SIZE, &parts, b.number);
        run->live = live + made;
        resize_to(run, &b, 5 * SIZE);
        verify(run, &b);
        subject_free(b.p, b.size);
        blocks[i] = NULL;
    }
    run->live = live;
    subject_free_many(blocks, made, SIZE);
    run->calls += 2 * made;
    free(blocks);
}

/* A handler may spend pages on each small block, or come to do so. */
static void watch_memory(const struct run *run, size_t resident)
{
    enum { LITTLE = 64 << 20, MUCH = 512 << 20 };
    size_t now = resident_bytes(), grown = now > resident ? now - resident : 0;
    if (grown <= LITTLE / 2)
        return;
    if (grown > MUCH || lacking_memory(grown * run->count / (run->live + 1)) != NULL)
        skip("%zu small blocks take %zu MiB of memory, which is too much; they are whole so far",
             run->live, grown >> 20);
}

PROPERTY(realloc_long_run,
    .id     = "realloc.long-run", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_AT_LENGTH, RANK_AT_LENGTH, 21}, .slow_ms = 185, .fixture = FIXTURE_BARE,
    .title  = "a million calls keep all blocks intact",
    .clause = "After a million calls every block is aligned and keeps its contents.",
    .tests  = "Up to 300,000 blocks are live at a time.",
    .source = "C17 7.22.3 paragraph 1, 7.22.3.5 paragraph 2, 6.2.4 paragraph 2",
    .why    = "In programs that run for hours, tables fill up and counters wrap.",
    .hint   = "Check the size of tables, the width of counters, and the paths taken if memory is "
              "short.",
    .looks  = "expected byte 16 of 203 to be 0x4c as it was written, after 48213 calls; seen 0x00")
{
    enum { FIRST = LIVE_IF_INSTRUMENTED / 2, PAIRS = 20000, ENOUGH = 100000 };
    static const double long_time = 2;
    size_t calls = is_instrumented() ? CALLS_IF_INSTRUMENTED : CALLS, resident = resident_bytes();
    uint64_t begun = clock_now();
    struct run *run = calloc(1, sizeof *run);
    if (run == NULL)
        harness_broke("out of memory for the list of blocks");
    run->count = is_instrumented() ? LIVE_IF_INSTRUMENTED : LIVE;
    outlive_a_million(run);
    ask_for_gigabytes(run);
    crowd(run);
    size_t before = run->calls;
    wear(run, is_instrumented() ? LIVE_IF_INSTRUMENTED : PAIRS);
    calls += run->calls;
    size_t enough = before + ENOUGH;
    for (size_t i = 0; i < run->count; i++) {
        make(run, &run->at[i]);
        if (i % 4096 == FIRST)
            watch_memory(run, resident);
    }
    for (size_t i = 0; run->calls < calls; i++) {
        bool is_enough = run->calls >= enough && clock_since(begun) > long_time;
        if (i % 64 == 0 && (is_enough || time_is_up()))
            break;
        if (i % 4096 == 0)
            watch_memory(run, resident);
        struct block *b = &run->at[random_below(rng(), run->count)];
        if (random_next(rng()) % 2 == 0) {
            resize_to(run, b, some_size());
        } else {
            drop(run, b);
            make(run, b);
        }
    }
    if (run->calls < MIN(calls, enough))
        mark_incomplete("half of its %g s were over after %zu calls; give it more by --timeout",
                        time_limit(), run->calls);
    for (size_t i = 0; i < run->count; i++)
        drop(run, &run->at[i]);
    free(run);
}
