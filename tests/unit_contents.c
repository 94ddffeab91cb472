/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/base/contents.c and page_marks.c: what is written is found, and what is changed is seen.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/contents.h"
#include "base/page_marks.h"
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

/* ---- marks of pages -------------------------------------------------------------------------- */

enum { PAGE = 4096, PAGES = 1 << 11 };

/* Each page has one, or each second and so on, and no more than there are to be. */
START_TEST(pages_have_marks)
{
    static const size_t begins[] = {0, 16, PAGE_MARK_AT, PAGE_MARK_AT + 8, PAGE - 8};
    unsigned char *pages = aligned_alloc(PAGE, (size_t)PAGES * PAGE);
    for (size_t size = PAGE; size <= (size_t)(PAGES - 1) * PAGE; size += size / 3) {
        unsigned char *p = (unsigned char *)memset(pages, 0, (size_t)PAGES * PAGE) + begins[_i];
        size_t marks = 0;
        SURE(page_marks_check_zero(p, size) == size, "%zu", size);
        page_marks_write(p, size, 49);
        SURE(page_marks_check(p, size, 49) == size, "%zu", size);
        for (size_t at = begins[_i] > PAGE_MARK_AT ? PAGE : 0; at < begins[_i] + size; at += PAGE)
            marks += pages[at + PAGE_MARK_AT] != 0;
        SURE(marks + 2 >= size / PAGE || marks >= PAGE_MARKS_MOST / 2, "%zu: %zu", size, marks);
        SURE(marks <= PAGE_MARKS_MOST + 1, "%zu: %zu", size, marks);
        for (size_t at = 0; at < size && marks < 4; at++) {
            bool is_written = p[at] != 0;
            p[at] ^= 255;
            SURE(!is_written || page_marks_check(p, size, 49) == at, "byte %zu of %zu", at, size);
            p[at] ^= 255;
        }
    }
    free(pages);
}
END_TEST

/* What one left is not zero to another one, of any size, that has any of its marked pages. */
START_TEST(a_page_that_was_marked_is_not_zero)
{
    unsigned char *pages = aligned_alloc(PAGE, (size_t)PAGES * PAGE);
    for (size_t from = 0; from < PAGES; from += 200) {
        for (size_t count = PAGE_MARKS_MOST; from + count <= PAGES; count *= 2) {
            memset(pages, 0, (size_t)PAGES * PAGE);
            page_marks_write(pages + 16, (size_t)PAGES * PAGE - 16, 49);
            unsigned char *p = pages + from * PAGE + 48;
            size_t size = count * PAGE - 48, at = page_marks_check_zero(p, size);
            SURE(at < size && p[at] != 0, "%zu pages from %zu on: %zu", count, from, at);
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
    page_marks_write(memset(was, 0, SIZE), SIZE, 49);
    for (size_t kept = 0; kept <= SIZE - TO; kept += 1000) {
        unsigned char *p = (unsigned char *)memset(is, 0, SIZE) + TO;
        memcpy(p, was, kept);
        SURE(page_marks_check_kept(p, kept, (uintptr_t)was, SIZE, 49) == kept, "%zu", kept);
        for (size_t page = 0; (page + 1) * PAGE <= kept; page++) {
            memset(p + page * PAGE, 0, PAGE);
            SURE(page_marks_check_kept(p, kept, (uintptr_t)was, SIZE, 49) / PAGE == page,
                 "page %zu of %zu bytes", page, kept);
            memcpy(p + page * PAGE, was + page * PAGE, PAGE);
        }
    }
    free(was);
    free(is);
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
    tcase_add_loop_test(tcase, pages_have_marks, 0, 5);
    tcase_add_test(tcase, a_page_that_was_marked_is_not_zero);
    tcase_add_test(tcase, marks_move_with_their_block);
    suite_add_tcase(suite, tcase);
    return suite;
}
