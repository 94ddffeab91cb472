/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --from FILE ...
 */
#include "commands/from.h"

#include <string.h>

#include "base/text.h"
#include "report/comparison.h"
#include "report/report.h"
#include "report/summary.h"

/* The reports of a file, each with its name. */
static void add_file(json_t *reports, const char *file)
{
    json_t *own = comparison_read(file, true), *report;
    const char *slash = strrchr(file, '/');
    size_t i;
    json_array_foreach(own, i, report)
    {
        bool has_verdicts = json_object_get(report, "properties") != NULL;
        const char *wrong = has_verdicts ? summary_wrong(report) : NULL;
        if (wrong != NULL)
            leave_with(EXIT_USAGE, "%s: %s%s", text_safe(file),
                       json_array_size(own) > 1 ? text("report %zu: ", i + 1) : "", wrong);
        json_object_set_new(report, "from", json_string(text_safe(slash ? slash + 1 : file)));
    }
    json_array_extend(reports, own);
    json_decref(own);
}

enum exit_code from_run(const struct options *options)
{
    json_t *reports = json_array();
    for (char **file = options->operands; *file != NULL; file++)
        add_file(reports, *file);
    report_files_write_value(report_files_open(options), reports);
    json_decref(reports);
    return EXIT_CONFORMANT;
}
