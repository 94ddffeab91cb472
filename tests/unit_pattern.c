/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/base/pattern.c: what blocks are filled with.
 */
#include "unit.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/pattern.h"
#include "base/size_bits.h"

enum { MOST = 80 };

/* Whole words and single bytes write the same pattern, and nothing beside it. */
START_TEST(fill_writes_the_bytes_of_the_range_alone)
{
    for (size_t from = 0; from <= MOST; from++) {
        for (size_t to = from; to <= MOST; to++) {
            unsigned char p[MOST + 1];
            memset(p, 0xee, sizeof p);
            pattern_fill_range(p, from, to, 7);
            for (size_t i = 0; i <= MOST; i++)
                assert_in_loop(p[i] == (i >= from && i < to ? pattern_byte(7, i) : 0xee));
        }
    }
}
END_TEST

START_TEST(mismatch_is_the_first_wrong_byte)
{
    unsigned char p[MOST];
    for (size_t size = 0; size <= MOST; size++) {
        pattern_fill_range(p, 0, size, 3);
        ck_assert_uint_eq(pattern_mismatch(p, size, 3), size);
        for (size_t at = 0; at < size; at++) {
            p[at] ^= 1;
            if (at + 9 < size)
                p[at + 9] ^= 0x80; /* a later one does not matter */
            assert_in_loop(pattern_mismatch(p, size, 3) == at);
            pattern_fill_range(p, at, size, 3);
        }
    }
}
END_TEST

START_TEST(range_at_an_odd_address)
{
    unsigned char p[MOST + 8];
    for (size_t shift = 0; shift < 8; shift++) {
        pattern_fill_range(p + shift, 0, MOST, 5);
        ck_assert_uint_eq(pattern_mismatch(p + shift, MOST, 5), MOST);
    }
}
END_TEST

/* The mistakes that a pattern is there to show: another block's bytes, bytes at another offset,
 * zeros, and a stale copy of any of these. */
START_TEST(eight_bytes_tell_block_and_offset)
{
    unsigned char p[4096];
    for (uint64_t block = 1; block < 200; block++) {
        pattern_fill_range(p, 0, sizeof p, block);
        for (uint64_t other = 0; other < 200; other++)
            assert_in_loop((pattern_mismatch(p, 8, other) == 8) == (block == other));
        for (size_t shift = 1; shift < 128; shift++)
            assert_in_loop(pattern_mismatch(p + shift, 16, block) < 16);
        for (size_t at = 0; at < sizeof p; at += 8)
            assert_in_loop(memcmp(p + at, "\0\0\0\0\0\0\0\0", 8) != 0);
    }
}
END_TEST

START_TEST(mismatch_in_a_range)
{
    unsigned char p[MOST];
    pattern_fill_range(p, 0, MOST, 5);
    for (size_t from = 0; from <= MOST; from++) {
        for (size_t to = from; to <= MOST; to++) {
            assert_in_loop(pattern_mismatch_range(p, from, to, 5) == to);
            if (to == from)
                continue;
            p[to - 1] ^= 4;
            assert_in_loop(pattern_mismatch_range(p, from, to, 5) == to - 1);
            p[to - 1] ^= 4;
        }
    }
}
END_TEST

START_TEST(eight_bytes_tell_their_offset)
{
    unsigned char p[1024];
    for (uint64_t block = 0; block < 50; block++) {
        pattern_fill_range(p, 0, sizeof p, block);
        for (size_t at = 0; at < sizeof p; at += 8) {
            assert_in_loop(pattern_offset(p + at, block) == at);
            assert_in_loop(pattern_offset(p + at, block + 1) > POWER_OF_2(SIZE_BITS / 8 * 5));
        }
    }
}
END_TEST

static void assert_looked_at(unsigned char *p, size_t size, size_t at)
{
    for (size_t near = at > 8 ? at - 8 : 0; near < at + 8 && near < size; near++) {
        p[near] ^= 1;
        assert_in_loop(sample_mismatch(p, size, 9) == near);
        p[near] ^= 1;
    }
}

START_TEST(samples_are_where_bugs_are)
{
    static const size_t sizes[] = {1, 100, 4096, 4097, 65535, (1 << 20) + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i];
        unsigned char *p = calloc(1, size + 1);
        ck_assert_ptr_nonnull(p);
        sample_fill(p, size, 9);
        ck_assert_uint_eq(p[size], 0);
        ck_assert_uint_eq(sample_mismatch(p, size, 9), size);
        assert_looked_at(p, size, 0);
        assert_looked_at(p, size, size);
        assert_looked_at(p, size, size / 4096 * 4096);
        for (size_t power = 4096; power <= size; power *= 2)
            assert_looked_at(p, size, power);
        free(p);
    }
}
END_TEST

Suite *suite_pattern(void)
{
    Suite *suite = suite_create("pattern");
    TCase *tcase = tcase_create("pattern");
    tcase_add_test(tcase, fill_writes_the_bytes_of_the_range_alone);
    tcase_add_test(tcase, mismatch_is_the_first_wrong_byte);
    tcase_add_test(tcase, range_at_an_odd_address);
    tcase_add_test(tcase, eight_bytes_tell_block_and_offset);
    tcase_add_test(tcase, mismatch_in_a_range);
    tcase_add_test(tcase, eight_bytes_tell_their_offset);
    tcase_add_test(tcase, samples_are_where_bugs_are);
    suite_add_tcase(suite, tcase);
    return suite;
}
