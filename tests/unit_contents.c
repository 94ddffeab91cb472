/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/base/contents.c: what is written is found, and what is changed is seen.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/contents.h"
#include "base/random.h"

/* ck_assert writes to a file each time that it is passed: too slow for loops. */
#define SURE(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg(__VA_ARGS__);                                                             \
    } while (0)

/* Up to which size blocks are done whole. */
static const size_t wholes[] = {0, 500, SIZE_MAX};

/* A copy of its own, so that a sanitizer sees what is outside. */
static unsigned char *block_of(size_t size)
{
    unsigned char *p = malloc(size + (size == 0));
    memset(p, 0, size);
    return p;
}

START_TEST(any_size_is_written_and_found)
{
    size_t whole = wholes[_i];
    for (size_t size = 0; size <= 3000; size++) {
        unsigned char *p = block_of(size);
        SURE(contents_check_zero(p, size, whole, size) == size, "zero, %zu", size);
        contents_write(p, size, whole, size);
        SURE(contents_check(p, size, whole, size) == size, "%zu bytes", size);
        SURE(contents_check(p, size, whole, size + 1) < size || size == 0, "%zu: not its number",
             size);
        SURE(contents_check_zero(p, size, whole, size) < size || size == 0, "not zero, %zu", size);
        free(p);
    }
}
END_TEST

/* Whole means every byte. */
START_TEST(every_byte_of_a_whole_block_counts)
{
    size_t whole = wholes[_i];
    for (size_t size = 1; size <= 600; size++) {
        unsigned char *p = block_of(size);
        contents_write(p, size, whole, 49);
        for (size_t at = 0; at < size && contents_are_whole(size, whole); at++) {
            SURE(p[at] == contents_byte(49, at), "byte %zu of %zu is not written", at, size);
            p[at] ^= 1;
            SURE(contents_check(p, size, whole, 49) == at, "byte %zu of %zu", at, size);
            SURE(contents_check_kept(p, size, size, whole, 49) == at, "kept %zu of %zu", at, size);
            p[at] ^= 1;
        }
        free(p);
    }
}
END_TEST

START_TEST(ends_and_middle_of_a_large_block_count)
{
    for (size_t size = CONTENTS_WHOLE + 1; size < 70000; size += size / 50 + 1) {
        unsigned char *p = block_of(size);
        size_t seen = 0;
        contents_write(p, size, 0, size);
        for (size_t at = 0; at < size; at++) {
            bool edge = at < CONTENTS_STRETCH || at >= size - CONTENTS_STRETCH + 8;
            bool written = p[at] != 0;
            p[at] ^= 255;
            size_t found = contents_check(p, size, 0, size);
            SURE(found == at || found == size, "byte %zu of %zu seen at %zu", at, size, found);
            SURE(found == at || (!edge && !written), "byte %zu of %zu", at, size);
            seen += found == at;
            p[at] ^= 255;
        }
        SURE(seen >= 2 * CONTENTS_STRETCH && seen <= 4 * CONTENTS_STRETCH + 8, "%zu of %zu", seen,
             size);
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
    size_t count = sizeof sizes / sizeof *sizes, whole = wholes[_i];
    for (size_t pair = 0; pair < count * count; pair++) {
        size_t size = sizes[pair / count], kept = sizes[pair % count];
        if (kept > size)
            continue;
        unsigned char *p = block_of(size), *moved = block_of(kept);
        contents_write(p, size, whole, pair);
        if (!contents_are_whole(size, whole))
            contents_write_last(p, kept, pair);
        SURE(contents_check(p, size, whole, pair) == size, "%zu", size);
        memcpy(moved, p, kept);
        SURE(contents_check_kept(moved, kept, size, whole, pair) == kept, "%zu of %zu", kept, size);
        moved[kept - 1] ^= 1;
        SURE(contents_check_kept(moved, kept, size, whole, pair) == kept - 1, "last of %zu, %zu",
             kept, size);
        moved[kept - 1] ^= 1;
        moved[0] ^= 1;
        SURE(contents_check_kept(moved, kept, size, whole, pair) == 0, "first of %zu", kept);
        free(p);
        free(moved);
    }
}
END_TEST

START_TEST(a_shift_is_seen)
{
    for (size_t size = 16; size < 400; size += 8) {
        unsigned char *p = block_of(size + 64);
        for (size_t shift = 1; shift <= 64 && shift < size; shift++) {
            contents_write(p, size, SIZE_MAX, 7);
            memmove(p + shift, p, size);
            SURE(contents_check(p + shift, size, SIZE_MAX, 7) == size, "%zu", size);
            SURE(contents_check(p, size, SIZE_MAX, 7) < size, "%zu by %zu", size, shift);
        }
        free(p);
    }
}
END_TEST

Suite *suite_contents(void)
{
    Suite *suite = suite_create("contents");
    TCase *tcase = tcase_create("contents");
    tcase_set_tags(tcase, "long"); /* too much for valgrind: tests/memcheck.py */
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, any_size_is_written_and_found, 0, ROWS(wholes));
    tcase_add_loop_test(tcase, every_byte_of_a_whole_block_counts, 0, ROWS(wholes));
    tcase_add_test(tcase, ends_and_middle_of_a_large_block_count);
    tcase_add_loop_test(tcase, kept_parts_are_checked_to_their_end, 0, ROWS(wholes));
    tcase_add_test(tcase, a_shift_is_seen);
    suite_add_tcase(suite, tcase);
    return suite;
}
