/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The test cases of tests/unit: one for each file unit_NAME.c, which tests one file of src/.
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
typedef TCase *case_function(void);
case_function case_attribution, case_breakpoint, case_call_list, case_claims, case_fill,
    case_install_path, case_interval_map, case_memcheck, case_object_file, case_options,
    case_property, case_random, case_record, case_replay, case_report, case_requested_size,
    case_search, case_sizes, case_stall, case_text, case_trace, case_version;

#endif
