/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The suites of tests/unit: one for each file beside this, which tests one file of src/.
 */
#ifndef CONFORM_TESTS_UNIT_H
#define CONFORM_TESTS_UNIT_H

#include <check.h>

/* As ck_assert, which writes to a file each time it is passed: for loops of many thousands. */
#define assert_in_loop(condition)                                                                  \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg("Assertion '%s' failed", #condition);                                     \
    } while (0)

/* How many rows a table has, for tcase_add_loop_test. */
#define ROWS(table) ((int)(sizeof(table) / sizeof *(table)))

Suite *suite_asked(void);
Suite *suite_attribution(void);
Suite *suite_live_table(void);
Suite *suite_breakpoint(void);
Suite *suite_call_list(void);
Suite *suite_claims(void);
Suite *suite_fill(void);
Suite *suite_memcheck(void);
Suite *suite_object_file(void);
Suite *suite_options(void);
Suite *suite_place(void);
Suite *suite_property(void);
Suite *suite_random(void);
Suite *suite_record(void);
Suite *suite_replay(void);
Suite *suite_report(void);
Suite *suite_search(void);
Suite *suite_shrink(void);
Suite *suite_sizes(void);
Suite *suite_small_scope(void);
Suite *suite_standstill(void);
Suite *suite_suggestion(void);
Suite *suite_text(void);
Suite *suite_trace(void);
Suite *suite_version(void);

#endif
