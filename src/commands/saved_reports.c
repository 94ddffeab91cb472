/* SPDX-License-Identifier: BSD-3-Clause */
#include "commands/commands.h"

#include <stdlib.h>

#include "report/present.h"
#include "report/report_files.h"

enum exit_code saved_reports_run(const struct options *options)
{
    bool is_comparison = options->command == COMMAND_COMPARE;
    size_t operands = 0, used = 0;
    while (options->operands[operands] != NULL)
        operands++;
    const char **words = allocate(operands + 6, sizeof *words); /* 4 options, "--", NULL */
    if (options->command != COMMAND_REPORT) {
        words[used++] = is_comparison ? "--compare" : "--verify";
        if (options->quiet)
            words[used++] = "--quiet";
        if (is_comparison && options->strict)
            words[used++] = "--strict";
        if (is_comparison && options->fail_on_new)
            words[used++] = "--fail-on-new";
    }
    words[used++] = "--"; /* an operand may begin with a hyphen */
    for (size_t i = 0; i < operands; i++)
        words[used++] = options->operands[i];
    int status = EXIT_CONFORMANT;
    if (options->command == COMMAND_REPORT)
        report_files_write(report_files_open(options), NULL, words);
    else
        status = present(words, NULL, true);
    free(words);
    return (enum exit_code)status;
}
