/* SPDX-License-Identifier: BSD-3-Clause
 *
 * free: what becomes of the memory.
 */
#include "harness/growth.h"
#include "harness/harness.h"
#include "scenarios.h"

PROPERTY(free_any_order,
    .id     = "free.any-order", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_FRESH, RANK_RESIZED, 16}, .scenarios = true,
    .title  = "blocks can be freed in any order",
    .clause = "Blocks can be freed in any order, and many of one size in a row.",
    .source = "C17 7.22.3 paragraph 1: allocations are unordered, each ends by its deallocation",
    .why    = "Python drops arrays in the order of their references, the garbage collector in its "
              "own.",
    .hint   = "Merge only with neighbors that are free now. Check the limit on the number of "
              "cached blocks.",
    .looks  = "expected byte 0 of 51 to be 0xb0 as it was written, while the first is freed first")
{
    enum { SIZES_TO_128_KIB = 24 };
    const struct scenario_limits any = {.most_size = 4096, .most_bytes = 4 << 20};
    check_scenarios(8000, &any);
    for (unsigned row = 0; row < 3 * SIZES_TO_128_KIB;
         row++) { /* each size class fills its cache */
        const struct scenario_limits limits = {
            .most_bytes = 16 << 20,
            .level = {[FACTOR_SIZE] = {(uint8_t)(SIZE_17 + row / 3), 1},
                      [FACTOR_MEMORY_BEFORE] = FROM_TO(AFTER_BURST, AFTER_BURST),
                      [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 1),
                      [FACTOR_REPETITION] = FROM_TO(0, 0)}};
        check_scenarios(ONE_ROW, &limits);
    }
}

PROPERTY(free_poison_stays_inside,
    .id     = "free.poison-stays-inside", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_BESIDE, RANK_BESIDE, 14}, .scenarios = true, .slow_ms = 48,
    .title  = "free changes no other block",
    .clause = "free never changes the bytes of another block, neither at once nor later.",
    .source = "C17 7.22.3 paragraph 1: each allocation is disjoint from any other object",
    .why    = "Debugging handlers overwrite freed memory, and other handlers keep their lists "
              "there.",
    .hint   = "Overwrite only the requested size, and write nothing after the block is back in a "
              "free list.",
    .looks  = "expected byte 0 of 1000 to be 0x7c as it was written, after free; seen 0xdd")
{
    enum { UP_TO_4_KIB = SIZE_4096 - 1 };
    for (uint8_t size = SIZE_17; size <= UP_TO_4_KIB; size++) { /* each size that is one of these */
        const struct scenario_limits limits = {
            .most_bytes = 16 << 20,
            .level = {[FACTOR_SIZE] = {size, 1},
                      [FACTOR_SIZES] = FROM_TO(EACH_IN_TURN, EACH_IN_TURN),
                      [FACTOR_MADE_BY] = FROM_TO(BY_MALLOC, BY_MALLOC),
                      [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 2),
                      [FACTOR_FREE_ORDER] = FROM_TO(RANDOM_ORDER, RANDOM_ORDER),
                      [FACTOR_REPETITION] = FROM_TO(4, 4)}};
        check_scenarios(ONE_ROW, &limits);
    }
}

PROPERTY(free_leaves_recycled_alone,
    .id     = "free.leaves-recycled-alone", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_BESIDE, RANK_IN_USE, 15}, .scenarios = true, .slow_ms = 56,
    .title  = "no late write to recycled memory",
    .clause = "After free, the handler writes nothing to a block's memory once malloc has returned "
              "it again.",
    .tests  = "The new block is compared right away and again seconds later.",
    .source = "C17 6.2.4 paragraph 2: an object keeps its last-stored value in its lifetime",
    .why    = "An array would change long after another array was deleted.",
    .hint   = "Under malloc's lock, check that the block is still free before you poison or wipe "
              "it.",
    .looks  = "expected byte 0 of 36 to be 0xe4 as it was written, 24 ms after it was made; seen "
              "0xdd")
{
    enum { PAUSE = 1, JUMP };
    static const struct {
        size_t least, most;
        uint8_t time;
    } rows[] = {{0, 256, PAUSE},
                {0, 256, PAUSE},
                {1 << 20, 2 << 20, PAUSE},
                {0, 32 << 10, JUMP},
                {256 << 10, 1 << 20, JUMP},
                {256 << 10, 1 << 20, JUMP}};
    for (size_t i = 0; i < LENGTH(rows); i++) {
        const struct scenario_limits limits = {
            .least_size = rows[i].least,
            .most_size = rows[i].most,
            .most_bytes = 64 << 20,
            .pauses = true,
            .level = {[FACTOR_SIZES] = FROM_TO(ONE_SIZE, ONE_SIZE),
                      [FACTOR_MADE_BY] = FROM_TO(BY_MALLOC, BY_MALLOC),
                      [FACTOR_MEMORY_BEFORE] = FROM_TO(FREED_SAME, FREED_SAME),
                      [FACTOR_FREE_ORDER] = FROM_TO(NO_FREE, NO_FREE),
                      [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 2),
                      [FACTOR_REPETITION] = FROM_TO(1, 1),
                      [FACTOR_TIME] = {rows[i].time, 1}}};
        check_scenarios_about(FACTOR_TIME, ONE_ROW, &limits);
    }
}

/* ---- how much of it --------------------------------------------------------------------- */

/* A handler may look at what is in a block that is freed, for a link of its own list say.  In two
 * turns of three all bytes are 0, or all are ones. */
static void leave_contents(unsigned char *p, size_t size, bool is_zero, size_t turn)
{
    enum { MOST = 4096 }; /* so that no time is lost with large ones */
    if (turn % 3 == 0)
        p[0] = p[size - 1] = 1;
    else if (turn % 3 == 1 && !is_zero)
        memset(p, 0, MIN(size, MOST));
    else if (turn % 3 == 2)
        memset(p, 0xff, MIN(size, MOST));
}

/* Blocks of all kinds, made by all functions; how many of each changes from turn to turn. */
static void make_and_free(void *data)
{
    size_t turn = ++*(size_t *)data;
    struct {
        unsigned char *p;
        size_t size;
        bool is_zero;
    } kept[40];
    size_t count = 0;
    for (size_t i = 0; i < 30 + turn % 8; i++, count++) {
        size_t size = i % 10 == 9 ? 3000 + 100 * i : 16 + 11 * i;
        kept[count].p = i % 3 == 0   ? must_calloc(size, 1)
                        : i % 3 == 1 ? subject_realloc(NULL, size)
                                     : NULL;
        if (kept[count].p == NULL)
            kept[count].p = must_malloc(size);
        kept[count].size = size;
        kept[count].is_zero = i % 3 == 0;
    }
    kept[count].p = turn % 4 == 0 ? must_calloc(262144, 1) : must_malloc(262144);
    kept[count].is_zero = turn % 4 == 0;
    kept[count++].size = 262144;
    for (size_t i = 0; i < count; i++) {
        size_t at = i % 2 == 0 ? i / 2 : count - 1 - i / 2;
        leave_contents(kept[at].p, kept[at].size, kept[at].is_zero, turn);
        subject_free(kept[at].p, kept[at].size);
    }
}

PROPERTY(free_reclaims,
    .id     = "free.reclaims", .level = SHOULD, .basis = BASIS_QOI, .rule = HEAP_RECLAIMS,
    .answers_for = ABOUT(MEMORY_GROWS), .quick = true,
    .title  = "freed memory is used again",
    .clause = "Freed memory is released or reused, so repeated cycles of the same work do not "
              "grow.",
    .source = "C17 7.22.3.3: free makes the space available for further allocation",
    .why    = "Otherwise a loop over temporaries ends in MemoryError.",
    .hint   = "Limit caches and quarantine. Free on every path. Do not identify blocks by their "
              "contents.",
    .looks  = "expected memory to stop growing while blocks are made and freed; seen 75000 KiB "
              "more mapped")
{
    size_t turn = 0;
    control_run(make_and_free, &turn, "where it is done once");
    expect_no_growth(200, make_and_free, NULL, &turn,
                     "blocks of up to 262144 bytes are made and freed");
}

/* More at once than a cache keeps, and all of them freed: it fills and is emptied in turn, and may
 * lose one in a hundred. */
static void make_and_free_burst(void *unused)
{
    static const size_t sizes[] = {4000, 2000, 1000};
    enum { BURST = 900, SIZES = LENGTH(sizes) };
    void *burst[BURST];
    (void)unused;
    for (size_t i = 0; i < BURST; i++)
        burst[i] = must_malloc(sizes[i % SIZES]);
    for (size_t i = 0; i < BURST; i++)
        subject_free(burst[i], sizes[i % SIZES]);
}

/* Each is less than the one before, and lies well in what that left; nobody writes to them. */
static void make_and_free_falling(void *unused)
{
    enum { MIB = 1 << 20 };
    (void)unused;
    for (size_t size = 7 * MIB; size >= 2 * MIB; size -= MIB) {
        void *p = subject_malloc(size);
        give_back(p, size);
    }
}

PROPERTY(free_reclaims_bursts,
    .id     = "free.reclaims-bursts", .level = SHOULD, .basis = BASIS_QOI,
    .title  = "memory of many freed blocks is reused",
    .clause = "Memory is used again after many blocks are freed in a row or in growing sizes.",
    .source = "C17 7.22.3.3: free makes the space available for further allocation",
    .why    = "Programs drop whole lists of arrays at once, again and again.",
    .hint   = "When a full cache releases blocks, update its count. Keep the whole length of a "
              "reused mapping.",
    .looks  = "expected memory to stop growing while 900 blocks are made, then freed; seen 7392 "
              "KiB more")
{
    expect_no_growth(20, make_and_free_burst, NULL, NULL,
                     "900 blocks of up to 4000 bytes are made, and then freed");
    expect_no_growth(2, make_and_free_falling, NULL, NULL,
                     "blocks of 7 MiB, 6, 5, 4, 3 and 2 are made and freed, one at a time");
}
