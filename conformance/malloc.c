/* SPDX-License-Identifier: BSD-3-Clause
 *
 * malloc: what it hands out.
 */
#include "harness/harness.h"
#include "scenarios.h"

GROUP(malloc, 2, "What malloc hands out, and what it does when it cannot.",
      .rank = {RANK_ONE_FUNCTION, RANK_IN_USE, 34}, .function = STEP_MALLOC);

/* ---- every byte of it ------------------------------------------------------------------------ */

PROPERTY(malloc_extent,
    .id     = "malloc.extent", .level = MUST, .basis = BASIS_C, .rule = HEAP_MALLOC_EXTENT,
    .rank = {RANK_PLACE, RANK_BESIDE, 10}, .scenarios = true, .ends_process = true, .quick = true,
    .clause = "every requested byte can be written and read back, also in reused memory",
    .source = "C17 7.22.3.4; NEP 49, the malloc function",
    .why    = "NumPy writes all of an array's data into the block",
    .hint   = "request the full size plus the header; compare all of a freed block's size on reuse",
    .looks  = "CRASH: SIGSEGV, or a byte that is not what was written")
{
    const struct scenario_limits any = {.most_size = 128 << 10, .most_bytes = 64 << 20};
    const struct scenario_limits edges = {
        .least_size = 128 << 10,
        .most_size = 1 << 20,
        .most_bytes = 64 << 20,
        .level = {[FACTOR_EDGE] = FROM_TO(CLASS_EDGE, CLASS_EDGE),
                  [FACTOR_SIZES] = FROM_TO(EACH_IN_TURN, EACH_IN_TURN),
                  [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 0),
                  [FACTOR_REPETITION] = FROM_TO(TIMES_8, TIMES_8)}};
    const struct scenario_limits pages = {
        .least_size = 8 << 20,
        .most_bytes = 256 << 20,
        .level = {[FACTOR_EDGE] = FROM_TO(PAGE_EDGE, PAGE_EDGE),
                  [FACTOR_SIZES] = FROM_TO(ANY_SIZE, ANY_SIZE),
                  [FACTOR_MADE_BY] = FROM_TO(BY_MALLOC, BY_MALLOC),
                  [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 0),
                  [FACTOR_REPETITION] = FROM_TO(0, TIMES_8)}};
    for (uint8_t level = SIZE_129; level < SIZE_4096; level++) {
        const struct scenario_limits each = {
            .most_size = 4096,
            .most_bytes = 4 << 20,
            .level = {[FACTOR_SIZE] = {level, 1},
                      [FACTOR_SIZES] = FROM_TO(EACH_IN_TURN, EACH_IN_TURN),
                      [FACTOR_MADE_BY] = FROM_TO(BY_MALLOC, BY_MALLOC),
                      [FACTOR_MEMORY_BEFORE] = FROM_TO(FRESH, FRESH),
                      [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 0),
                      [FACTOR_FREE_ORDER] = FROM_TO(LIFO, FIFO),
                      [FACTOR_REPETITION] = FROM_TO(TIMES_1000, TIMES_1000),
                      [FACTOR_RESIZES] = FROM_TO(AS_MADE, AS_MADE)}};
        check_scenarios(ONE_ROW, &each);
    }
    check_scenarios(10000, &any);
    check_scenarios(30000, &edges);
    check_scenarios(30000, &pages);
}

/* ---- where it is ----------------------------------------------------------------------------- */

PROPERTY(malloc_alignment,
    .id     = "malloc.alignment", .level = MUST, .basis = BASIS_C, .rule = HEAP_MALLOC_ALIGNMENT,
    .rank = {RANK_FRESH, RANK_AT_LENGTH, 19}, .scenarios = true, .quick = true,
    .clause = "a block is aligned for max_align_t or, where that is larger than the block, for "
              "the largest power of two in its size",
    .source = "C17 7.22.3 paragraph 1, 6.2.8",
    .why    = "NumPy takes data to be aligned for its dtype, and the compiler vectorizes its loops",
    .hint   = "make the header a multiple of max_align_t's alignment; round what you carve out",
    .looks  = "malloc(24) to be aligned to 16 bytes: 0x55d0c8, which is aligned to 8")
{
    const struct scenario_limits limits = {.most_size = 1 << 20,
                                           .most_bytes = 16 << 20,
                                           .level[FACTOR_MADE_BY] = FROM_TO(BY_MALLOC, BY_MALLOC)};
    check_scenarios(20000, &limits);
    check_scenarios_in_thread(10000, &limits);
}

static const struct scenario_limits of_any_block = {.most_size = 1 << 20, .most_bytes = 64 << 20};

static void check_blocks(void *unused)
{
    (void)unused;
    check_scenarios(10000, &of_any_block);
}

PROPERTY(malloc_claimed_alignment,
    .id     = "malloc.claimed-alignment", .level = MUST, .basis = BASIS_CLAIM,
    .rule = HEAP_CLAIMED_ALIGNMENT, .scenarios = true, .quick = true,
    .clause = "every block is aligned as claimed, whatever its size, whichever function made it, "
              "on every thread and in forked children",
    .source = "nep49.h, alignment=N",
    .why    = "callers use aligned vector loads or pass blocks to a device, and crash otherwise",
    .hint   = "libc's realloc keeps no alignment beyond max_align_t: check and move the bytes",
    .looks  = "realloc of 64 bytes to 4000 to be aligned to 64 bytes, as claimed: 0x55d0d0")
{
    if (subject_claims().alignment == 0)
        skip_unclaimed();
    const struct scenario_limits in_a_row = {
        .least_size = 128 << 10,
        .most_size = 192 << 10,
        .most_bytes = 16 << 20,
        .level = {[FACTOR_LIVE_BLOCKS] = FROM_TO(0, 0),
                  [FACTOR_REPETITION] = FROM_TO(TIMES_1000, TIMES_1000)}};
    check_scenarios(30000, &of_any_block);
    check_scenarios(ONE_ROW, &in_a_row);
    check_scenarios_in_thread(10000, &of_any_block);
    in_child(check_blocks, NULL);
}

PROPERTY(malloc_disjoint,
    .id     = "malloc.disjoint", .level = MUST, .basis = BASIS_C, .rule = HEAP_DISJOINT,
    .rank = {RANK_PLACE, RANK_FRESH, 8}, .answers_for = ABOUT(BLOCKS_OVERLAP),
    .scenarios = true, .slow_ms = 89,
    .clause = "no two live blocks share a byte, whatever their sizes, and however many live",
    .source = "C17 7.22.3 paragraph 1: each allocation is disjoint from any other",
    .why    = "two arrays would share memory, and writing one would change the other",
    .hint   = "check the width of indices, sizes in free lists, double entries and mappings",
    .looks  = "66048 live blocks not to overlap: 17 bytes at 0x7f1200 and 17 bytes at 0x7f1200")
{
    const struct scenario_limits any = {.most_size = 1 << 20, .most_bytes = 64 << 20};
    const struct scenario_limits left = {
        .most_size = 4096,
        .most_bytes = 1 << 20,
        .level = {[FACTOR_LIVE_BLOCKS] = FROM_TO(0, 1),
                  [FACTOR_REPETITION] = FROM_TO(0, 1),
                  [FACTOR_FREE_ORDER] = FROM_TO(ALL_BUT_ONE, NO_FREE)}};
    const struct scenario_limits thousands = {
        .most_size = 2048,
        .most_bytes = 64 << 20,
        .level = {[FACTOR_SIZE] = FROM_TO(SIZE_768, SIZE_768),
                  [FACTOR_LIVE_BLOCKS] = FROM_TO(LIVE_3000, LIVE_3000),
                  [FACTOR_FREE_ORDER] = FROM_TO(RANDOM_ORDER, EVERY_OTHER),
                  [FACTOR_REPETITION] = FROM_TO(0, 0)}};
    const struct scenario_limits pages = {.least_size = 32 << 10,
                                          .most_size = 256 << 10,
                                          .most_bytes = 64 << 20,
                                          .level = {[FACTOR_EDGE] = FROM_TO(PAGE_EDGE, PAGE_EDGE),
                                                    [FACTOR_SIZES] = FROM_TO(ONE_SIZE, ONE_SIZE),
                                                    [FACTOR_LIVE_BLOCKS] = FROM_TO(1, LIVE_12),
                                                    [FACTOR_REPETITION] = FROM_TO(0, TIMES_8)}};
    check_scenarios(10000, &left);
    check_scenarios(40000, &any);
    check_scenarios(30000, &thousands);
    check_scenarios(15000, &pages);
}

PROPERTY(malloc_neighbours,
    .id     = "malloc.neighbours", .level = MUST, .basis = BASIS_C, .rule = HEAP_NEIGHBORS,
    .rank = {RANK_BESIDE, RANK_FRESH, 13}, .scenarios = true, .quick = true,
    .clause = "making, resizing or freeing one block keeps the bytes of all others, then and later",
    .source = "C17 7.22.3 paragraph 1, 6.2.4 paragraph 2: an object keeps its last-stored value",
    .why    = "arrays would change by themselves when another one comes or goes",
    .hint   = "check fills and trailers that reach past a block, and threads that lag behind",
    .looks  = "byte 112 of 120 to be 0x3c as it was written, after another block was freed: 0x00")
{
    const struct scenario_limits any = {.most_size = 128 << 10, .most_bytes = 64 << 20};
    const struct scenario_limits by_calloc = {.most_size = 8 << 10,
                                              .most_bytes = 16 << 20,
                                              .level[FACTOR_MADE_BY] =
                                                  FROM_TO(BY_CALLOC_N_1, BY_CALLOC_N_K)};
    check_scenarios(40000, &any);
    check_scenarios(20000, &by_calloc);
}

/* ---- the smallest ---------------------------------------------------------------------------- */

static void make_and_free_nothing(void *data)
{
    const struct blocks *company = data;
    enum { ROUNDS = 50, AT_ONCE = 16 };
    for (int round = 0; round < ROUNDS; round++) {
        void *p[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++)
            p[i] = subject_malloc(0);
        blocks_verify(company, "after malloc(0)");
        for (int i = 0; i < AT_ONCE; i++) {
            void *next = p[(i * 5 + round) % AT_ONCE];
            give_back(next, 0);
        }
        blocks_verify(company, "after free(p, 0) of what malloc(0) gave");
    }
}

PROPERTY(malloc_zero,
    .id     = "malloc.zero", .level = MUST, .basis = BASIS_CALLER,
    .rank = {RANK_BY_ITSELF, RANK_AT_LENGTH, 6}, .answers_for = ABOUT(MALLOC_ZERO),
    .ends_process = true, .quick = true,
    .clause = "malloc(0) returns NULL or a pointer that free accepts, and harms no other block",
    .source = "C17 7.22.3 paragraph 1; NumPy arraytypes.c.src VOID_compare, 1.22 and later",
    .why    = "sorting np.zeros(3, dtype=[('x', 'i1'), ('y', 'U0')]) does it with NumPy 1.24",
    .hint   = "add the header first and round afterwards, or ask for 1 byte instead",
    .looks  = "CRASH: SIGABRT, inside free(0x55d0c8, 0)")
{
    struct blocks company = {0};
    blocks_add_neighbours(&company, 40);
    make_and_free_nothing(&company);
    in_threads(1, make_and_free_nothing, &company, 0);
    blocks_free_all(&company);
}
