/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/base/live_table.c: every overlap is found, and nothing else is, wherever the blocks are.
 */
#include "unit.h"

#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))

#include <stdlib.h>
#include <sys/resource.h>

#include "base/live_table.h"
#include "base/random.h"
#include "base/size_bits.h"

static enum live_table_state put(struct live_table *map, uintptr_t address, size_t size)
{
    struct live_block block = {.address = address, .size = size};
    return live_table_insert(map, &block, NULL);
}

/* ck_assert writes to a file each time that it is passed: too slow for loops. */
#define SURE(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg("%s", #condition);                                                        \
    } while (0)

/* ---- pairs -------------------------------------------------------------------------------- */

#define TOP UINTPTR_MAX
#define HUGE_SIZE POWER_OF_2(47)

/* A first block, and what comes of a second. */
static const struct {
    uintptr_t address;
    size_t size;
    uintptr_t address2;
    size_t size2;
    enum live_table_state state;
} pairs[] = {
    {4096, 100, 4096, 100, LIVE_TABLE_OVERLAPS}, /* the same */
    {4096, 100, 4096, 1, LIVE_TABLE_OVERLAPS},
    {4096, 100, 4096, 0, LIVE_TABLE_OVERLAPS},
    {4096, 0, 4096, 0, LIVE_TABLE_OVERLAPS},
    {4096, 0, 4097, 0, LIVE_TABLE_DONE},
    {4096, 0, 4095, 1, LIVE_TABLE_DONE},
    {4096, 0, 4095, 2, LIVE_TABLE_OVERLAPS},
    {4096, 100, 4146, 10, LIVE_TABLE_OVERLAPS}, /* inside */
    {4096, 100, 4146, 0, LIVE_TABLE_OVERLAPS},
    {4096, 100, 4195, 100, LIVE_TABLE_OVERLAPS}, /* by one byte */
    {4096, 100, 4196, 100, LIVE_TABLE_DONE},
    {4096, 100, 3997, 100, LIVE_TABLE_OVERLAPS},
    {4096, 100, 3996, 100, LIVE_TABLE_DONE},
    {4096, 100, 4000, 1000, LIVE_TABLE_OVERLAPS}, /* around */
    {4096, 100, 1, 1 << 30, LIVE_TABLE_OVERLAPS},
    {4095, 2, 4096, 8, LIVE_TABLE_OVERLAPS}, /* across a page */
    {4095, 1, 4096, 8, LIVE_TABLE_DONE},
    {4096, 8, 4000, 97, LIVE_TABLE_OVERLAPS},
    {4096, 8, 4000, 96, LIVE_TABLE_DONE},
    {262143, 2, 262144, 8, LIVE_TABLE_OVERLAPS}, /* across a group of pages */
    {262143, 1, 262144, 8, LIVE_TABLE_DONE},
    {262144, 8, 100, 262045, LIVE_TABLE_OVERLAPS},
    {262144, 8, 100, 262044, LIVE_TABLE_DONE},
    {1, HUGE_SIZE, HUGE_SIZE / 2, 1, LIVE_TABLE_OVERLAPS},
    {1, HUGE_SIZE, HUGE_SIZE, 1, LIVE_TABLE_OVERLAPS},
    {1, HUGE_SIZE, HUGE_SIZE + 1, 1, LIVE_TABLE_DONE},
    {HUGE_SIZE + 1, 1, 2, HUGE_SIZE, LIVE_TABLE_OVERLAPS},
    {HUGE_SIZE + 1, 1, 1, HUGE_SIZE, LIVE_TABLE_DONE},
    {1, 1, 0, 1, LIVE_TABLE_DONE},
    {1, 1, 0, 2, LIVE_TABLE_OVERLAPS},
    {1, 1, TOP, 1, LIVE_TABLE_DONE},
    {1, 1, TOP, 0, LIVE_TABLE_DONE},
    {1, 1, TOP, 2, LIVE_TABLE_IMPOSSIBLE},
    {1, 1, TOP - 4095, 4096, LIVE_TABLE_DONE},
    {1, 1, TOP - 4095, 4097, LIVE_TABLE_IMPOSSIBLE},
    {1, 1, TOP - 7, HUGE_SIZE, LIVE_TABLE_IMPOSSIBLE},
    {TOP, 1, TOP - 100, 101, LIVE_TABLE_OVERLAPS},
    {TOP, 1, TOP - 100, 100, LIVE_TABLE_DONE},
    {TOP, 1, TOP - HUGE_SIZE + 1, HUGE_SIZE, LIVE_TABLE_OVERLAPS},
    {TOP - HUGE_SIZE, HUGE_SIZE, TOP - 1, 1, LIVE_TABLE_OVERLAPS},
    {TOP - HUGE_SIZE, HUGE_SIZE, TOP, 1, LIVE_TABLE_DONE},
    {4096, 1, 2, SIZE_MAX, LIVE_TABLE_IMPOSSIBLE},
#if SIZE_MAX > UINT32_MAX
    {4096, 1, 8192, POWER_OF_2(48) - 1, LIVE_TABLE_DONE},
    {4096, 1, 8192, POWER_OF_2(48), LIVE_TABLE_IMPOSSIBLE},
#endif
};

START_TEST(second_block_is_judged)
{
    struct live_table *map = live_table_new();
    struct live_block second = {pairs[_i].address2, pairs[_i].size2, 2, 0}, other = {0};
    ck_assert_int_eq(put(map, pairs[_i].address, pairs[_i].size), LIVE_TABLE_DONE);
    ck_assert_int_eq(live_table_insert(map, &second, &other), pairs[_i].state);
    ck_assert_uint_eq(live_table_count(map), pairs[_i].state == LIVE_TABLE_DONE ? 2 : 1);
    ck_assert_uint_eq(other.address,
                      pairs[_i].state == LIVE_TABLE_OVERLAPS ? pairs[_i].address : 0);
    if (pairs[_i].state == LIVE_TABLE_OVERLAPS) {
        ck_assert_uint_eq(other.size, pairs[_i].size);
        ck_assert(live_table_remove(map, pairs[_i].address, NULL));
        ck_assert_int_eq(live_table_insert(map, &second, &other), LIVE_TABLE_DONE);
    }
    live_table_free(map);
}
END_TEST

/* ---- what is kept ------------------------------------------------------------------------- */

START_TEST(everything_about_a_block_is_kept)
{
    static const struct live_block kept[] = {
        {1, 0, 0, 0},
        {TOP / 2 + 4113, POWER_OF_2(SIZE_BITS / 4 * 3) - 1, 0xffffffffffff, 0xffffffff},
        {16, 24, 0x123456789abc, 0x89abcdef},
        {64, 0x1000, 0x1, 0xffff0000},
        {TOP / 2 - 239, 7, 0xffff00000000, 0x0000ffff},
    };
    struct live_table *map = live_table_new();
    struct live_block found;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        ck_assert_int_eq(live_table_insert(map, &kept[i], NULL), LIVE_TABLE_DONE);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        ck_assert(live_table_find(map, kept[i].address, &found));
        ck_assert_uint_eq(found.address, kept[i].address);
        ck_assert_uint_eq(found.size, kept[i].size);
        ck_assert_uint_eq(found.number, kept[i].number);
        ck_assert_uint_eq(found.data, kept[i].data);
        ck_assert(!live_table_find(map, kept[i].address + 1, NULL));
        ck_assert(!live_table_remove(map, kept[i].address - 1, NULL));
    }
    live_table_free(map);
}
END_TEST

START_TEST(numbers_have_48_bits)
{
    struct live_table *map = live_table_new();
    struct live_block block = {.address = 16, .size = 16, .number = (uint64_t)1 << 48};
    ck_assert_int_eq(live_table_insert(map, &block, NULL), LIVE_TABLE_IMPOSSIBLE);
    block.number--;
    ck_assert_int_eq(live_table_insert(map, &block, NULL), LIVE_TABLE_DONE);
    live_table_free(map);
}
END_TEST

/* ---- beside a naive map ------------------------------------------------------------------- */

/* An array, sorted by address, and 128 bits to add in. */
enum { MODEL_ROOM = 1500 };
struct model {
    struct live_block block[MODEL_ROOM];
    size_t count;
};

static uintptr_t last_of(const struct live_block *block)
{
    return block->address + (block->size != 0 ? block->size - 1 : 0);
}

/* How many begin below the address. */
static size_t model_below(const struct model *model, uintptr_t address)
{
    size_t low = 0, high = model->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (model->block[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct live_block *model_find(const struct model *model, uintptr_t address)
{
    size_t at = model_below(model, address);
    return at < model->count && model->block[at].address == address ? &model->block[at] : NULL;
}

/* Every one is compared, because this is what the map is measured by. */
static bool model_overlaps(const struct model *model, const struct live_block *block)
{
    for (size_t i = 0; i < model->count; i++) {
        const struct live_block *other = &model->block[i];
        if (other->address <= last_of(block) && block->address <= last_of(other))
            return true;
    }
    return false;
}

static void model_insert(struct model *model, const struct live_block *block)
{
    size_t at = model_below(model, block->address);
    memmove(&model->block[at + 1], &model->block[at], (model->count - at) * sizeof *block);
    model->block[at] = *block;
    model->count++;
}

static void model_remove(struct model *model, uintptr_t address)
{
    size_t at = model_below(model, address);
    model->count--;
    memmove(&model->block[at], &model->block[at + 1], (model->count - at) * sizeof *model->block);
}

static void assert_same_block(const struct live_block *a, const struct live_block *b)
{
    SURE(a->address == b->address);
    SURE(a->size == b->size);
    SURE(a->number == b->number);
    SURE(a->data == b->data);
}

struct walk {
    const struct model *model;
    size_t seen;
};

static bool compare_next(const struct live_block *block, void *data)
{
    struct walk *walk = data;
    SURE(walk->seen < walk->model->count);
    assert_same_block(block, &walk->model->block[walk->seen++]);
    return true;
}

static void assert_same(const struct live_table *map, const struct model *model)
{
    struct walk walk = {model, 0};
    live_table_each(map, compare_next, &walk);
    SURE(walk.seen == model->count);
    SURE(live_table_count(map) == model->count);
}

/* Where blocks are, and how large. */
static struct live_block in_four_pages(struct random *random)
{
    return (struct live_block){0x7f0000000000 + random_below(random, 4 * 4096),
                               random_below(random, 9), 0, 0};
}

static struct live_block across_groups(struct random *random)
{
    return (struct live_block){0x7f0000000000 - 300000 + random_below(random, 600000),
                               random_below(random, 4000), 0, 0};
}

static struct live_block like_mallocs(struct random *random)
{
    return (struct live_block){0x55d4c3a01010 + 16 * random_below(random, 60000),
                               16 + random_below(random, 497), 0, 0};
}

static struct live_block mappings(struct random *random)
{
    return (struct live_block){0x7f0000000000 + 4096 * random_below(random, 1 << 20),
                               4096 * random_below(random, 700), 0, 0};
}

/* All of the bits of an address, and often what is near their ends; sizes up to 2^47. */
static struct live_block hostile(struct random *random)
{
    uint64_t dice = random_next(random);
    uintptr_t address = (uintptr_t)random_next(random) >> dice % SIZE_BITS;
    size_t size = random_next(random) >> 17 >> (dice >> 8) % 48;
    return (struct live_block){dice >> 32 & 1 ? address : ~address, size, 0, 0};
}

static struct live_block (*const regimes[])(struct random *) = {
    in_four_pages, across_groups, like_mallocs, mappings, hostile,
};

static void insert_both(struct live_table *map, struct model *model, struct live_block block)
{
    struct live_block other;
    bool possible = last_of(&block) >= block.address;
    bool overlaps = possible && model_overlaps(model, &block);
    enum live_table_state expected = !possible  ? LIVE_TABLE_IMPOSSIBLE
                                     : overlaps ? LIVE_TABLE_OVERLAPS
                                                : LIVE_TABLE_DONE;
    SURE(live_table_check(map, block.address, block.size, NULL) == expected);
    SURE(live_table_insert(map, &block, &other) == expected);
    if (expected == LIVE_TABLE_DONE)
        model_insert(model, &block);
    if (expected != LIVE_TABLE_OVERLAPS)
        return;
    const struct live_block *named = model_find(model, other.address);
    SURE(named != NULL);
    assert_same_block(&other, named);
    SURE(other.address <= last_of(&block) && block.address <= last_of(&other));
}

static void remove_both(struct live_table *map, struct model *model, uintptr_t address)
{
    const struct live_block *expected = model_find(model, address);
    struct live_block found, removed;
    SURE(live_table_find(map, address, &found) == (expected != NULL));
    SURE(live_table_remove(map, address, &removed) == (expected != NULL));
    if (expected == NULL)
        return;
    assert_same_block(&found, expected);
    assert_same_block(&removed, expected);
    model_remove(model, address);
}

/* Grows to some thousand blocks, and to none again, several times over. */
START_TEST(random_histories_agree_with_a_naive_map)
{
    struct random random = random_for(49, "live_table");
    struct live_table *map = live_table_new();
    struct model *model = calloc(1, sizeof *model);
    size_t most = 0;
    random.state += (uint64_t)_i;
    for (uint64_t step = 1; step <= 40000; step++) {
        bool growing = step % 10000 < 6000;
        struct live_block block = regimes[_i](&random);
        block.number = step;
        block.data = (uint32_t)random_next(&random);
        if (model->count == 0 || (random_below(&random, 4) != 0) == growing) {
            if (model->count < MODEL_ROOM)
                insert_both(map, model, block);
        } else if (random_below(&random, 8) == 0) {
            remove_both(map, model, block.address);
        } else {
            remove_both(map, model, model->block[random_below(&random, model->count)].address);
        }
        most = model->count > most ? model->count : most;
        if (step % 1024 == 0)
            assert_same(map, model);
    }
    ck_assert_uint_gt(most, 100);
    while (model->count > 0)
        remove_both(map, model, model->block[random_below(&random, model->count)].address);
    assert_same(map, model);
    free(model);
    live_table_free(map);
}
END_TEST

/* ---- size --------------------------------------------------------------------------------- */

/* 300000 blocks by rising address with `gap` bytes from one to the next, or what addresses there
 * are for: each costs less than 100 bytes, or half a percent of a gap that is large. */
static const size_t gaps[] = {1, 16, 272, 4096, 8192, 1 << 16, 1 << 18, 1 << 21};

START_TEST(blocks_take_little)
{
    const size_t count = MIN(300000, (SIZE_MAX - 0x10000) / gaps[_i]);
    struct live_table *map = live_table_new();
    for (size_t i = 0; i < count; i++)
        SURE(put(map, 0x10000 + i * gaps[_i], gaps[_i]) == LIVE_TABLE_DONE);
    SURE(live_table_count(map) == count);
    ck_assert_msg(live_table_bytes(map) < MAX(100, gaps[_i] / 200) * count,
                  "%zu bytes a block, at %zu bytes from each other", live_table_bytes(map) / count,
                  gaps[_i]);
    for (size_t i = 0; i < count; i++)
        SURE(live_table_remove(map, 0x10000 + i * gaps[_i], NULL));
    size_t before = live_table_bytes(map);
    for (size_t i = 0; i < count; i++) /* what was taken is used again */
        SURE(put(map, 0x10000 + i * gaps[_i], gaps[_i]) == LIVE_TABLE_DONE);
    ck_assert_uint_le(live_table_bytes(map), before);
    live_table_free(map);
}
END_TEST

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif

#ifndef HAS_ASAN /* which does not live within a limit of the address space */
START_TEST(without_memory_it_stays_as_it_was)
{
    struct rlimit limit = {(rlim_t)96 << 20, (rlim_t)96 << 20};
    struct random random = {49};
    struct live_table *map = live_table_new();
    enum live_table_state state;
    size_t count = 0, refused = 0;
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
    while (refused < 1000) {
        struct live_block block = {(random_next(&random) >> 17) % (UINTPTR_MAX - 4096),
                                   random_below(&random, 4096), 0, 0};
        state = live_table_insert(map, &block, NULL);
        SURE(state == LIVE_TABLE_DONE || state == LIVE_TABLE_NO_MEMORY ||
             state == LIVE_TABLE_OVERLAPS);
        SURE(state == LIVE_TABLE_OVERLAPS ||
             live_table_find(map, block.address, NULL) == (state == LIVE_TABLE_DONE));
        count += state == LIVE_TABLE_DONE;
        refused += state == LIVE_TABLE_NO_MEMORY;
        SURE(live_table_count(map) == count);
    }
    ck_assert_uint_gt(count, 50000);
    live_table_free(map);
}
END_TEST
#endif

Suite *suite_live_table(void)
{
    Suite *suite = suite_create("live_table");
    TCase *tcase = tcase_create("live_table");
    tcase_set_timeout(tcase, 60);
    tcase_set_tags(tcase, "long"); /* too much for valgrind: tests/memcheck.py */
    tcase_add_loop_test(tcase, second_block_is_judged, 0, ROWS(pairs));
    tcase_add_test(tcase, everything_about_a_block_is_kept);
    tcase_add_test(tcase, numbers_have_48_bits);
    tcase_add_loop_test(tcase, random_histories_agree_with_a_naive_map, 0, ROWS(regimes));
    tcase_add_loop_test(tcase, blocks_take_little, 0, ROWS(gaps));
#ifndef HAS_ASAN
    tcase_add_test(tcase, without_memory_it_stays_as_it_was);
#endif
    suite_add_tcase(suite, tcase);
    return suite;
}
