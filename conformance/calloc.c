/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calloc: what it hands out.
 */
#include <sys/mman.h>

#include "base/sanitizer_detect.h"
#include "block_checks.h"
#include "scenarios.h"

GROUP(calloc, 3,
      "What calloc hands out: zeroed, of the right size, and refused where the product wraps.",
      .rank = {RANK_ONE_FUNCTION, RANK_IN_USE, 35}, .function = STEP_CALLOC);

/* Two arguments whose product is the size: NumPy gives (n, 1), and the contract knows others. */
static void split(size_t size, size_t *nelem, size_t *elsize)
{
    size_t divisor = size % 8 == 0 ? 8 : size % 3 == 0 ? 3 : size % 4 == 1 ? size : 1;
    *nelem = size / divisor;
    *elsize = divisor;
}

static void *ask_calloc(size_t size)
{
    size_t nelem, elsize;
    split(size, &nelem, &elsize);
    return subject_calloc(nelem, elsize);
}

static void *calloc_or_else(size_t size)
{
    size_t nelem, elsize;
    split(size, &nelem, &elsize);
    return must_calloc(nelem, elsize);
}

static const char *calloc_in_words(size_t size)
{
    size_t nelem, elsize;
    split(size, &nelem, &elsize);
    return fmt("calloc(%zu, %zu)", nelem, elsize);
}

static const struct maker by_calloc = {ask_calloc, calloc_or_else, calloc_in_words};

/* ---- zero ------------------------------------------------------------------------------------ */

/* Where there is no room for the stack of a thread, which might have helped. */
static void reuse_without_room(size_t size)
{
    enum { ROOM = 64 << 10, END = 100 };
    const size_t places[] = {0, size / 3, size / 2, size - END};
    unsigned char *p = subject_malloc(size);
    for (size_t i = 0; p != NULL && i < LENGTH(places); i++)
        memset(p + places[i], 0xff, END);
    if (p == NULL)
        return;
    subject_free(p, size);
    limit_mapped_bytes(ROOM);
    p = ask_calloc(size);
    lift_limit();
    for (size_t i = 0; p != NULL && i < LENGTH(places); i++)
        expect_zero(p + places[i], END,
                    "from byte %zu of %zu on, in what %s gave, after such a block was freed and "
                    "with no room for a thread",
                    places[i], size, calloc_in_words(size));
    give_back(p, size);
}

static void reuse_without_threads(void)
{
    static const size_t sizes[] = {200000, 3 << 20, 20 << 20};
    if (is_instrumented())
        return;
    for (size_t i = 0; i < LENGTH(sizes); i++)
        reuse_without_room(sizes[i]);
}

PROPERTY(calloc_zeroed,
    .id     = "calloc.zeroed", .level = MUST, .basis = BASIS_C, .rule = HEAP_ZEROED,
    .rank = {RANK_FRESH, RANK_RESIZED, 20}, .answers_for = ABOUT(CALLOC_NOT_ZERO),
    .answers_next_for = ABOUT(LITTLE_CALLOC), .scenarios = true, .quick = true, .slow_ms = 60,
    .clause = "every byte that calloc returns is zero, also in memory that was used before",
    .source = "C17 7.22.3.2 paragraph 2; NEP 49, the calloc function",
    .why    = "np.zeros writes no zeros itself; np.empty of objects reads the elements as pointers",
    .hint   = "zero all of nelem * elsize bytes, of reused memory too; madvise keeps locked pages",
    .looks  = "byte 8 of 13 to be 0, after calloc(13, 1): 0xa5")
{
    const struct level_range by_any_calloc = FROM_TO(BY_CALLOC_N_1, BY_CALLOC_N_K);
    const struct scenario_limits any = {
        .most_size = 1 << 20, .most_bytes = 64 << 20, .level[FACTOR_MADE_BY] = by_any_calloc};
    const struct scenario_limits many = {.most_size = 1024,
                                         .most_bytes = 1 << 20,
                                         .level = {[FACTOR_SIZE] = FROM_TO(SIZE_17, SIZE_129),
                                                   [FACTOR_MADE_BY] = by_any_calloc,
                                                   [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 2),
                                                   [FACTOR_REPETITION] = FROM_TO(6, 6)}};
    const struct scenario_limits locked = {
        .least_size = 512 << 10,
        .most_size = 4 << 20,
        .most_bytes = 64 << 20,
        .level = {[FACTOR_MADE_BY] = by_any_calloc,
                  [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 1),
                  [FACTOR_SIZES] = FROM_TO(ONE_SIZE, ONE_SIZE),
                  [FACTOR_REPETITION] = FROM_TO(1, 1),
                  [FACTOR_PRESSURE] = FROM_TO(PAGES_LOCKED, PAGES_LOCKED)}};
    check_scenarios(ONE_ROW, &many);
    reuse_without_threads(); /* before there is one, whose stack libc would keep */
    check_scenarios_in_thread(20000, &any);
    check_scenarios(60000, &any);
    check_scenarios(30000, &locked);
    check_edges_zero(&by_calloc, 65536);
    check_large_zero(&by_calloc);
    check_edges_zero_when_reused(&by_calloc);
    check_large_zero_when_reused(&by_calloc);
    check_huge_zero_when_reused(&by_calloc);
}

/* ---- the two arguments ----------------------------------------------------------------------- */

/* Blocks side by side, of which each would reach into another were it too short. */
static void expect_product(size_t nelem, size_t elsize)
{
    enum { MOST = 8 };
    struct block at[MOST];
    struct blocks blocks = {.at = at, .room = MOST};
    size_t size = nelem * elsize, count = size > 50000 ? 3 : MOST;
    for (; blocks.count < count; blocks.count++) {
        void *p = must_calloc(nelem, elsize);
        at[blocks.count] = (struct block){p, size, nelem + blocks.count};
    }
    step("looking at what calloc(%zu, %zu) gave", nelem, elsize);
    blocks_expect_disjoint(&blocks);
    for (size_t i = 0; i < count; i++)
        pattern_fill(at[i].p, size, at[i].number);
    blocks_verify(&blocks, "in a block of calloc(%zu, %zu)", nelem, elsize);
    while (blocks.count > 0)
        blocks_free(&blocks, blocks.count - 1);
}

PROPERTY(calloc_product,
    .id     = "calloc.product", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_PLACE, RANK_BESIDE, 11}, .quick = true,
    .clause = "calloc gives nelem times elsize bytes, however the size is shared between the two",
    .source = "C17 7.22.3.2 paragraph 2; NEP 49, the calloc function",
    .why    = "NumPy passes an element size of 1 so far; the contract allows others",
    .hint   = "multiply the two, and mind their order",
    .looks  = "8 live blocks not to overlap: 80 bytes at 0x55d0c8 and 80 bytes at 0x55d0f8")
{
    static const size_t pairs[][2] = {
        {10, 8},   {7, 13},    {2, 2},     {3, 1000},  {97, 89},  {257, 257},
        {31, 641}, {65537, 3}, {5, 65536}, {2, 70001}, {128, 16}, {4099, 17},
    };
    static const size_t alone[] = {2, 24, 100, 997, 4096, 10007, 70001};
    for (size_t i = 0; i < LENGTH(pairs); i++) {
        expect_product(pairs[i][0], pairs[i][1]);
        expect_product(pairs[i][1], pairs[i][0]);
    }
    for (size_t i = 0; i < LENGTH(alone); i++) {
        expect_product(alone[i], 1);
        expect_product(1, alone[i]);
    }
    check_edges_disjoint(&by_calloc);
    check_huge_extent(&by_calloc);
}

/* What nobody can have, right after a small block was freed, which must not come back for it. */
static void expect_no_calloc(size_t nelem, size_t elsize)
{
    size_t small = 8 + (nelem * elsize) % 1024, product;
    bool wraps = __builtin_mul_overflow(nelem, elsize, &product);
    if (!wraps && product < POWER_OF_2(ABSURD_BITS))
        return; /* where a size_t has 32 bits, some that are tried are no more than usual */
    if (!wraps && memcheck_is_running() && product > SIZE_MAX - 4096 && nelem > 1 && elsize > 1)
        return; /* valgrind 3.19 adds to that itself, and ends */
    subject_free(must_malloc(small), small);
    void *p = subject_calloc(nelem, elsize);
    if (p != NULL)
        fail(fmt("calloc(%zu, %zu) to return NULL: %s", nelem, elsize,
                 wraps ? fmt("the product does not fit, and wraps to %zu", product)
                       : "no block can be that large"),
             "%p", p);
}

/* The x for which x * odd is 1 modulo SIZE_MAX + 1, by Newton's iteration. */
static size_t inverse(size_t odd)
{
    size_t x = odd; /* right in the lowest 3 bits, and each step doubles them */
    for (int i = 0; i < 5; i++)
        x *= 2 - odd * x;
    return x;
}

/* Pairs whose product wraps to exactly `small`. */
static void refuse_what_wraps_to(size_t small)
{
    for (unsigned shift = 0; shift < SIZE_BITS - 4; shift += shift < 8 ? 1 : 13) {
        for (size_t i = 1; i <= (is_instrumented() ? 3 : 40); i++) {
            size_t odd = ((size_t)1 << shift) * 2 * i + 1, other = small * inverse(odd), product;
            if (!__builtin_mul_overflow(odd, other, &product))
                continue;
            expect_no_calloc(odd, other);
            expect_no_calloc(other, odd);
        }
    }
}

/* Elements that are padded, to a power of two or to 8 or 16 bytes, make the product larger: it may
 * be looked at before, and wrap after. */
static void refuse_what_padding_wraps(void)
{
    static const size_t sizes[] = {1, 3, 5, 6, 7, 9, 12, 20, 24, 33, 48, 100, 1000, 5000};
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        for (size_t padded = 4; padded <= 1024; padded *= 2) {
            for (size_t k = 0; padded > sizes[i] && k < 100; k = 3 * k + 1)
                expect_no_calloc(SIZE_MAX / padded + 1 + k, sizes[i]);
        }
        for (size_t k = 0; k < 10000; k = 3 * k + 1)
            expect_no_calloc(SIZE_MAX / sizes[i] - k, sizes[i]);
    }
}

PROPERTY(calloc_overflow,
    .id     = "calloc.overflow", .level = MUST, .basis = BASIS_C, .rule = HEAP_OVERFLOW,
    .rank = {RANK_FRESH, RANK_AT_LENGTH, 18}, .answers_for = ABOUT(CALLOC_TOO_LARGE), .quick = true,
    .clause = "calloc returns NULL and changes nothing if the product overflows or is too large",
    .source = "C17 7.22.3.2, 7.22.3 paragraph 1: space for nelem objects or a null pointer",
    .why    = "a product that wraps becomes a small block, and its user writes past it",
    .hint   = "use __builtin_mul_overflow; check that header, padding and rounding do not wrap",
    .looks  = "calloc(9223372036854775809, 2) to return NULL: the product wraps to 2: 0x55d0c8")
{
    static const size_t half = POWER_OF_2(SIZE_BITS / 2), top = POWER_OF_2(SIZE_BITS - 1),
                        root = POWER_OF_2(SIZE_BITS / 4);
    static const size_t pairs[][2] = {
        {SIZE_MAX, 2},
        {top, 2},
        {top + 1, 2},
        {half, half},
        {half + 1, half},
        {half << 1, half},
        {SIZE_MAX, SIZE_MAX},
        {SIZE_MAX / 8 + 2, 8},
        {top / 8 + 1, 16},
        {SIZE_MAX / 3, 4},
        {SIZE_MAX / 12 + 1, 12},
        {half << 8, half >> 4},
        {top, 1},
        {top / 2, 1},
        {top / 2, 2},
        {top - 1, 2},
    };
    static const size_t smalls[] = {1, 8, 16, 24, 64, 100, 1000, 4096};
    struct blocks company = {0};
    blocks_add_neighbours(&company, 60);
    for (size_t size = 8; size <= 2048; size += 8) /* what keeps freed blocks has some of each */
        subject_free(must_malloc(size), size);
    absurd_begin();
    for (size_t i = 0; i < LENGTH(pairs); i++) {
        expect_no_calloc(pairs[i][0], pairs[i][1]);
        expect_no_calloc(pairs[i][1], pairs[i][0]);
    }
    absurd_end();
    /* wraps to a little more than either factor; a handler that falls for it may well touch all */
    if (lacking_memory(5 * (half / 4)) == NULL)
        expect_no_calloc(half - root + 6, half + root - 4);
    for (size_t i = 0; i < LENGTH(smalls); i++) {
        refuse_what_wraps_to(smalls[i]);
        blocks_verify(&company, "after products that wrap to %zu", smalls[i]);
    }
    absurd_begin();
    for (size_t k = 0; k <= 8192; k += k < 130 && !is_instrumented() ? 1 : 61) {
        expect_no_calloc(SIZE_MAX - k, 1);
        expect_no_calloc(1, SIZE_MAX - k);
    }
    for_each_wrapping_size (size) {
        expect_no_calloc(size, 1);
        expect_no_calloc(1, size);
    }
    refuse_what_padding_wraps();
    absurd_end();
    blocks_verify(&company, "after sizes that no block can have");
    blocks_free_all(&company);
}

static void make_and_free_none(void *data)
{
    static const size_t pairs[][2] = {
        {0, 1},
        {1, 0},
        {0, 0},
        {0, 8},
        {8, 0},
        {0, 4096},
        {4096, 0},
        {1000003, 0},
        {0, SIZE_MAX},
        {SIZE_MAX, 0},
        {0, POWER_OF_2(32)},
        {POWER_OF_2(32), 0},
    };
    enum { PAIRS = LENGTH(pairs), LARGE = 2, ROUNDS = 20 };
    const struct blocks *company = data;
    /* a handler may make 4 GiB of them, of which a checker writes down each byte */
    size_t count = is_instrumented() ? PAIRS - LARGE : PAIRS;
    for (int round = 0; round < ROUNDS; round++) {
        void *p[PAIRS] = {NULL};
        for (size_t i = 0; i < count; i++) {
            p[i] = subject_calloc(pairs[i][0], pairs[i][1]);
            blocks_verify(company, "after calloc(%zu, %zu)", pairs[i][0], pairs[i][1]);
        }
        for (size_t i = 0; i < PAIRS; i++) {
            void *next = p[(i * 5 + (size_t)round) % PAIRS];
            give_back(next, 0);
        }
        blocks_verify(company, "after such blocks were freed");
    }
}

PROPERTY(calloc_zero_arguments,
    .id     = "calloc.zero-arguments", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_BY_ITSELF, RANK_AT_LENGTH, 7}, .answers_for = ABOUT(CALLOC_ZERO),
    .ends_process = true, .quick = true,
    .clause = "calloc(0, n) and calloc(n, 0) return NULL or a pointer that free accepts",
    .source = "C17 7.22.3 paragraph 1",
    .why    = "the contract lets NumPy ask for no elements, or for elements of no size",
    .hint   = "add the header to the product, not to a factor; check an argument before you divide",
    .looks  = "CRASH: SIGFPE, inside calloc(1, 0)")
{
    struct blocks company = {0};
    blocks_add_neighbours(&company, 40);
    make_and_free_none(&company);
    in_threads(1, make_and_free_none, &company, sizeof company);
    blocks_free_all(&company);
}

/* ---- as malloc ------------------------------------------------------------------------------- */

PROPERTY(calloc_alignment,
    .id     = "calloc.alignment", .level = MUST, .basis = BASIS_C, .rule = HEAP_CALLOC_ALIGNMENT,
    .rank = {RANK_FRESH, RANK_AT_LENGTH, 19}, .scenarios = true, .quick = true,
    .clause = "a block of calloc's is aligned for max_align_t or, if that is larger than the "
              "block, for the largest power of two in its size",
    .source = "C17 7.22.3 paragraph 1, 6.2.8",
    .why    = "NumPy takes np.zeros to be aligned for its dtype, and does not pass that size",
    .hint   = "make the header a multiple of max_align_t's alignment; ignore elsize",
    .looks  = "calloc(3, 8) to be aligned to 16 bytes: 0x55d0c8, which is aligned to 8")
{
    const struct scenario_limits limits = {.most_size = 1 << 20,
                                           .most_bytes = 16 << 20,
                                           .level[FACTOR_MADE_BY] =
                                               FROM_TO(BY_CALLOC_N_1, BY_CALLOC_N_K)};
    check_scenarios(20000, &limits);
    check_scenarios_in_thread(10000, &limits);
    check_huge_alignment(&by_calloc);
}
