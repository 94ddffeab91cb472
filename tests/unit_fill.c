/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/base/fill.c: what is written is found, and what is changed is seen.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/fill.h"
#include "base/random.h"
#include "base/size_bits.h"

/* ck_assert writes to a file each time that it is passed: too slow for loops. */
#define SURE(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg(__VA_ARGS__);                                                             \
    } while (0)

/* Up to which size blocks are done whole. */
static const struct fill_rules wholes[] = {{.whole = 0}, {.whole = 500}, {.whole = SIZE_MAX}};
static const struct fill_rules *const parts = &wholes[0];

/* A copy of its own, so that a sanitizer sees what is outside. */
static unsigned char *block_of(size_t size)
{
    unsigned char *p = malloc(size + (size == 0));
    memset(p, 0, size);
    return p;
}

START_TEST(any_size_is_written_and_found)
{
    const struct fill_rules *whole = &wholes[_i];
    for (size_t size = 0; size <= 3000; size++) {
        unsigned char *p = block_of(size);
        SURE(fill_check_zero(p, size, whole, size) == size, "zero, %zu", size);
        fill_write(p, size, whole, size);
        SURE(fill_check(p, size, whole, size) == size, "%zu bytes", size);
        SURE(fill_check(p, size, whole, size + 1) < size || size == 0, "%zu: not its number", size);
        SURE(fill_check_zero(p, size, whole, size) < size || size == 0, "not zero, %zu", size);
        free(p);
    }
}
END_TEST

/* Whole means every byte. */
START_TEST(every_byte_of_a_whole_block_counts)
{
    const struct fill_rules *whole = &wholes[_i];
    for (size_t size = 1; size <= 600; size++) {
        unsigned char *p = block_of(size);
        fill_write(p, size, whole, 49);
        for (size_t at = 0; at < size && fill_is_whole(size, whole); at++) {
            SURE(p[at] == pattern_byte(49, at), "byte %zu of %zu is not written", at, size);
            p[at] ^= 1;
            SURE(fill_check(p, size, whole, 49) == at, "byte %zu of %zu", at, size);
            SURE(fill_check_kept(p, size, (uintptr_t)p, size, whole, 49) == at, "kept %zu of %zu",
                 at, size);
            p[at] ^= 1;
        }
        free(p);
    }
}
END_TEST

START_TEST(ends_and_middle_of_a_large_block_count)
{
    for (size_t size = FILL_WHOLE + 1; size < 70000; size += size / 50 + 1) {
        unsigned char *p = block_of(size);
        size_t seen = 0;
        fill_write(p, size, parts, size);
        for (size_t at = 0; at < size; at++) {
            bool edge = at < FILL_STRETCH || at >= size - FILL_STRETCH + 8;
            bool written = p[at] != 0;
            p[at] ^= 255;
            size_t found = fill_check(p, size, parts, size);
            SURE(found == at || found == size, "byte %zu of %zu seen at %zu", at, size, found);
            SURE(found == at || (!edge && !written), "byte %zu of %zu", at, size);
            seen += found == at;
            p[at] ^= 255;
        }
        SURE(seen >= 2 * FILL_STRETCH && seen <= 4 * FILL_STRETCH + 8, "%zu of %zu", seen, size);
        free(p);
    }
}
END_TEST

/* What a realloc keeps, from any size to any: the last bytes that it has to keep are among what is
 * checked, and what it may lose is not. */
START_TEST(kept_parts_are_checked_to_their_end)
{
    static const size_t sizes[] = {1,   7,   31,  32,  33,  100, 127,  128,  129,
                                   200, 300, 499, 500, 501, 777, 1000, 5000, 70001};
    size_t count = sizeof sizes / sizeof *sizes;
    const struct fill_rules *whole = &wholes[_i];
    for (size_t pair = 0; pair < count * count; pair++) {
        size_t size = sizes[pair / count], kept = sizes[pair % count];
        if (kept > size)
            continue;
        unsigned char *p = block_of(size), *moved = block_of(kept);
        fill_write(p, size, whole, pair);
        if (!fill_is_whole(size, whole))
            fill_last(p, kept, pair);
        SURE(fill_check(p, size, whole, pair) == size, "%zu", size);
        memcpy(moved, p, kept);
        SURE(fill_check_kept(moved, kept, (uintptr_t)p, size, whole, pair) == kept, "%zu of %zu",
             kept, size);
        moved[kept - 1] ^= 1;
        SURE(fill_check_kept(moved, kept, (uintptr_t)p, size, whole, pair) == kept - 1,
             "last of %zu, %zu", kept, size);
        moved[kept - 1] ^= 1;
        moved[0] ^= 1;
        SURE(fill_check_kept(moved, kept, (uintptr_t)p, size, whole, pair) == 0, "first of %zu",
             kept);
        free(p);
        free(moved);
    }
}
END_TEST

/* ---- marks of pages -------------------------------------------------------------------------- */

enum { PAGE = 4096, PAGES = 1 << 11 };
static const struct fill_rules marks_too = {.marks = true};

/* Each page has one, or each second and so on, and no more than there are to be. */
START_TEST(pages_have_marks)
{
    static const size_t begins[] = {0, 16, FILL_MARK_AT, FILL_MARK_AT + 8, PAGE - 8};
    unsigned char *pages = aligned_alloc(PAGE, (size_t)PAGES * PAGE);
    for (size_t size = 4 * PAGE; size <= (size_t)(PAGES - 1) * PAGE; size += size / 3) {
        unsigned char *p = (unsigned char *)memset(pages, 0, (size_t)PAGES * PAGE) + begins[_i];
        size_t marks = 0;
        SURE(fill_check_zero(p, size, &marks_too, 49) == size, "%zu", size);
        fill_write(p, size, &marks_too, 49);
        SURE(fill_check(p, size, &marks_too, 49) == size, "%zu", size);
        for (size_t at = begins[_i] > FILL_MARK_AT ? PAGE : 0; at < begins[_i] + size; at += PAGE)
            marks += pages[at + FILL_MARK_AT] != 0;
        SURE(marks + 2 >= size / PAGE || marks >= FILL_MARKS_MOST / 2, "%zu: %zu", size, marks);
        SURE(marks <= FILL_MARKS_MOST + 1, "%zu: %zu", size, marks);
        for (size_t at = 0; at < size && marks < 4; at++) {
            bool is_written = p[at] != 0;
            p[at] ^= 255;
            SURE(!is_written || fill_check(p, size, &marks_too, 49) == at, "byte %zu of %zu", at,
                 size);
            p[at] ^= 255;
        }
    }
    free(pages);
}
END_TEST

/* Where a block was decides which words are looked at, and a page that it lost shows. */
START_TEST(marks_move_with_their_block)
{
    enum { SIZE = 20 * PAGE, TO = 64 };
    unsigned char *was = aligned_alloc(PAGE, SIZE), *is = aligned_alloc(PAGE, SIZE);
    fill_write(memset(was, 0, SIZE), SIZE, &marks_too, 49);
    for (size_t kept = 0; kept <= SIZE - TO; kept += 1000) {
        unsigned char *p = (unsigned char *)memset(is, 0, SIZE) + TO;
        fill_last(was, kept, 49);
        memcpy(p, was, kept);
        SURE(fill_check_kept(p, kept, (uintptr_t)was, SIZE, &marks_too, 49) == kept, "%zu", kept);
        for (size_t page = 0; (page + 1) * PAGE <= kept; page++) {
            memset(p + page * PAGE, 0, PAGE);
            SURE(fill_check_kept(p, kept, (uintptr_t)was, SIZE, &marks_too, 49) / PAGE == page,
                 "page %zu of %zu bytes", page, kept);
            memcpy(p + page * PAGE, was + page * PAGE, PAGE);
        }
    }
    free(was);
    free(is);
}
END_TEST

/* ---- patterns and samples ---- */

enum { MOST = 80 };

/* Writes nothing outside the range, and finds the byte that changed. */
START_TEST(a_range_is_written_and_checked)
{
    for (size_t from = 0; from <= MOST; from++) {
        for (size_t to = from; to <= MOST; to++) {
            unsigned char p[MOST + 1];
            memset(p, 0xee, sizeof p);
            pattern_fill_range(p, from, to, 7);
            for (size_t i = 0; i <= MOST; i++)
                assert_in_loop(p[i] == (i >= from && i < to ? pattern_byte(7, i) : 0xee));
            assert_in_loop(pattern_mismatch_range(p, from, to, 7) == to);
            if (from == to)
                continue;
            p[to - 1] ^= 4;
            assert_in_loop(pattern_mismatch_range(p, from, to, 7) == to - 1);
            p[from] ^= 8;
            assert_in_loop(pattern_mismatch_range(p, from, to, 7) == from);
        }
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

TCase *case_fill(void)
{
    TCase *tcase = tcase_create("fill");
    tcase_set_tags(tcase, "long"); /* too much for valgrind: tests/memcheck.py */
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, any_size_is_written_and_found, 0, ROWS(wholes));
    tcase_add_loop_test(tcase, every_byte_of_a_whole_block_counts, 0, ROWS(wholes));
    tcase_add_test(tcase, ends_and_middle_of_a_large_block_count);
    tcase_add_loop_test(tcase, kept_parts_are_checked_to_their_end, 0, ROWS(wholes));
    tcase_add_loop_test(tcase, pages_have_marks, 0, 5);
    tcase_add_test(tcase, marks_move_with_their_block);
    tcase_add_test(tcase, a_range_is_written_and_checked);
    tcase_add_test(tcase, eight_bytes_tell_block_and_offset);
    tcase_add_test(tcase, eight_bytes_tell_their_offset);
    tcase_add_test(tcase, samples_are_where_bugs_are);
    return tcase;
}
