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

/* Each is in the file unit_NAME.c. */
typedef Suite *suite_function(void);
suite_function suite_attribution, suite_breakpoint, suite_call_list, suite_claims, suite_fill,
    suite_install_path, suite_interval_map, suite_memcheck, suite_object_file, suite_options,
    suite_property, suite_random, suite_record, suite_replay, suite_report, suite_requested_size,
    suite_search, suite_sizes, suite_small_scope, suite_stall, suite_text, suite_trace,
    suite_version;

#endif
