/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/model/property.c: the registry, here with properties of its own instead of the battery. They
 * are what tests/unit_report.c reports about, too.
 */
#include "unit.h"

#include <string.h>

#include "model/property.h"

#define PLAIN                                                                                      \
    .title = "a title", .clause = "it holds", .source = "here", .why = "because", .hint = "do it"

static const char *ran;

/* Not in the order in which they are to be listed. */

PROPERTY(stray, .id = "stray.has-no-group", PLAIN)
{
    ran = "stray.has-no-group";
}

PROPERTY(later_first, .id = "later.zz-first", PLAIN)
{
    ran = "later.zz-first";
}

PROPERTY(sooner_first, .id = "sooner.first", .level = MUST, .basis = BASIS_C, PLAIN)
{
    ran = "sooner.first";
}

PROPERTY(later_second, .id = "later.aa-second", .level = SHOULD, .basis = BASIS_QOI,
         .target = TARGET_RUNTIME, .fixture = FIXTURE_FRESH, PLAIN)
{
    ran = "later.aa-second";
}

GROUP(later, 70, "Comes later.");
GROUP(sooner, 7, "Comes sooner.");
GROUP(late, 1, "A name that another one begins with, and no properties.");

static const char *const order[] = {"sooner.first", "later.zz-first", "later.aa-second",
                                    "stray.has-no-group"};

START_TEST(all_are_in_order)
{
    size_t count;
    const struct property *const *all = property_all(&count);
    ck_assert_uint_eq(count, ROWS(order));
    for (size_t i = 0; i < count; i++)
        ck_assert_str_eq(all[i]->id, order[i]);
    ck_assert_ptr_eq(property_all(&count), all);
}
END_TEST

START_TEST(each_is_found_and_is_its_block)
{
    const struct property *property = property_find(order[_i]);
    ck_assert_ptr_nonnull(property);
    ck_assert_str_eq(property->id, order[_i]);
    ck_assert_str_eq(property->clause, "it holds");
    ck_assert_ptr_nonnull(strstr(property->file, "unit_property.c"));
    ck_assert_int_gt(property->line, 1);
    property->run();
    ck_assert_str_eq(ran, order[_i]);
}
END_TEST

START_TEST(group_is_found_by_the_whole_name)
{
    ck_assert_str_eq(property_group(property_find("sooner.first"))->name, "sooner");
    ck_assert_str_eq(property_group(property_find("later.zz-first"))->about, "Comes later.");
    ck_assert_ptr_null(property_group(property_find("stray.has-no-group")));
}
END_TEST

TCase *case_property(void)
{
    TCase *tcase = tcase_create("property");
    tcase_add_test(tcase, all_are_in_order);
    tcase_add_loop_test(tcase, each_is_found_and_is_its_block, 0, ROWS(order));
    tcase_add_test(tcase, group_is_found_by_the_whole_name);
    return tcase;
}
