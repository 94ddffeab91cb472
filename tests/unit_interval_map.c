/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/base/interval_map.c: it finds every overlap, and no other, wherever the intervals are.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/interval_map.h"
#include "base/random.h"
#include "base/size_bits.h"

/* ck_assert writes to a file each time that it passes: too slow for loops. */
#define SURE(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg("%s", #condition);                                                        \
    } while (0)

/* ---- pairs -------------------------------------------------------------------------------- */

#define TOP UINTPTR_MAX
#define HUGE_SIZE POWER_OF_2(47)

/* A first interval, and the result for a second one. */
static const struct {
    uintptr_t address;
    size_t size;
    uintptr_t address2;
    size_t size2;
    enum interval_state state;
} pairs[] = {
    {4096, 100, 4096, 100, INTERVAL_OVERLAPS}, /* the same */
    {4096, 100, 4096, 0, INTERVAL_OVERLAPS},
    {4096, 0, 4096, 0, INTERVAL_OVERLAPS},
    {4096, 0, 4097, 0, INTERVAL_FREE},
    {4096, 0, 4095, 1, INTERVAL_FREE},
    {4096, 0, 4095, 2, INTERVAL_OVERLAPS},
    {4096, 100, 4146, 10, INTERVAL_OVERLAPS},  /* inside */
    {4096, 100, 4195, 100, INTERVAL_OVERLAPS}, /* by one byte */
    {4096, 100, 4196, 100, INTERVAL_FREE},
    {4096, 100, 3997, 100, INTERVAL_OVERLAPS},
    {4096, 100, 3996, 100, INTERVAL_FREE},
    {4096, 100, 4000, 1000, INTERVAL_OVERLAPS}, /* around */
    {1, HUGE_SIZE, HUGE_SIZE, 1, INTERVAL_OVERLAPS},
    {1, HUGE_SIZE, HUGE_SIZE + 1, 1, INTERVAL_FREE},
    {HUGE_SIZE + 1, 1, 2, HUGE_SIZE, INTERVAL_OVERLAPS},
    {HUGE_SIZE + 1, 1, 1, HUGE_SIZE, INTERVAL_FREE},
    {1, 1, 0, 1, INTERVAL_FREE},
    {1, 1, 0, 2, INTERVAL_OVERLAPS},
    {1, 1, TOP, 1, INTERVAL_FREE},
    {1, 1, TOP, 0, INTERVAL_FREE},
    {1, 1, TOP, 2, INTERVAL_IMPOSSIBLE},
    {1, 1, TOP - 4095, 4097, INTERVAL_IMPOSSIBLE},
    {TOP, 1, TOP - 100, 101, INTERVAL_OVERLAPS},
    {TOP, 1, TOP - 100, 100, INTERVAL_FREE},
    {4096, 1, 2, SIZE_MAX, INTERVAL_IMPOSSIBLE},
};

START_TEST(finds_an_overlap_of_two)
{
    struct interval_map *map = interval_map_new();
    struct interval first = {pairs[_i].address, pairs[_i].size, UINT64_MAX};
    struct interval second = {pairs[_i].address2, pairs[_i].size2, 2}, other = {0};
    ck_assert_int_eq(interval_map_insert(map, first, NULL), INTERVAL_FREE);
    ck_assert_int_eq(interval_map_insert(map, second, &other), pairs[_i].state);
    if (pairs[_i].state == INTERVAL_OVERLAPS) {
        ck_assert_mem_eq(&other, &first, sizeof first);
        ck_assert(interval_map_remove(map, first.address, NULL));
        ck_assert_int_eq(interval_map_insert(map, second, &other), INTERVAL_FREE);
    }
    interval_map_free(map);
}
END_TEST

/* ---- compared with a sorted array --------------------------------------------------------- */

enum { MODEL_ROOM = 1500 };
struct model {
    struct interval at[MODEL_ROOM]; /* by rising address */
    size_t count;
};

static uintptr_t last_of(struct interval interval)
{
    return interval.address + (interval.size != 0 ? interval.size - 1 : 0);
}

/* Where intervals are, and how large. */
static const struct {
    uintptr_t base, step;
    uint64_t steps;
    size_t size_step;
    uint64_t sizes;
} regimes[] = {
    {0x7f0000000000, 1, 4 * 4096, 1, 9},                     /* bytes */
    {0x7f0000000000 - 300000, 1, 600000, 1, 500},            /* blocks of a few pages */
    {0x55d4c3a01010, 16, 60000, 1, 512},                     /* malloc's */
    {0x7f0000000000, 4096, 1 << 20, 4096, 700},              /* mappings */
    {0, POWER_OF_2(SIZE_BITS - 20), 1 << 20, 1 << 20, 1024}, /* the whole address space */
};

static struct interval draw(struct random *random, int i)
{
    return (struct interval){
        regimes[i].base + regimes[i].step * (uintptr_t)random_below(random, regimes[i].steps),
        regimes[i].size_step * (size_t)random_below(random, regimes[i].sizes), random_next(random)};
}

static void insert_both(struct interval_map *map, struct model *model, struct interval interval)
{
    struct interval other = {0};
    enum interval_state expected =
        last_of(interval) < interval.address ? INTERVAL_IMPOSSIBLE : INTERVAL_FREE;
    size_t below = 0;
    for (size_t i = 0; i < model->count; i++) {
        below += model->at[i].address < interval.address;
        if (expected == INTERVAL_FREE && model->at[i].address <= last_of(interval) &&
            interval.address <= last_of(model->at[i]))
            expected = INTERVAL_OVERLAPS;
    }
    SURE(interval_map_insert(map, interval, &other) == expected);
    SURE(expected != INTERVAL_OVERLAPS ||
         (other.address <= last_of(interval) && interval.address <= last_of(other)));
    if (expected == INTERVAL_FREE) {
        memmove(&model->at[below + 1], &model->at[below],
                (model->count++ - below) * sizeof interval);
        model->at[below] = interval;
    }
}

static void remove_both(struct interval_map *map, struct model *model, size_t i)
{
    struct interval found, removed;
    SURE(interval_map_find(map, model->at[i].address, &found));
    SURE(interval_map_remove(map, model->at[i].address, &removed));
    SURE(!interval_map_find(map, model->at[i].address, NULL));
    SURE(memcmp(&found, &model->at[i], sizeof found) == 0);
    SURE(memcmp(&removed, &found, sizeof found) == 0);
    memmove(&model->at[i], &model->at[i + 1], (--model->count - i) * sizeof found);
}

/* Grows to a thousand intervals and back to few, several times. */
START_TEST(agrees_with_a_sorted_array)
{
    struct random random = random_for(49, "interval_map");
    struct interval_map *map = interval_map_new();
    struct model *model = calloc(1, sizeof *model);
    size_t most = 0;
    random.state += (uint64_t)_i;
    for (uint64_t step = 1; step <= 40000; step++) {
        bool grows = step % 10000 < 6000;
        if (model->count == 0 || (random_below(&random, 4) != 0) == grows) {
            if (model->count < MODEL_ROOM)
                insert_both(map, model, draw(&random, _i));
        } else {
            remove_both(map, model, random_below(&random, model->count));
        }
        most = model->count > most ? model->count : most;
        if (step % 1024 != 0)
            continue;
        struct interval *list = interval_map_list(map);
        SURE(interval_map_count(map) == model->count);
        SURE(memcmp(list, model->at, model->count * sizeof *list) == 0);
        free(list);
    }
    ck_assert_uint_gt(most, 400);
    free(model);
    interval_map_free(map);
}
END_TEST

TCase *case_interval_map(void)
{
    TCase *tcase = tcase_create("interval_map");
    tcase_set_timeout(tcase, 60);
    tcase_set_tags(tcase, "long"); /* too much for valgrind: tests/memcheck.py */
    tcase_add_loop_test(tcase, finds_an_overlap_of_two, 0, ROWS(pairs));
    tcase_add_loop_test(tcase, agrees_with_a_sorted_array, 0, ROWS(regimes));
    return tcase;
}
