/* SPDX-License-Identifier: BSD-3-Clause
 *
 * libFuzzer's entry for reports in JSON: whatever is in one, it is taken for none, or compared with
 * itself, held against its summary, and made a page and a badge of; a bench is made a page of.
 */
#include <stdlib.h>

#include "report/bench_page.h"
#include "report/comparison.h"
#include "report/reading.h"
#include "report/report.h"
#include "report/summary.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void write_all(const json_t *value)
{
    char *words = NULL;
    size_t length;
    FILE *file = open_memstream(&words, &length);
    if (file == NULL)
        return;
    report_html(file, value);
    if (!is_bench(value))
        report_badge(file, value);
    fclose(file);
    free(words);
}

static void compare(const json_t *reports)
{
    struct options options = {.quiet = false};
    char *words = NULL;
    size_t length;
    FILE *file = open_memstream(&words, &length);
    struct comparison comparison = comparison_of(reports, reports, true);
    if (file != NULL) {
        comparison_print(file, &comparison, "fuzz", &options);
        fclose(file);
    }
    json_decref(comparison_object(&comparison, "fuzz"));
    comparison_free(&comparison);
    free(words);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    json_t *value = json_loadb((const char *)bytes, length, JSON_REJECT_DUPLICATES, NULL);
    if (value != NULL && is_bench(value) && bench_wrong(value) == NULL)
        write_all(value);
    if (value != NULL && reports_wrong(value) == NULL) {
        json_t *reports = reports_in(value, true), *report;
        size_t i;
        json_array_foreach(reports, i, report)
        {
            summary_wrong(report);
        }
        write_all(value);
        compare(reports);
        json_decref(reports);
    }
    json_decref(value);
    return 0;
}
