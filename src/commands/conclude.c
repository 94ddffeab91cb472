/* SPDX-License-Identifier: BSD-3-Clause
 *
 * From records to reports.
 */
#include "commands/conclude.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "model/attribution.h"
#include "report/reading.h"

struct selection selection_of(const struct options *options)
{
    size_t all;
    const struct property *const *properties = property_all(&all);
    const struct property *first = property_first();
    struct selection selection = {.properties = calloc(all + 2, sizeof(struct property *))};
    if (selection.properties == NULL)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    if (first == NULL)
        leave_with(EXIT_HARNESS_BROKE, "no property has .first");
    selection.first_is_implied = !options_take(options, first->id);
    selection.properties[selection.count++] = first;
    for (size_t i = 0; i < all; i++) {
        if (properties[i] != first && options_take(options, properties[i]->id))
            selection.properties[selection.count++] = properties[i];
    }
    return selection;
}

void conclude_settle(const struct selection *selection, struct board *board)
{
    if (attribution_settle(selection->properties, selection->count, board) != 0)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    const char *id = attribution_unsettled(selection->properties, selection->count, board);
    for (size_t i = 0; id != NULL && i < selection->count; i++) {
        struct record *record = board_record(board, i);
        if (strcmp(selection->properties[i]->id, id) != 0)
            continue;
        record->verdict = BROK;
        snprintf(record->seen, sizeof record->seen, "nobody answers for what ended it");
    }
}

size_t conclude_hidden(const struct selection *selection, const struct record *first,
                       bool interrupted)
{
    /* asked for or not, a first property that ended and did not pass is in the report */
    bool is_told = first->verdict != PASS && !(interrupted && first->verdict == INCOMPLETE);
    return selection->first_is_implied && !is_told ? 1 : 0;
}

json_t *conclude_baseline(const struct options *options)
{
    if (options->baseline == NULL)
        return NULL;
    json_t *baseline = reports_read(options->baseline, false);
    if (json_array_size(baseline) > 1)
        leave_with(EXIT_USAGE, "--baseline=%s: has several reports, which --compare takes",
                   text_safe(options->baseline));
    return baseline;
}

void conclude_compare(struct run *run, const json_t *baseline, struct comparison *comparison)
{
    if (baseline == NULL)
        return;
    json_t *reports = json_pack("[o]", report_value(run));
    *comparison = comparison_of(baseline, reports, run->options->strict);
    run->comparison = comparison;
    json_decref(reports);
}

bool is_smart_terminal(int fd)
{
    const char *term = getenv("TERM");
    return isatty(fd) && term != NULL && strcmp(term, "dumb") != 0;
}

static bool wants_color(const struct options *options)
{
    const char *no_color = getenv("NO_COLOR");
    if (options->color != COLOR_AUTO)
        return options->color == COLOR_ALWAYS;
    return is_smart_terminal(STDOUT_FILENO) && (no_color == NULL || *no_color == '\0');
}

bool conclude_print(const struct run *run)
{
    if (report_files_take_stdout(run->options))
        return true;
    bool told = report_text(stdout, run, wants_color(run->options)) == 0;
    if (run->comparison != NULL)
        comparison_print(stdout, run->comparison, run->options->baseline, run->options);
    return told;
}
