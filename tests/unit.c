/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Unit tests of the runner's own parts, those that need neither Python nor a subject.  Prints TAP.
 */
#include "unit.h"

#include <stdlib.h>

static suite_function *const suites[] = {
    suite_attribution,    suite_breakpoint,   suite_call_list, suite_claims,      suite_fill,
    suite_install_path,   suite_interval_map, suite_memcheck,  suite_object_file, suite_options,
    suite_property,       suite_random,       suite_record,    suite_replay,      suite_report,
    suite_requested_size, suite_search,       suite_sizes,     suite_small_scope, suite_stall,
    suite_text,           suite_trace,        suite_version};

int main(void)
{
    SRunner *runner = srunner_create(NULL);
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++)
        srunner_add_suite(runner, suites[i]());
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
