/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calloc: what it hands out.
 */
#include <sys/mman.h>

#include "base/sanitizer_detect.h"
#include "harness/harness.h"
#include "scenarios.h"

GROUP(calloc, 3,
      "What calloc hands out: zeroed, of the right size, and refused where the product wraps.",
      .rank = {RANK_ONE_FUNCTION, RANK_IN_USE, 35}, .function = STEP_CALLOC);

/* ---- zero ------------------------------------------------------------------------------------ */

static const struct scenario_limits edges_of_classes = {
    .least_size = 4096,
    .most_size = 1 << 20,
    .most_bytes = 64 << 20,
    .level = {[FACTOR_EDGE] = FROM_TO(CLASS_EDGE, CLASS_EDGE),
              [FACTOR_SIZES] = FROM_TO(EACH_IN_TURN, EACH_IN_TURN),
              [FACTOR_MADE_BY] = FROM_TO(BY_CALLOC_N_1, BY_CALLOC_N_K),
              [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 0),
              [FACTOR_REPETITION] = FROM_TO(TIMES_8, TIMES_8)}};

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
    const struct scenario_limits large = {
        .least_size = 8 << 20,
        .most_bytes = 256 << 20,
        .level = {[FACTOR_MADE_BY] = by_any_calloc,
                  [FACTOR_MEMORY_BEFORE] = FROM_TO(FREED_SAME, REST_OF_SHRINK),
                  [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 0),
                  [FACTOR_REPETITION] = FROM_TO(0, 0)}};
    struct scenario_limits rests = large;
    rests.least_size = 1 << 20;
    rests.most_bytes = 64 << 20;
    rests.level[FACTOR_MEMORY_BEFORE] = (struct level_range)FROM_TO(REST_OF_SHRINK, REST_OF_SHRINK);
    struct scenario_limits limited = large;
    limited.least_size = 1 << 20;
    limited.most_bytes = 32 << 20;
    limited.address_limits = !is_instrumented();
    limited.level[FACTOR_PRESSURE] = (struct level_range)FROM_TO(ADDRESS_LIMIT, ADDRESS_LIMIT);
    check_scenarios(ONE_ROW, &many);
    if (limited.address_limits) /* before there is a thread, whose stack libc would keep */
        check_scenarios(5000, &limited);
    check_scenarios_in_thread(20000, &any);
    check_scenarios(60000, &any);
    check_scenarios(30000, &locked);
    check_scenarios(10000, &edges_of_classes);
    check_scenarios(12000, &large);
    check_scenarios(10000, &rests);
}

/* ---- the two arguments ----------------------------------------------------------------------- */

PROPERTY(calloc_product,
    .id     = "calloc.product", .level = MUST, .basis = BASIS_C, .rule = HEAP_CALLOC_EXTENT,
    .rank = {RANK_PLACE, RANK_BESIDE, 11}, .scenarios = true, .quick = true,
    .clause = "calloc gives nelem times elsize bytes, however the size is shared between the two",
    .source = "C17 7.22.3.2 paragraph 2; NEP 49, the calloc function",
    .why    = "NumPy passes an element size of 1 so far; the contract allows others",
    .hint   = "multiply the two, and mind their order",
    .looks  = "8 live blocks not to overlap: 80 bytes at 0x55d0c8 and 80 bytes at 0x55d0f8")
{
    const struct scenario_limits limits = {
        .most_size = 1 << 20,
        .most_bytes = 16 << 20,
        .level = {[FACTOR_MADE_BY] = FROM_TO(BY_CALLOC_N_1, BY_CALLOC_N_K),
                  [FACTOR_REPETITION] = FROM_TO(0, 2)}};
    check_scenarios_about(FACTOR_MADE_BY, 10000, &limits);
    check_scenarios(30000, &edges_of_classes);
}

PROPERTY(calloc_overflow,
    .id     = "calloc.overflow", .level = MUST, .basis = BASIS_C, .rule = HEAP_OVERFLOW,
    .rank = {RANK_FRESH, RANK_AT_LENGTH, 18}, .answers_for = ABOUT(CALLOC_TOO_LARGE), .scenarios = true, .quick = true,
    .clause = "calloc returns NULL and changes nothing if the product overflows or is too large",
    .source = "C17 7.22.3.2, 7.22.3 paragraph 1: space for nelem objects or a null pointer",
    .why    = "a product that wraps becomes a small block, and its user writes past it",
    .hint   = "use __builtin_mul_overflow; check that header, padding and rounding do not wrap",
    .looks  = "calloc(9223372036854775809, 2) to return NULL: the product wraps to 2: 0x55d0c8")
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
    .clause = "calloc(0, n) and calloc(n, 0) return NULL or a pointer that free accepts",
    .source = "C17 7.22.3 paragraph 1",
    .why    = "the contract lets NumPy ask for no elements, or for elements of no size",
    .hint   = "add the header to the product, not to a factor; check an argument before you divide",
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
}
