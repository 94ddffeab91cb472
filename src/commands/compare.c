/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --compare OLD NEW.
 */
#include "commands/compare.h"

#include <stdio.h>

#include "report/comparison.h"

enum exit_code compare_run(const struct options *options)
{
    json_t *before = comparison_read(options->operands[0], false);
    json_t *after = comparison_read(options->operands[1], false);
    struct comparison comparison = comparison_of(before, after, options->strict);
    comparison_print(stdout, &comparison, options->operands[0], options);
    bool fails = options->fail_on_new && comparison.failures > 0;
    comparison_free(&comparison);
    json_decref(before);
    json_decref(after);
    return fails ? EXIT_NOT_CONFORMANT : EXIT_CONFORMANT;
}
