/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --compare OLD NEW.
 */
#include "commands/compare.h"

#include <stdio.h>

#include "report/comparison.h"
#include "report/reading.h"

enum exit_code compare_run(const struct options *options)
{
    json_t *before = reports_read(options->operands[0], true);
    json_t *after = reports_read(options->operands[1], true);
    struct comparison comparison = comparison_of(before, after, options->strict);
    comparison_print(stdout, &comparison, options->operands[0], options);
    enum exit_code code = options->fail_on_new ? comparison.status : EXIT_CONFORMANT;
    comparison_free(&comparison);
    json_decref(before);
    json_decref(after);
    return code;
}
