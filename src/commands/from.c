/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --from FILE ...
 */
#include "commands/from.h"

#include <string.h>

#include "base/text.h"
#include "report/bench_page.h"
#include "report/members.h"
#include "report/reading.h"
#include "report/report.h"
#include "report/report_files.h"
#include "report/summary.h"

static void refuse(const char *file, size_t number, size_t count, const char *wrong)
{
    leave_with(EXIT_USAGE, "%s: %s%s", text_safe(file),
               count > 1 ? text("report %zu: ", number) : "", wrong);
}

/* The reports of a file, each with its name. */
static void add_reports(json_t *reports, json_t *root, const char *file)
{
    json_t *own = reports_of_file(root, file, true), *report;
    const char *slash = strrchr(file, '/');
    size_t i;
    json_array_foreach(own, i, report)
    {
        const json_t *bench = json_object_get(report, "bench");
        bool has_verdicts = json_object_get(report, "properties") != NULL;
        const char *wrong = has_verdicts ? summary_wrong(report) : NULL;
        if (wrong == NULL && bench != NULL)
            wrong = bench_wrong(bench);
        if (wrong != NULL)
            refuse(file, i + 1, json_array_size(own), wrong);
        json_object_set_new(report, "from", json_string(text_safe(slash ? slash + 1 : file)));
    }
    json_array_extend(reports, own);
    json_decref(own);
}

static bool has_handler(const json_t *bench, const char *name)
{
    const json_t *label;
    size_t i;
    json_array_foreach(json_object_get(bench, "handlers"), i, label)
    {
        if (strcmp(json_string_value(label), name) == 0)
            return true;
    }
    return false;
}

/* A bench goes with the first report of a handler that is in it, or else with the first. */
static void join(json_t *reports, json_t *bench, const char *file)
{
    json_t *report, *its = json_array_get(reports, 0);
    size_t i;
    if (its == NULL)
        leave_with(EXIT_USAGE,
                   "%s: a bench goes with a report: name one too, or look at what "
                   "--bench --html writes",
                   file);
    json_array_foreach(reports, i, report)
    {
        if (has_handler(bench, word(json_object_get(report, "subject"), "name"))) {
            its = report;
            break;
        }
    }
    if (json_object_get(its, "bench") != NULL)
        leave_with(EXIT_USAGE, "%s: the report that it goes with has a bench already", file);
    json_object_set_new(its, "bench", bench);
}

enum exit_code from_run(const struct options *options)
{
    json_t *reports = json_array(), *benches = json_array(), *bench;
    size_t i;
    for (char **file = options->operands; *file != NULL; file++) {
        json_t *root = reports_load(*file);
        if (!is_bench(root)) {
            add_reports(reports, root, *file);
            continue;
        }
        if (bench_wrong(root) != NULL)
            refuse(*file, 1, 1, bench_wrong(root));
        json_array_append_new(benches, json_pack("[o, s]", root, text_safe(*file)));
    }
    json_array_foreach(benches, i, bench)
    {
        join(reports, json_incref(json_array_get(bench, 0)),
             json_string_value(json_array_get(bench, 1)));
    }
    report_files_write_value(report_files_open(options), reports);
    json_decref(benches);
    json_decref(reports);
    return EXIT_CONFORMANT;
}
