/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Unit tests of the runner's own parts, those that need neither Python nor a subject.  Prints TAP.
 */
#include "unit.h"

#include <stdlib.h>

static case_function *const cases[] = {
    case_attribution,    case_breakpoint,   case_call_list, case_claims,      case_fill,
    case_install_path,   case_interval_map, case_memcheck,  case_object_file, case_options,
    case_property,       case_random,       case_record,    case_replay,      case_report,
    case_requested_size, case_search,       case_sizes,     case_stall,       case_text,
    case_trace,          case_version};

int main(void)
{
    Suite *suite = suite_create("unit");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        suite_add_tcase(suite, cases[i]());
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
