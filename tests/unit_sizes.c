/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/harness/sizes.c: which sizes the battery asks for.
 */
#include "unit.h"

#include <stdint.h>

#include "base/size_bits.h"
#include "harness/sizes.h"

START_TEST(sizes_rise_to_the_end)
{
    size_t last = 0, count = 0;
    for_each_size (size, SIZE_MAX) {
        assert_in_loop(size > last);
        last = size;
        count++;
    }
    ck_assert_uint_ge(last, SIZE_MAX / 4);
    ck_assert_uint_lt(count, 6000);
}
END_TEST

/* Is `size` among them?  They rise, so it has to come right after what is just below it. */
static void assert_is_a_size(size_t size)
{
    ck_assert_msg(size_after(size - 1) == size, "%zu is left out: after %zu comes %zu", size,
                  size - 1, size_after(size - 1));
}

START_TEST(sizes_to_4096_one_by_one)
{
    for (size_t size = 1; size <= 4096; size++)
        assert_is_a_size(size);
}
END_TEST

START_TEST(sizes_at_the_edges_of_classes)
{
    for (int shift = 10; shift < SIZE_BITS - 5; shift++) {
        for (size_t fourths = 5; fourths <= 7; fourths++) {
            size_t edge = fourths << shift;
            ck_assert_uint_eq(edge_after(edge - 2), edge - 1);
            ck_assert_uint_eq(edge_after(edge - 1), edge);
            ck_assert_uint_eq(edge_after(edge), edge + 1);
            assert_is_a_size(edge);
            assert_is_a_size(edge + 1);
        }
    }
    ck_assert_uint_eq(edge_after(1), 5119);
}
END_TEST

START_TEST(sizes_beside_powers_of_two)
{
    static const int beside[] = {-64, -32, -16, -1, 0, 1, 16, 64};
    for (int shift = 12; shift < SIZE_BITS - 2; shift++) {
        for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
            assert_is_a_size(((size_t)1 << shift) + (size_t)beside[i]);
    }
}
END_TEST

TCase *case_sizes(void)
{
    TCase *tcase = tcase_create("sizes");
    tcase_add_test(tcase, sizes_rise_to_the_end);
    tcase_add_test(tcase, sizes_to_4096_one_by_one);
    tcase_add_test(tcase, sizes_at_the_edges_of_classes);
    tcase_add_test(tcase, sizes_beside_powers_of_two);
    return tcase;
}
