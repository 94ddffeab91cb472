/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/base/random.h: the same numbers on every machine, and other ones for each property.
 */
#include "unit.h"

#include "base/random.h"

/* splitmix64 from state 0 and from 1234567, as its authors' C code gives them. */
static const struct {
    uint64_t seed;
    uint64_t first[3];
} known[] = {
    {0, {0xe220a8397b1dcdafu, 0x6e789e6aa1b965f4u, 0x06c45d188009454fu}},
    {1234567, {6457827717110365317u, 3203168211198807973u, 9817491932198370423u}},
};

START_TEST(numbers_are_splitmix64s)
{
    struct random random = {known[_i].seed};
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(random_next(&random), known[_i].first[i]);
}
END_TEST

START_TEST(below_stays_below_and_reaches_all)
{
    struct random random = {49};
    for (uint64_t bound = 1; bound < 40; bound++) {
        uint64_t seen = 0;
        for (int i = 0; i < 2000; i++) {
            uint64_t number = random_below(&random, bound);
            assert_in_loop(number < bound);
            seen |= (uint64_t)1 << number;
        }
        ck_assert_uint_eq(seen, ((uint64_t)1 << bound) - 1);
    }
}
END_TEST

START_TEST(names_and_seeds_have_streams_of_their_own)
{
    static const char *const names[] = {"", "a", "b", "ab", "ba", "malloc.extent"};
    enum { NAMES = sizeof names / sizeof *names, SEEDS = 50 };
    uint64_t first[SEEDS * NAMES];
    for (int i = 0; i < SEEDS * NAMES; i++) {
        struct random random = random_for((uint64_t)(i / NAMES), names[i % NAMES]);
        struct random again = random_for((uint64_t)(i / NAMES), names[i % NAMES]);
        first[i] = random_next(&random);
        ck_assert_uint_eq(first[i], random_next(&again));
        for (int k = 0; k < i; k++)
            assert_in_loop(first[i] != first[k]);
    }
}
END_TEST

TCase *case_random(void)
{
    TCase *tcase = tcase_create("random");
    tcase_add_loop_test(tcase, numbers_are_splitmix64s, 0, ROWS(known));
    tcase_add_test(tcase, below_stays_below_and_reaches_all);
    tcase_add_test(tcase, names_and_seeds_have_streams_of_their_own);
    return tcase;
}
