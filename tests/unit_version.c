/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/base/version.c: ranges of versions.
 */
#include "unit.h"

#include "base/version.h"

static const struct {
    const char *version, *range;
    int is_in;
} rows[] = {
    {"1.26.4", ">=1.25,<2.4", 1},
    {"2.4.0", ">=1.25,<2.4", 0},
    {"2.3.9", " >= 1.25 , < 2.4 ", 1},
    {"1.9", "<1.10", 1},
    {"2.0.0rc1", "==2", 1},
    {"2.5.0.dev0+git1", ">2.4", 1},
    {"2.5.0.dev0+git1", "<2.5", 0},
    {"3.14.0t", "~=3.14", 1},
    {"3.15.0", "~=3.14", 1},
    {"4.0", "~=3.14", 0},
    {"3.15.0", "~=3.14.0", 0},
    {"1.26.4", "==1.26", 0},
    {"1.26.0", "==1.26", 1},
    {"1.26.4", "==1.26.*", 1},
    {"1.26.4", "!=1.26.*", 0},
    {"1.27", "!=1.26.*", 1},
    {"1.26.4", "!=1.26.4", 0},
    {"1.26", "<=1.26", 1},
    {"1.26.1", "<=1.26", 0},
    {"", ">=0", 0},
    {"unknown", ">=0", 0},
};

START_TEST(a_version_is_in_a_range)
{
    ck_assert_int_eq(version_in_range(rows[_i].version, rows[_i].range), rows[_i].is_in);
}
END_TEST

static const char *const unsound[] = {"",
                                      "1.2",
                                      ">=x",
                                      ">=1.",
                                      ">=1,",
                                      ",>=1",
                                      "===1.2",
                                      "~=1",
                                      ">=1.*",
                                      ">=1 2",
                                      ">= 1.99999999999",
                                      "><1",
                                      ">=1.2rc1"};

START_TEST(what_is_no_range_is_told)
{
    ck_assert_int_eq(version_in_range("1", unsound[_i]), -1);
}
END_TEST

TCase *case_version(void)
{
    TCase *tcase = tcase_create("version");
    tcase_add_loop_test(tcase, a_version_is_in_a_range, 0, ROWS(rows));
    tcase_add_loop_test(tcase, what_is_no_range_is_told, 0, ROWS(unsound));
    return tcase;
}
