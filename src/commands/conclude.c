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
#include "report/present.h"

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

void conclude_settle(const struct selection *selection, struct board *board,
                     struct outcome *outcomes)
{
    if (attribution_settle(selection->properties, selection->count, board, outcomes) != 0)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    size_t i = attribution_unsettled(selection->count, selection->properties, board, outcomes);
    if (i < selection->count)
        outcomes[i] = (struct outcome){.verdict = BROK, .note = "nobody answers for what ended it"};
}

size_t conclude_hidden(const struct selection *selection, const struct outcome *first,
                       bool interrupted)
{
    /* asked for or not, a first property that ended and did not pass is in the report */
    bool is_told = first->verdict != PASS && !(interrupted && first->verdict == INCOMPLETE);
    return selection->first_is_implied && !is_told ? 1 : 0;
}

void conclude_check_baseline(const struct options *options)
{
    const char *const words[] = {"--baseline", options->baseline, NULL};
    if (options->baseline != NULL)
        json_decref(present_answer(words, NULL));
}

void conclude_compare(struct run *run, struct comparison *comparison)
{
    const char *words[] = {"--run", "--baseline", run->options->baseline, NULL, NULL, NULL};
    size_t count = 3;
    if (run->options->baseline == NULL)
        return;
    if (run->options->strict)
        words[count++] = "--strict";
    if (run->options->quiet)
        words[count++] = "--quiet";
    json_t *report = report_value(run), *answer = present_answer(words, report); /* it stays */
    *comparison = (struct comparison){
        .baseline = json_object_get(answer, "baseline"),
        .text = json_string_value(json_object_get(answer, "text")),
        .status = (enum exit_code)json_integer_value(json_object_get(answer, "status")),
    };
    run->comparison = comparison;
    json_decref(report);
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
        fputs(run->comparison->text, stdout);
    return told;
}
