/* SPDX-License-Identifier: BSD-3-Clause
 *
 * malloc where memory ends: what it refuses, what works then, and for how long.
 */
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "block_checks.h"
#include "scenarios.h"

/* ---- the largest ----------------------------------------------------------------------------- */

static void expect_refused(size_t size, const char *size_in_words)
{
    void *p = subject_malloc(size);
    expect(p == NULL, fmt("malloc(%s) to return NULL", size_in_words), "%p", p);
}

PROPERTY(malloc_too_large,
    .id     = "malloc.too-large", .level = MUST, .basis = BASIS_C, .rule = HEAP_TOO_LARGE,
    .answers_for = ABOUT(MALLOC_TOO_LARGE), .quick = true,
    .clause = "malloc returns NULL and changes nothing for a size above PTRDIFF_MAX, even right "
              "after a small block was freed",
    .source = "C17 7.22.3.4 paragraph 3; 6.5.6 paragraph 9, as PTRDIFF_MAX bounds an object",
    .why    = "a size that wraps becomes a small block, and NumPy writes past it",
    .hint   = "check that size plus header, rounding and room to grow does not wrap",
    .looks  = "malloc(SIZE_MAX - 15) to return NULL: 0x55d0c8")
{
    static const size_t beyond[] = {
        1, 2, 16, 17, 4096, 4097, POWER_OF_2(SIZE_BITS / 2), POWER_OF_2(SIZE_BITS - 2)};
    struct blocks company = {0};
    blocks_add_neighbours(&company, 60);
    for (size_t size = 8; size <= 2048; size += 8) /* what keeps freed blocks has some of each */
        subject_free(must_malloc(size), size);
    absurd_begin();
    for (size_t k = 0; k <= 8192; k += is_instrumented() ? 61 : 1) {
        size_t small = 8 + k % 300;
        subject_free(must_malloc(small), small);
        expect_refused(SIZE_MAX - k, k == 0 ? "SIZE_MAX" : fmt("SIZE_MAX - %zu", k));
        if (k % 512 == 0)
            blocks_verify(&company, "after malloc(SIZE_MAX - %zu)", k);
    }
    for (size_t i = 0; i < LENGTH(beyond); i++) {
        subject_free(must_malloc(100), 100);
        expect_refused(PTRDIFF_MAX + beyond[i], fmt("PTRDIFF_MAX + %zu", beyond[i]));
    }
    for_each_wrapping_size (size) {
        subject_free(must_malloc(100), 100);
        expect_refused(size, fmt("%zu", size));
    }
    absurd_end();
    blocks_verify(&company, "after sizes that no block can have");
    blocks_free_all(&company);
}

enum { PROBE = 32 << 20 };

static size_t most_resident(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * 1024;
}

/* Frees blocks that hardly a byte was written into, the first one as a probe: a handler that wipes
 * what it takes back would touch all of the others. */
static void free_untouched(struct blocks *blocks)
{
    size_t before = most_resident();
    blocks_free(blocks, 0);
    if (most_resident() - before < PROBE / 2)
        blocks_free_all(blocks);
}

PROPERTY(malloc_past_4gib,
    .id     = "malloc.past-4gib", .level = MUST, .basis = BASIS_C, .ends_process = true,
    .clause = "a size from 2 GiB on is not cut to 32 bits: malloc returns NULL or a block with a "
              "writable last byte",
    .source = "C17 7.22.3.4; NEP 49: the size is a size_t",
    .why    = "np.empty((1 << 32) + 16, 'u1') would be an array over 16 bytes",
    .hint   = "keep sizes in size_t all the way, in headers and in tables too",
    .looks  = "CRASH: SIGSEGV, while writing the last byte of malloc(4294967312)")
{
    static const size_t sizes[] = {POWER_OF_2(32) + 16, POWER_OF_2(31),       POWER_OF_2(31) + 1,
                                   POWER_OF_2(32),      POWER_OF_2(32) + 1,   POWER_OF_2(32) + 4096,
                                   POWER_OF_2(33) + 24, POWER_OF_2(35) + 1000};
    if (SIZE_BITS < 33)
        skip("a size_t has %d bits", SIZE_BITS);
    struct blocks company = {0}, held = {0}; /* nothing is freed, so that nothing is recycled */
    blocks_add_neighbours(&company, 60);     /* before there is much that a quota may be for */
    size_t before = most_resident();
    blocks_add_unwritten(&held, must_malloc(PROBE), PROBE);
    bool fills = most_resident() - before > PROBE / 2;
    if (fills) /* a sound one then refuses, and does not take all the memory there is */
        limit_mapped_bytes((size_t)1 << 30);
    if (is_instrumented())
        ask_for_memory((size_t)1 << 30); /* of which memcheck and ASan keep track */
    for (size_t i = 0; i < (is_instrumented() ? 1 : LENGTH(sizes)); i++) {
        unsigned char *p = subject_malloc(sizes[i]);
        if (p == NULL)
            continue;
        step("writing the last byte of malloc(%zu)", sizes[i]);
        p[0] = 1;
        p[sizes[i] - 1] = 2;
        step("writing within malloc(%zu)", sizes[i]);
        p[sizes[i] / 2] = 3;
        p[sizes[i] - ((size_t)1 << 30)] = 4;
        expect(p[0] == 1 && p[sizes[i] - 1] == 2, fmt("malloc(%zu) to keep its ends", sizes[i]),
               "%d and %d instead of 1 and 2", p[0], p[sizes[i] - 1]);
        blocks_verify(&company, "after malloc(%zu)", sizes[i]);
        blocks_add_unwritten(&held, p, sizes[i]);
    }
    if (fills)
        lift_limit();
    else
        free_untouched(&held);
    blocks_free_all(&company);
}

/* ---- running out ----------------------------------------------------------------------------- */

/* A reserve that libc has mapped before, 64 MiB for each thread's arena, is not limited: so much
 * has to be taken before the limit is known not to be felt. */
enum { LITTLE_ROOM = 16 << 20, MOST_BYTES = 160 << 20, MOST_HOARDED = 20000, PAGE = 4096 };

static const size_t hoarded_sizes[] = {1 << 20, 150000, 16384, 4000, 500, 48, 8};
enum { HOARDED_SIZES = LENGTH(hoarded_sizes) };

/* What was taken until nothing was left. */
struct hoard {
    struct blocks blocks;
    bool had[HOARDED_SIZES]; /* sizes of which there is one */
    bool refused;            /* each size, in the end; else the limit is not felt */
    void *strange;           /* what was returned that is neither a block nor NULL */
    size_t strange_size;
};

/* The list has its room before: under the limit it could not grow. */
static void hoard_begin(struct hoard *hoard)
{
    *hoard = (struct hoard){.blocks.room = MOST_HOARDED};
    hoard->blocks.at = calloc(MOST_HOARDED, sizeof *hoard->blocks.at);
    if (hoard->blocks.at == NULL)
        harness_broke("out of memory for the list of blocks");
}

/* False where malloc refuses.  Of large blocks only the ends are written. */
static bool hoard_one(struct hoard *hoard, size_t size)
{
    struct blocks *blocks = &hoard->blocks;
    struct block b = {subject_malloc(size), size, blocks->count};
    if (b.p != NULL && (uintptr_t)b.p < 65536) {
        hoard->strange = b.p;
        hoard->strange_size = size;
    }
    if (b.p == NULL || hoard->strange != NULL)
        return false;
    step("writing what malloc(%zu) gave near the limit", size);
    if (size <= PAGE)
        pattern_fill(b.p, size, b.number);
    else
        fill_ends(&b);
    blocks->at[blocks->count++] = b;
    blocks->bytes += size;
    return true;
}

/* Takes blocks of each size until it is refused, the small ones last. */
static void hoard_all(struct hoard *hoard)
{
    const struct blocks *blocks = &hoard->blocks;
    hoard->refused = true;
    for (size_t i = 0; i < HOARDED_SIZES && hoard->refused; i++) {
        while (hoard->refused && hoard_one(hoard, hoarded_sizes[i])) {
            hoard->had[i] = true;
            hoard->refused = blocks->count < blocks->room && blocks->bytes < MOST_BYTES;
        }
    }
}

static void expect_hoard_intact(const struct blocks *blocks)
{
    for (size_t i = 0; i < blocks->count; i++) {
        const struct block *b = &blocks->at[i];
        if (b->size <= PAGE)
            expect_pattern(b->p, b->size, b->number, "after malloc had nothing left");
        else
            expect_ends(b, fmt("after malloc(%zu)", b->size));
    }
    blocks_expect_disjoint(blocks);
}

PROPERTY(malloc_failure_is_null,
    .id     = "malloc.failure-is-null", .level = MUST, .basis = BASIS_C, .quick = true,
    .clause = "without address space malloc returns NULL, nothing else, and does not end the "
              "process; live blocks stay good",
    .source = "C17 7.22.3.4 paragraph 3",
    .why    = "NumPy turns NULL, and nothing else, into MemoryError, which programs survive",
    .hint   = "check what malloc or mmap beneath returned before adding a header to it",
    .looks  = "malloc(48) to return a block or NULL: 0x10")
{
    struct hoard hoard;
    hoard_begin(&hoard);
    limit_mapped_bytes(LITTLE_ROOM);
    hoard_all(&hoard);
    lift_limit();
    expect(hoard.strange == NULL, fmt("malloc(%zu) to return a block or NULL", hoard.strange_size),
           "%p", hoard.strange);
    expect_hoard_intact(&hoard.blocks);
    size_t held = hoard.blocks.bytes >> 20;
    blocks_free_all(&hoard.blocks);
    if (!hoard.refused)
        skip("a limit on the address space does not stop it: it gave %zu MiB where %d were left",
             held, LITTLE_ROOM >> 20);
}

/* All four functions, on this thread. */
static void all_four_work(const char *after)
{
    step("using it after %s", after);
    for (size_t size = 24; size <= 24000; size *= 10) {
        unsigned char *p = must_malloc(size), *q = must_calloc(size, 2);
        p = must_realloc(p, 3 * size);
        memset(p, 1, 3 * size);
        memset(q, 2, 2 * size);
        subject_free(q, 2 * size);
        subject_free(p, 3 * size);
    }
}

static void all_four_work_there(void *after)
{
    all_four_work(after);
}

/* Here and on another thread, which would wait for a lock that is still held. */
static void works_after(const char *what)
{
    all_four_work(what);
    in_threads(1, all_four_work_there, (void *)what, 0);
}

/* What a quarantine keeps of freed blocks, at most, under a limit that is not to end it. */
enum { QUARANTINE = 256 << 20 };

/* One block of that size.  A handler that frees later, on a thread of its own, is given time. */
static void *get_again(size_t size)
{
    void *p = NULL;
    for (int waits = 0; p == NULL && waits < 200; waits++) {
        p = subject_malloc(size);
        if (p == NULL)
            nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return p;
}

/* One block of each size again: of what was freed, or where that is kept in quarantine, of what
 * there is besides. */
static void expect_sizes_again(const bool had[HOARDED_SIZES])
{
    bool has_more = false;
    for (size_t i = 0; i < HOARDED_SIZES; i++) {
        void *p = had[i] ? get_again(hoarded_sizes[i]) : NULL;
        if (had[i] && p == NULL && !has_more) {
            lift_limit();
            limit_mapped_bytes(QUARANTINE);
            has_more = true;
            p = get_again(hoarded_sizes[i]);
        }
        expect(p != NULL || !had[i],
               fmt("malloc(%zu) to return a block: all of that size were freed, and %d MiB can be "
                   "had besides",
                   hoarded_sizes[i], QUARANTINE >> 20),
               "NULL");
        give_back(p, hoarded_sizes[i]);
    }
}

static void recover_from_the_limit(void)
{
    struct hoard hoard;
    hoard_begin(&hoard);
    limit_mapped_bytes(LITTLE_ROOM);
    hoard_all(&hoard);
    blocks_free_all(&hoard.blocks);
    step("using it after it had nothing left and all was freed");
    expect_sizes_again(hoard.had);
    lift_limit();
}

/* A call that fails: of malloc, or of calloc where `count` is not 0. */
static void refuse(size_t size, size_t count)
{
    absurd_begin();
    if (count == 0)
        (void)subject_malloc(size);
    else
        (void)subject_calloc(size, count);
    absurd_end();
}

enum { SMALL = 100 };

/* Requests for `size` bytes, again and again, where there is no room for them: of realloc for the
 * block of SMALL bytes at `*p`.  Ends where there is room after all: calloc comes last, as it may
 * write to what it has. */
static bool all_are_refused(void **p, size_t size)
{
    enum { TIMES = 64 };
    for (int i = 0; i < TIMES && !time_is_up(); i++) {
        void *moved = NULL, *other = subject_malloc(size);
        if (other == NULL)
            moved = subject_realloc(*p, size);
        if (other == NULL && moved == NULL)
            other = subject_calloc(size, 1);
        if (moved != NULL)
            *p = subject_realloc(moved, SMALL);
        give_back(other, size);
        if (moved != NULL || other != NULL)
            return false;
    }
    return true;
}

/* Whoever counts what is asked for, and not what is had, has counted 192 GiB.  All that is live is
 * from before the limit: under it, a first block of a size may be one too many. */
static void expect_refusals_cost_nothing(void)
{
    static const size_t large = 4 * (size_t)LITTLE_ROOM, more = large + PAGE;
    void *small = must_malloc(SMALL), *p = subject_malloc(more);
    bool refused = p != NULL; /* else it may have less, and asks nobody for it */
    if (p != NULL) {
        subject_free(p, more);
        limit_mapped_bytes(LITTLE_ROOM);
        refused = all_are_refused(&small, (size_t)1 << 30) && all_are_refused(&small, large);
        lift_limit();
    }
    p = refused ? subject_malloc(more) : NULL;
    expect(p != NULL || !refused,
           fmt("malloc(%zu) to return a block, as before: what was asked for meanwhile was refused",
               more),
           "NULL");
    give_back(p, more);
    give_back(small, SMALL);
}

PROPERTY(malloc_recovers,
    .id     = "malloc.recovers", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_ONE_FUNCTION, RANK_IN_USE, 23},
    .clause = "after a failed call, once blocks are freed, all functions work on every thread; "
              "with a quarantine, given 256 MiB more",
    .source = "C17 7.22.3: a call that fails has no other effect; 7.1.4 paragraph 5, on threads",
    .why    = "a program that catches MemoryError and tries with less would hang or fail again",
    .hint   = "unlock on the way out of every failure, and remember none of them",
    .looks  = "TIMEOUT: no end after 10 s, inside malloc(24)")
{
    if (!is_instrumented()) { /* memcheck and ASan do not work under a limit */
        recover_from_the_limit();
        works_after("it had nothing left");
        expect_refusals_cost_nothing();
    }
    void *p = must_malloc(100);
    refuse(SIZE_MAX - 100, 0);
    all_four_work("malloc(SIZE_MAX - 100)");
    refuse(PTRDIFF_MAX - 4096, 0);
    works_after("malloc(PTRDIFF_MAX - 4096)");
    refuse(SIZE_MAX / 2, 3);
    all_four_work("calloc(SIZE_MAX / 2, 3)");
    refuse(PTRDIFF_MAX - 4096, 1);
    works_after("calloc(PTRDIFF_MAX - 4096, 1)");
    absurd_begin();
    void *moved = subject_realloc(p, PTRDIFF_MAX - 4096);
    absurd_end();
    works_after("realloc(p, PTRDIFF_MAX - 4096)");
    if (moved == NULL) /* realloc.failure-keeps-block tests anything else */
        subject_free(p, 100);
}

PROPERTY(malloc_lasts,
    .id     = "malloc.lasts", .level = MUST, .basis = BASIS_C, .rule = HEAP_LASTS,
    .rank = {RANK_AT_LENGTH, RANK_AT_LENGTH, 22},
    .answers_for = ABOUT(LITTLE_MALLOC) | ABOUT(LITTLE_CALLOC) | ABOUT(LITTLE_REALLOC) |
                   ABOUT(MALLOC_ONE),
    .scenarios = true, .slow_ms = 63,
    .clause = "65,536 blocks can be made and freed in turn without a refusal, also blocks of 1 byte",
    .source = "C17 7.22.3.3 paragraph 2: free makes the space available for further allocation",
    .why    = "a program that runs for hours makes and drops that many temporaries",
    .hint   = "look for tables, serial numbers and free lists that lose an entry now and then",
    .looks  = "malloc(96) to return a block: 7 others are live: NULL, when 65535 had been made")
{
    const struct scenario_limits any = {.most_size = 8192, .most_bytes = 16 << 20};
    const struct scenario_limits many = {.most_size = 2048,
                                         .most_bytes = 1 << 20,
                                         .level = {[FACTOR_SIZE] = FROM_TO(SIZE_17, SIZE_129),
                                                   [FACTOR_MADE_BY] = FROM_TO(BY_MALLOC, BY_MALLOC),
                                                   [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 2),
                                                   [FACTOR_REPETITION] = FROM_TO(6, 6)}};
    check_scenarios(20000, &any);
    check_scenarios(ONE_ROW, &many);
}
