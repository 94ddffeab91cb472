/* SPDX-License-Identifier: BSD-3-Clause
 *
 * free: what becomes of the memory, in whatever order blocks are freed.
 */
#include <time.h>

#include "block_checks.h"
#include "harness/interpose.h"
#include "harness/leak_check.h"

/* ---- order ------------------------------------------------------------------------------- */

/* Blocks that are looked up by number, so that they can be freed in an order of their own. */
enum { MANY = 360 };
struct set {
    struct block at[MANY]; /* p is NULL where it is freed */
    size_t order[MANY];
    uint64_t last_number;
};

static void set_make(struct set *set, size_t i)
{
    size_t size = 1 + random_below(rng(), i % 16 == 0 ? 3000 : i % 2 == 0 ? 64 : 128);
    struct block *b = &set->at[i];
    *b = (struct block){must_malloc(size), size, ++set->last_number};
    pattern_fill(b->p, size, b->number);
}

static void set_free(struct set *set, size_t i)
{
    struct block *b = &set->at[i];
    subject_free(b->p, b->size);
    b->p = NULL;
}

static void set_verify(const struct set *set, const char *order)
{
    for (size_t i = 0; i < MANY; i++) {
        const struct block *b = &set->at[i];
        if (b->p != NULL)
            expect_pattern(b->p, b->size, b->number, "while blocks are freed %s", order);
    }
}

enum order { LAST_FIRST, FIRST_FIRST, RANDOM, EVERY_OTHER, OUTSIDE_IN, ORDERS };

static void arrange(size_t order[MANY], enum order which)
{
    for (size_t i = 0; i < MANY; i++)
        order[i] = which == LAST_FIRST    ? MANY - 1 - i
                   : which == EVERY_OTHER ? (i * 2 < MANY ? i * 2 : i * 2 % MANY + 1)
                   : which == OUTSIDE_IN  ? (i % 2 == 0 ? i / 2 : MANY - 1 - i / 2)
                                          : i;
    for (size_t i = MANY - 1; which == RANDOM && i > 0; i--) {
        size_t j = random_below(rng(), i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* Half of the blocks are freed in that order and made anew, a quarter, all but one, and all. */
static void free_in_order(struct set *set, enum order which)
{
    static const char *const names[ORDERS] = {"the last one first", "the first one first",
                                              "in random order", "every other one first",
                                              "from both ends"};
    static const size_t parts[] = {MANY / 2, MANY / 4, MANY - 1, MANY};
    for (size_t i = 0; i < MANY; i++)
        set_make(set, i);
    for (size_t part = 0; part < LENGTH(parts); part++) {
        arrange(set->order, which);
        for (size_t i = 0; i < parts[part]; i++)
            set_free(set, set->order[i]);
        set_verify(set, names[which]);
        for (size_t i = 0; i < parts[part]; i++)
            set_make(set, set->order[i]);
        set_verify(set, names[which]);
    }
    for (size_t i = 0; i < MANY; i++)
        set_free(set, set->order[i]);
}

/* Blocks that cannot stand beside each other do not wait for a free. */
static void free_none(void *data)
{
    struct set *set = data;
    for (size_t round = 0; round < 4; round++) {
        for (size_t i = 0; i < MANY; i++)
            set_make(set, i);
        set_verify(set, "never");
    }
}

PROPERTY(free_any_order,
    .id     = "free.any-order", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_FRESH, RANK_RESIZED, 16},
    .clause = "blocks can be freed in any order, and many of one size in a row",
    .source = "C17 7.22.3 paragraph 1: allocations are unordered, each ends by its deallocation",
    .why    = "Python drops arrays as references go, the garbage collector in its own order",
    .hint   = "merge only with neighbors that are free now; check how many blocks a cache takes",
    .looks  = "FAIL: byte 0 of 51 to be 0xb0 as it was written, while the first is freed first")
{
    struct set set = {.last_number = 0};
    control_run(free_none, &set, "where nothing is freed");
    for (enum order which = 0; which < ORDERS; which++) {
        for (size_t round = 0; round < 3; round += stride(3))
            free_in_order(&set, which);
    }
    check_rows();
}

/* ---- what is written into freed blocks --------------------------------------------------- */

/* Where a neighbour's poison shows first. */
static void expect_unpoisoned(unsigned char *p, size_t size, uint64_t number)
{
    expect_ends(&(struct block){p, size, number}, fmt("after free of a block of %zu bytes", size));
}

enum { MOST_IN_A_ROW = 9 };

/* So many blocks of a size, some of them side by side. */
static size_t make_row(unsigned char *p[MOST_IN_A_ROW], size_t size)
{
    size_t count = size <= 4096 ? MOST_IN_A_ROW : 3;
    for (size_t i = 0; i < count; i++) {
        p[i] = must_malloc(size);
        pattern_fill(p[i], size, i);
    }
    return count;
}

static void make_rows(void *data)
{
    unsigned char *p[MOST_IN_A_ROW];
    (void)data;
    for_each_size (size, 1 << 11) {
        if (size % 16 > 1)
            continue;
        for (size_t i = make_row(p, size); i > 0; i--)
            expect_unpoisoned(p[i - 1], size, i - 1);
    }
}

/* Every other one of a row is freed, and in the end all but the first. */
static unsigned char *free_between(size_t size)
{
    unsigned char *p[MOST_IN_A_ROW];
    size_t count = make_row(p, size);
    for (size_t i = 1; i < count; i += 2) {
        subject_free(p[i], size);
        expect_unpoisoned(p[i - 1], size, i - 1);
        expect_unpoisoned(p[i + 1], size, i + 1);
    }
    for (size_t i = 2; i < count; i += 2)
        subject_free(p[i], size);
    return p[0];
}

PROPERTY(free_poison_stays_inside,
    .id     = "free.poison-stays-inside", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_BESIDE, RANK_BESIDE, 14}, .slow_ms = 48,
    .clause = "free changes the bytes of no other block, at once or later",
    .source = "C17 7.22.3 paragraph 1: each allocation is disjoint from any other object",
    .why    = "debugging handlers overwrite what is freed; others keep their lists there",
    .hint   = "poison the size that was requested, and nothing once the block has gone back",
    .looks  = "FAIL: byte 0 of 1000 to be 0x7c as it was written, after free; seen 0xdd")
{
    enum { COMPANY = 7 };
    struct blocks blocks = {0};
    control_run(make_rows, NULL, "where nothing is freed");
    for_each_size (size, 1 << 16) {
        if (size % stride(16) > 1)
            continue;
        blocks_add(&blocks, free_between(size), size);
        if (blocks.count <= COMPANY)
            continue;
        size_t oldest = size % COMPANY;
        attribute_to("free.leaves-recycled-alone", NULL);
        expect_pattern(blocks.at[oldest].p, blocks.at[oldest].size, blocks.at[oldest].number,
                       "after many other blocks were freed");
        attribute_to("", NULL);
        blocks_free(&blocks, oldest);
    }
    blocks_verify(&blocks, "at the end");
    blocks_free_all(&blocks);
}

/* Blocks of many sizes that were freed, and whose memory is in use again. */
struct recycled {
    struct blocks small, large;
};

static void recycle(struct recycled *recycled)
{
    enum { SMALL = 400, LARGE = 4 };
    static const size_t large[LARGE] = {300000, (1 << 20) + 100, (1 << 20) + 100, 5 << 20};
    while (recycled->small.count > 0)
        blocks_free(&recycled->small, recycled->small.count - 1);
    while (recycled->large.count > 0)
        blocks_free(&recycled->large, recycled->large.count - 1);
    for (size_t i = 0; i < SMALL; i++) {
        size_t size = i % 40 == 39 ? 500 * i : 1 + i % 200;
        blocks_add(&recycled->small, must_malloc(size), size);
    }
    for (size_t i = 0; i < LARGE; i++) {
        void *p = subject_malloc(large[i]);
        if (p != NULL)
            blocks_add_large(&recycled->large, p, large[i]);
    }
}

static void verify_recycled(const struct recycled *recycled, const char *when)
{
    blocks_verify(&recycled->small, "%s", when);
    blocks_verify_samples(&recycled->large, "%s", when);
}

/* For what a handler has come due. */
static void call_each(void)
{
    for (size_t size = 100; size <= 1000000; size *= 100) {
        void *p = subject_malloc(size), *q = subject_calloc(1, size);
        void *moved = p != NULL ? subject_realloc(p, size / 2) : NULL;
        if (p != NULL)
            subject_free(moved != NULL ? moved : p, moved != NULL ? size / 2 : size);
        give_back(q, size);
    }
}

PROPERTY(free_leaves_recycled_alone,
    .id     = "free.leaves-recycled-alone", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_BESIDE, RANK_IN_USE, 15}, .slow_ms = 56,
    .clause = "deferred work on a freed block stops when its memory is handed out again: nothing "
              "writes there, then or seconds later",
    .source = "C17 6.2.4 paragraph 2: an object keeps its last-stored value in its lifetime",
    .why    = "an array would change long after another one was deleted",
    .hint   = "check under malloc's lock that the block is free before you poison or wipe it",
    .looks  = "FAIL: byte 0 of 36 to be 0xe4 as it was written, 24 ms after it was made; seen 0xdd")
{
    enum { ROUNDS = 3, WAITS = 3, MILLISECONDS = 12 };
    struct recycled recycled = {.small = {0}};
    recycle(&recycled);
    verify_recycled(&recycled, "where nothing was freed before");
    for (int round = 0; round < ROUNDS; round++)
        recycle(&recycled);
    for (int waits = 1; waits <= WAITS; waits++) {
        nanosleep(&(struct timespec){0, MILLISECONDS * 1000000}, NULL);
        verify_recycled(&recycled, fmt("%d ms after it was made of what had been freed, and no "
                                       "call since",
                                       waits * MILLISECONDS));
    }
    for (int jumps = 0; jumps < 2; jumps++) {
        clock_jump(jumps == 0 ? 2 : 60);
        call_each();
        verify_recycled(&recycled, "after a call that came seconds later by the clock");
    }
    blocks_free_all(&recycled.small);
    blocks_free_all(&recycled.large);
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
    .clause = "freed memory is given back or reused: cycles of the same work do not grow",
    .source = "C17 7.22.3.3: free makes the space available for further allocation",
    .why    = "a loop over temporaries would otherwise end in MemoryError",
    .hint   = "bound caches and quarantine; free on every path; do not mark blocks by contents",
    .looks  = "WARN: memory to stop growing while blocks are made and freed; 75000 KiB more mapped")
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
    .clause = "memory of many blocks freed in a row, or in growing sizes, is used again",
    .source = "C17 7.22.3.3: free makes the space available for further allocation",
    .why    = "a list of arrays is dropped at once, again and again",
    .hint   = "count what a full cache gives back; remember the whole length of a reused mapping",
    .looks  = "WARN: memory to stop growing while 900 blocks are made, then freed; 7392 KiB more")
{
    expect_no_growth(20, make_and_free_burst, NULL, NULL,
                     "900 blocks of up to 4000 bytes are made, and then freed");
    expect_no_growth(2, make_and_free_falling, NULL, NULL,
                     "blocks of 7 MiB, 6, 5, 4, 3 and 2 are made and freed, one at a time");
}
