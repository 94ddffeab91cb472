/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Unit tests of the runner's own parts, those that need neither Python nor a subject.  Prints TAP.
 */
#include "unit.h"

#include <stdlib.h>

int main(void)
{
    SRunner *runner = srunner_create(NULL);
    srunner_add_suite(runner, suite_asked());
    srunner_add_suite(runner, suite_attribution());
    srunner_add_suite(runner, suite_live_table());
    srunner_add_suite(runner, suite_breakpoint());
    srunner_add_suite(runner, suite_call_list());
    srunner_add_suite(runner, suite_claims());
    srunner_add_suite(runner, suite_fill());
    srunner_add_suite(runner, suite_memcheck());
    srunner_add_suite(runner, suite_object_file());
    srunner_add_suite(runner, suite_options());
    srunner_add_suite(runner, suite_place());
    srunner_add_suite(runner, suite_property());
    srunner_add_suite(runner, suite_random());
    srunner_add_suite(runner, suite_record());
    srunner_add_suite(runner, suite_replay());
    srunner_add_suite(runner, suite_report());
    srunner_add_suite(runner, suite_search());
    srunner_add_suite(runner, suite_shrink());
    srunner_add_suite(runner, suite_sizes());
    srunner_add_suite(runner, suite_small_scope());
    srunner_add_suite(runner, suite_standstill());
    srunner_add_suite(runner, suite_suggestion());
    srunner_add_suite(runner, suite_text());
    srunner_add_suite(runner, suite_trace());
    srunner_add_suite(runner, suite_version());
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
