/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calloc: what it hands out.
 */
#include <sys/mman.h>

#include "block_checks.h"
#include "scenarios.h"

GROUP(calloc, 3,
      "Blocks from calloc: zeroed, of the right size, and NULL if the product overflows.",
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
    .title  = "all bytes are zero",
    .clause = "Every byte of a block that calloc returns is zero.",
    .tests  = "New memory and recycled memory are checked, including blocks freed earlier and "
              "tails that realloc cut off.",
    .source = "C17 7.22.3.2 paragraph 2; NEP 49, the calloc function",
    .why    = "np.zeros writes no zeros itself, and np.empty of objects reads the elements as "
              "pointers.",
    .wrong  = "return malloc(nelem * elsize); /* recycled memory is not zero */",
    .right  = "p = mine_malloc(ctx, nelem * elsize); /* after an overflow check */\n"
              "return p != NULL ? memset(p, 0, nelem * elsize) : NULL;",
    .hint   = "Clear all nelem * elsize bytes, in recycled memory too. madvise(MADV_DONTNEED) does "
              "not clear locked pages.",
    .looks  = "expected byte 8 of 13 to be 0, after calloc(13, 1); seen 0xa5")
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
    check_scenarios(40000, &any);
    check_scenarios(20000, &locked);
    check_edges_zero(&by_calloc, 65536);
    check_large_zero(&by_calloc);
    check_edges_zero_when_reused(&by_calloc);
    check_large_zero_when_reused(&by_calloc);
    check_huge_zero_when_reused(&by_calloc);
}

/* ---- the two arguments ----------------------------------------------------------------------- */

PROPERTY(calloc_product,
    .id     = "calloc.product", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_PLACE, RANK_BESIDE, 11}, .scenarios = true, .quick = true,
    .title  = "the block holds nelem * elsize bytes",
    .clause = "calloc returns a block of nelem * elsize bytes for any split of the size into the "
              "two factors.",
    .source = "C17 7.22.3.2 paragraph 2; NEP 49, the calloc function",
    .why    = "NumPy passes an element size of 1 so far; the contract allows other values.",
    .hint   = "Multiply the two arguments, and check their order.",
    .looks  = "expected 8 live blocks not to overlap; seen 80 bytes at 0x55d0c8 and 80 bytes at "
              "0x55d0f8")
{
    const struct scenario_limits limits = {
        .most_size = 1 << 20,
        .most_bytes = 16 << 20,
        .level = {[FACTOR_MADE_BY] = FROM_TO(BY_CALLOC_N_1, BY_CALLOC_N_K),
                  [FACTOR_REPETITION] = FROM_TO(0, 2)}};
    check_scenarios_about(FACTOR_MADE_BY, 10000, &limits);
    check_edges_disjoint(&by_calloc);
    check_huge_extent(&by_calloc);
}

PROPERTY(calloc_overflow,
    .id     = "calloc.overflow", .level = MUST, .basis = BASIS_C, .rule = HEAP_OVERFLOW,
    .rank = {RANK_FRESH, RANK_AT_LENGTH, 18}, .answers_for = ABOUT(CALLOC_TOO_LARGE),
    .scenarios = true, .quick = true,
    .title  = "NULL if nelem * elsize overflows",
    .clause = "calloc returns NULL and changes nothing if nelem * elsize overflows size_t or "
              "exceeds PTRDIFF_MAX.",
    .tests  = "The products include some that wrap to a small number.",
    .source = "C17 7.22.3.2, 7.22.3 paragraph 1: space for nelem objects or a null pointer",
    .why    = "A product that wraps becomes a small block, and its user writes past the end.",
    .wrong  = "p = malloc(nelem * elsize);",
    .right  = "if (__builtin_mul_overflow(nelem, elsize, &size) || size > PTRDIFF_MAX)\n"
              "    return NULL;\n"
              "p = malloc(size);",
    .hint   = "Use __builtin_mul_overflow, or compare nelem with SIZE_MAX / elsize. Check header, "
              "padding and rounding for overflow too.",
    .looks  = "expected calloc(9223372036854775809, 2) to return NULL: the product wraps to 2; "
              "seen 0x55d0c8")
{
    const size_t half = POWER_OF_2(SIZE_BITS / 2), root = POWER_OF_2(SIZE_BITS / 4);
    const struct scenario_limits limits = {
        .most_size = 4096,
        .most_bytes = 1 << 20,
        .level = {[FACTOR_PRESSURE] = FROM_TO(REFUSED_BEFORE, REFUSED_BEFORE),
                  [FACTOR_REPETITION] = FROM_TO(0, 2)}};
    absurd_begin();
    check_scenarios(20000, &limits);
    absurd_end();
    /* wraps to a little more than either factor; a handler that falls for it may well touch all */
    if (lacking_memory(5 * (half / 4)) != NULL)
        return;
    void *p = subject_calloc(half - root + 6, half + root - 4);
    expect(p == NULL, fmt("calloc(%zu, %zu) to return NULL", half - root + 6, half + root - 4),
           "%p", p);
}

PROPERTY(calloc_zero_arguments,
    .id     = "calloc.zero-arguments", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_BY_ITSELF, RANK_AT_LENGTH, 7}, .answers_for = ABOUT(CALLOC_ZERO),
    .ends_process = true, .scenarios = true, .quick = true,
    .title  = "calloc with a zero argument is valid",
    .clause = "calloc(0, n) and calloc(n, 0) return NULL or a pointer that free accepts.",
    .source = "C17 7.22.3 paragraph 1",
    .why    = "The contract lets NumPy request zero elements, or elements of size zero.",
    .wrong  = "if (nelem > SIZE_MAX / elsize) /* SIGFPE if elsize is 0 */",
    .right  = "if (elsize != 0 && nelem > SIZE_MAX / elsize)",
    .hint   = "Add the header to the product, not to a factor. Check an argument before you divide "
              "by it.",
    .looks  = "CRASH: SIGFPE, inside calloc(1, 0)")
{
    const struct scenario_limits limits = {
        .most_bytes = 1 << 20,
        .threads = true,
        .level = {[FACTOR_SIZE] = FROM_TO(0, 1),
                  [FACTOR_MADE_BY] = FROM_TO(BY_CALLOC_N_1, BY_CALLOC_N_K),
                  [FACTOR_REPETITION] = FROM_TO(0, 2),
                  [FACTOR_THREADS] = FROM_TO(SAME, MADE_THERE)}};
    check_scenarios_about(FACTOR_MADE_BY, 2000, &limits);
}

/* ---- as malloc ------------------------------------------------------------------------------- */

PROPERTY(calloc_alignment,
    .id     = "calloc.alignment", .level = MUST, .basis = BASIS_C, .rule = HEAP_CALLOC_ALIGNMENT,
    .rank = {RANK_FRESH, RANK_AT_LENGTH, 19}, .scenarios = true, .quick = true,
    .answers_next_for = ABOUT(NOT_ALIGNED),
    .title  = "calloc's blocks are aligned",
    .clause = "A block from calloc is aligned for max_align_t, or for the largest power of two in "
              "its size if smaller.",
    .source = "C17 7.22.3 paragraph 1, 6.2.8",
    .why    = "NumPy expects np.zeros to be aligned for its dtype, and does not pass the size of "
              "an element.",
    .hint   = "Make the header a multiple of alignof(max_align_t), independent of elsize.",
    .looks  = "expected calloc(3, 8) to be aligned to 16 bytes; seen 0x55d0c8, which is aligned to "
              "8")
{
    const struct scenario_limits limits = {.most_size = 1 << 20,
                                           .most_bytes = 16 << 20,
                                           .level[FACTOR_MADE_BY] =
                                               FROM_TO(BY_CALLOC_N_1, BY_CALLOC_N_K)};
    check_scenarios(20000, &limits);
    check_scenarios_in_thread(10000, &limits);
    check_huge_alignment(&by_calloc);
}
