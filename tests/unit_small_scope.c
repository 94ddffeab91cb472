/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/search/small_scope.c: all short histories, each once.
 */
#include "unit.h"

#include <stdlib.h>

#include "base/random.h"
#include "search/generators.h"

/* How many there are, by the number of blocks that are live before each call. */
static uint64_t count_of(unsigned calls, unsigned live)
{
    if (calls == 0)
        return 1;
    uint64_t makes = live < SMALL_SLOTS ? 3 * SMALL_SIZES * count_of(calls - 1, live + 1) : 0;
    uint64_t resizes = live * SMALL_SIZES * count_of(calls - 1, live);
    uint64_t frees = live > 0 ? live * count_of(calls - 1, live - 1) : 0;
    return makes + resizes + frees;
}

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static uint64_t hash_of(const struct step *steps, size_t count)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < count; i++) {
        hash = random_mix(hash + steps[i].kind);
        hash = random_mix(hash + steps[i].block);
        hash = random_mix(hash + steps[i].first);
    }
    return hash;
}

START_TEST(each_is_written_once)
{
    enum { ONE = MOST_SMALL_CALLS + SMALL_SLOTS, PARTS = 2 };
    struct step steps[ONE]; /* room for one at a time */
    unsigned calls = (unsigned)_i + 1;
    uint64_t wanted = count_of(calls, 0), count = 0;
    uint64_t *hashes = calloc(wanted, sizeof *hashes);
    ck_assert_ptr_nonnull(hashes);
    for (unsigned part = 0; part < PARTS; part++) {
        struct small_scope scope = {
            .calls = calls, .most = calls, .size = {1, 2, 3, 4}, .part = part, .parts = PARTS};
        while (!scope.is_done) {
            size_t length = small_scope_write(&scope, steps, ONE);
            assert_in_loop(length == 0 || count < wanted);
            if (length > 0)
                hashes[count++] = hash_of(steps, length);
        }
        ck_assert_uint_eq(scope.whole, calls);
    }
    ck_assert_uint_eq(count, wanted);
    qsort(hashes, count, sizeof *hashes, by_value);
    for (uint64_t i = 1; i < count; i++)
        assert_in_loop(hashes[i - 1] != hashes[i]);
    free(hashes);
}
END_TEST

TCase *case_small_scope(void)
{
    TCase *tcase = tcase_create("small_scope");
    tcase_add_loop_test(tcase, each_is_written_once, 0, 4);
    return tcase;
}
