/* SPDX-License-Identifier: BSD-3-Clause
 *
 * realloc: what it keeps, and what can be done with the block then.
 */
#include "block_checks.h"
#include "harness/proc_count.h"
#include "scenarios.h"

GROUP(realloc, 4, "What realloc keeps, moves and refuses.",
      .rank = {RANK_RESIZED, RANK_ONE_FUNCTION, 33}, .function = STEP_REALLOC);

PROPERTY(realloc_null_allocates,
    .id     = "realloc.null-allocates", .level = MUST, .basis = BASIS_C,
    .answers_for = ABOUT(REALLOC_NULL), .scenarios = true, .ends_process = true, .quick = true,
    .clause = "realloc of NULL is malloc: it returns a new block, aligned and whole",
    .source = "C17 7.22.3.5 paragraph 3",
    .why    = "code that grows a buffer from nothing relies on it, and shims that forward calls",
    .hint   = "check the pointer before you read its header: if it is NULL, call malloc",
    .looks  = "CRASH: SIGSEGV, inside realloc((nil), 1)")
{
    const struct level_range from_null = FROM_TO(BY_REALLOC_NULL, BY_REALLOC_NULL);
    const struct scenario_limits any = {
        .most_size = 1 << 20, .most_bytes = 16 << 20, .level[FACTOR_MADE_BY] = from_null};
    const struct scenario_limits left = {
        .most_size = 4096,
        .most_bytes = 1 << 20,
        .level = {[FACTOR_MADE_BY] = from_null,
                  [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 1),
                  [FACTOR_REPETITION] = FROM_TO(0, 1),
                  [FACTOR_FREE_ORDER] = FROM_TO(ALL_BUT_ONE, NO_FREE)}};
    const struct scenario_limits large = {.least_size = 1 << 20,
                                          .most_bytes = 64 << 20,
                                          .level = {[FACTOR_MADE_BY] = from_null,
                                                    [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 1),
                                                    [FACTOR_REPETITION] = FROM_TO(0, TIMES_8)}};
    check_scenarios(5000, &left);
    check_scenarios(20000, &any);
    check_scenarios(15000, &large);
}

PROPERTY(realloc_keeps_contents,
    .id     = "realloc.keeps-contents", .level = MUST, .basis = BASIS_C,
    .rule = HEAP_KEEPS_CONTENTS, .rank = {RANK_RESIZED, RANK_RESIZED, 24},
    .answers_for = ABOUT(REALLOC_ONE), .answers_next_for = ABOUT(LITTLE_REALLOC),
    .scenarios = true, .quick = true,
    .clause = "realloc keeps the first min(old, new) bytes of the block",
    .source = "C17 7.22.3.5; NumPy 1.22 to 2.5: shape.c PyArray_Resize, ctors.c, textreading",
    .why    = "every ndarray.resize, fromiter, fromfile, fromstring and loadtxt rests on it",
    .hint   = "copy min(old, new) bytes; keep the old size where realloc can find it",
    .looks  = "FAIL: byte 4095 of 4096 to be 0x8d, after realloc from 4096 to 8193; seen 0x00")
{
    const struct scenario_limits resized = {.most_size = 1 << 20,
                                            .most_bytes = 64 << 20,
                                            .level[FACTOR_MADE_BY] = FROM_TO(GROWN, FROM_EMPTY)};
    const struct scenario_limits often = {
        .most_size = 4096,
        .most_bytes = 1 << 20,
        .level = {[FACTOR_SIZE] = FROM_TO(SIZE_17, SIZE_4096),
                  [FACTOR_RESIZES] = FROM_TO(RESIZED_256, RESIZED_1000),
                  [FACTOR_REPETITION] = FROM_TO(0, 1)}};
    const struct scenario_limits edges = {
        .least_size = 256 << 10,
        .most_size = 1 << 20,
        .most_bytes = 64 << 20,
        .level = {[FACTOR_EDGE] = FROM_TO(CLASS_EDGE, CLASS_EDGE),
                  [FACTOR_SIZES] = FROM_TO(EACH_IN_TURN, EACH_IN_TURN),
                  [FACTOR_MADE_BY] = FROM_TO(SHRUNK, RESIZED_AND_BACK),
                  [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 0),
                  [FACTOR_REPETITION] = FROM_TO(TIMES_8, TIMES_8)}};
    const struct scenario_limits large = {
        .least_size = 1 << 20,
        .most_bytes = 256 << 20,
        .level = {[FACTOR_MADE_BY] = FROM_TO(BY_MALLOC, FROM_EMPTY),
                  [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 0),
                  [FACTOR_REPETITION] = FROM_TO(0, 0),
                  [FACTOR_RESIZES] = FROM_TO(RESIZED_FEW, RESIZED_FEW)}};
    struct scenario_limits leaps = large, pages_out = large;
    leaps.least_size = 8 << 20;
    leaps.level[FACTOR_MADE_BY] = (struct level_range)FROM_TO(LEAP, LEAP);
    leaps.level[FACTOR_RESIZES] = (struct level_range)FROM_TO(AS_MADE, AS_MADE);
    pages_out.most_bytes = 32 << 20;
    pages_out.level[FACTOR_PRESSURE] = (struct level_range)FROM_TO(PAGES_OUT, PAGES_OUT);
    check_scenarios(50000, &resized);
    check_scenarios(40000, &often);
    check_scenarios(10000, &edges);
    check_scenarios(20000, &large);
    check_scenarios(10000, &leaps);
    check_scenarios(10000, &pages_out);
}

/* ---- room -------------------------------------------------------------------------------- */

PROPERTY(realloc_grown_part_usable,
    .id     = "realloc.grown-part-usable", .level = MUST, .basis = BASIS_C,
    .rule = HEAP_REALLOC_EXTENT, .scenarios = true, .rank = {RANK_FRESH, RANK_RESIZED, 28},
    .clause = "every byte of a grown block can be written and read back, and is in no other block",
    .source = "C17 7.22.3 paragraph 1, 7.22.3.5",
    .why    = "NumPy fills the new part at once, with zeros or with what it reads",
    .hint   = "keep a block in place only if its own room is large enough; else take a new one",
    .looks  = "FAIL: byte 0 of 90 to be 0x6e as it was written, after all 32 were resized")
{
    const struct scenario_limits small = {
        .least_size = 4096,
        .most_size = 1 << 20,
        .most_bytes = 64 << 20,
        .level = {[FACTOR_EDGE] = FROM_TO(CLASS_EDGE, PAGE_EDGE),
                  [FACTOR_MADE_BY] = FROM_TO(GROWN, GROWN_STEPWISE)}};
    const struct scenario_limits large = {.least_size = 1 << 20,
                                          .most_bytes = 32 << 20,
                                          .level = {[FACTOR_EDGE] = FROM_TO(PAGE_EDGE, PAGE_EDGE),
                                                    [FACTOR_SIZES] = FROM_TO(ANY_SIZE, ANY_SIZE),
                                                    [FACTOR_MADE_BY] = FROM_TO(GROWN, FROM_EMPTY),
                                                    [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 0),
                                                    [FACTOR_REPETITION] = FROM_TO(0, TIMES_8)}};
    struct scenario_limits back = large;
    back.level[FACTOR_RESIZES] = (struct level_range)FROM_TO(RESIZED_FEW, RESIZED_FEW);
    check_scenarios(20000, &small);
    check_scenarios(20000, &large);
    check_scenarios(15000, &back);
}

PROPERTY(realloc_alignment,
    .id     = "realloc.alignment", .level = MUST, .basis = BASIS_C, .rule = HEAP_REALLOC_ALIGNMENT,
    .rank = {RANK_FRESH, RANK_AT_LENGTH, 19}, .scenarios = true, .quick = true,
    .clause = "what realloc returns is aligned as malloc's blocks, moved or not, grown or shrunk",
    .source = "C17 7.22.3 paragraph 1",
    .why    = "NumPy's loops load vectors, and an array stays marked as aligned after resize",
    .hint   = "align the place in the new memory, and move the bytes if it differs from the old",
    .looks  = "FAIL: realloc to 5000 of a block by malloc to be aligned to 16; 0x55d0c8a0b2a8")
{
    const struct scenario_limits limits = {.most_size = 1 << 20,
                                           .most_bytes = 16 << 20,
                                           .level[FACTOR_MADE_BY] = FROM_TO(GROWN, FROM_EMPTY)};
    check_scenarios(25000, &limits);
}

PROPERTY(realloc_of_calloc,
    .id     = "realloc.of-calloc", .level = MUST, .basis = BASIS_C, .scenarios = true, .quick = true,
    .clause = "a block of calloc's is resized as one of malloc's with nelem * elsize bytes",
    .source = "C17 7.22.3.5: a pointer that calloc returned; NumPy 1.22 to 2.5: PyArray_Resize",
    .why    = "np.zeros(n).resize(m) is the usual way to a buffer that grows",
    .hint   = "write the product into the header in calloc, not one of its arguments",
    .looks  = "FAIL: byte 10 of 80 to be 0x3f, after calloc(10, 8) and realloc to 121; seen 0x00")
{
    const struct scenario_limits any = {
        .most_size = 1 << 20,
        .most_bytes = 16 << 20,
        .level = {[FACTOR_MADE_BY] = FROM_TO(BY_CALLOC_N_1, BY_CALLOC_N_K),
                  [FACTOR_RESIZES] = FROM_TO(RESIZED_FEW, RESIZED_FEW)}};
    check_scenarios(20000, &any);
}

/* The bytes that were asked for come to more than 2 GiB, and to less than 4.  They are not touched.
 */
static void ask_for_gigabytes(void)
{
    enum { COUNT = 5, SIZE = 512 << 20 };
    for (size_t i = 0; i < COUNT; i++) {
        void *p = subject_malloc(SIZE);
        give_back(p, SIZE);
    }
}

/* A handler may spend pages on each small block. */
static void skip_if_crowd_is_too_large(void)
{
    enum { SOME = 256, SIZE = 31, CROWD = 300000 };
    void *p[SOME];
    size_t before = resident_bytes();
    for (size_t i = 0; i < SOME; i++)
        p[i] = filled(SIZE, i);
    size_t now = resident_bytes(), grown = now > before ? now - before : 0;
    for (size_t i = 0; i < SOME; i++)
        subject_free(p[i], SIZE);
    if (lacking_memory(grown / SOME * CROWD) != NULL)
        skip("%d small blocks take %zu MiB of memory, which is too much", CROWD,
             grown / SOME * CROWD >> 20);
}

PROPERTY(realloc_long_run,
    .id     = "realloc.long-run", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_AT_LENGTH, RANK_AT_LENGTH, 21}, .slow_ms = 185, .fixture = FIXTURE_BARE,
    .scenarios = true,
    .clause = "after a million calls and with up to 300,000 live blocks, every block is aligned "
              "and keeps its contents",
    .source = "C17 7.22.3 paragraph 1, 7.22.3.5 paragraph 2, 6.2.4 paragraph 2",
    .why    = "tables fill up and counters wrap in programs that run for hours",
    .hint   = "check the size of tables, the width of counters, and paths for scarce memory",
    .looks  = "FAIL: byte 16 of 203 to be 0x4c as it was written, after 48213 calls; seen 0x00")
{
    const struct scenario_limits million = {
        .most_size = 4096,
        .most_bytes = 256 << 20,
        .level = {[FACTOR_SIZE] = FROM_TO(SIZE_17, SIZE_17),
                  [FACTOR_MADE_BY] = FROM_TO(BY_MALLOC, BY_MALLOC),
                  [FACTOR_LIVE_BLOCKS] = FROM_TO(2, 2),
                  [FACTOR_REPETITION] = FROM_TO(TIMES_1100000, TIMES_1100000)}};
    const struct scenario_limits crowd = {
        .most_size = 256,
        .most_bytes = 256 << 20,
        .level = {[FACTOR_SIZE] = FROM_TO(SIZE_17, SIZE_17),
                  [FACTOR_MADE_BY] = FROM_TO(BY_MALLOC, BY_MALLOC),
                  [FACTOR_LIVE_BLOCKS] = FROM_TO(LIVE_300000, LIVE_300000),
                  [FACTOR_FREE_ORDER] = FROM_TO(LIFO, LIFO),
                  [FACTOR_REPETITION] = FROM_TO(0, 0)}};
    const struct scenario_limits resized = {
        .most_size = 256,
        .most_bytes = 256 << 20,
        .level = {[FACTOR_SIZE] = FROM_TO(SIZE_17, SIZE_17),
                  [FACTOR_MADE_BY] = FROM_TO(GROWN, SHRUNK),
                  [FACTOR_LIVE_BLOCKS] = FROM_TO(LIVE_10000, LIVE_10000),
                  [FACTOR_REPETITION] = FROM_TO(0, 0)}};
    const struct scenario_limits later = {.most_size = 1024, .most_bytes = 16 << 20};
    if (!is_instrumented() && !subject_fills_blocks())
        ask_for_gigabytes();
    check_scenarios(ONE_ROW, &million);
    check_scenarios(5000, &later);
    check_scenarios(100000, &resized);
    skip_if_crowd_is_too_large();
    check_scenarios(ONE_ROW, &crowd);
}
