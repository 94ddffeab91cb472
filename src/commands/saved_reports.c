/* SPDX-License-Identifier: BSD-3-Clause */
#include "commands/saved_reports.h"

#include <stdlib.h>

#include "report/present.h"
#include "report/report_files.h"

/* The words, and then the operands; words that are NULL are left out.  The caller's to free. */
static const char **with_operands(const char *const *words, size_t count,
                                  const struct options *options)
{
    size_t operands = 0, used = 0;
    while (options->operands[operands] != NULL)
        operands++;
    const char **all = calloc(count + operands + 2, sizeof *all);
    if (all == NULL)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    for (size_t i = 0; i < count; i++) {
        if (words[i] != NULL)
            all[used++] = words[i];
    }
    all[used++] = "--"; /* an operand may begin with a hyphen */
    for (size_t i = 0; i < operands; i++)
        all[used++] = options->operands[i];
    return all;
}

enum exit_code from_run(const struct options *options)
{
    struct report_files *files = report_files_open(options);
    const char **words = with_operands(NULL, 0, options);
    report_files_write(files, NULL, words);
    free(words);
    return EXIT_CONFORMANT;
}

static enum exit_code print(const char *const *own, size_t count, const struct options *options)
{
    const char **words = with_operands(own, count, options);
    int status = present(words, NULL, true);
    free(words);
    return (enum exit_code)status;
}

enum exit_code compare_run(const struct options *options)
{
    const char *const own[] = {"--compare", options->quiet ? "--quiet" : NULL,
                               options->strict ? "--strict" : NULL,
                               options->fail_on_new ? "--fail-on-new" : NULL};
    return print(own, sizeof own / sizeof *own, options);
}

enum exit_code verify_run(const struct options *options)
{
    const char *const own[] = {"--verify", options->quiet ? "--quiet" : NULL};
    return print(own, sizeof own / sizeof *own, options);
}
