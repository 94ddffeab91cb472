/* SPDX-License-Identifier: BSD-3-Clause */
#include "commands/finish.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/present.h"
#include "report/report_files.h"

void check_baseline(const struct options *options)
{
    const char *const words[] = {"--baseline", options->baseline, NULL};
    if (options->baseline != NULL)
        json_decref(present_answer(words, NULL));
}

void compare_with_baseline(struct run *run)
{
    const struct options *options = run->options;
    const char *words[] = {"--run", "--baseline", options->baseline, NULL, NULL, NULL};
    size_t count = 3;
    if (options->baseline == NULL)
        return;
    if (options->strict)
        words[count++] = "--strict";
    if (options->quiet)
        words[count++] = "--quiet";
    json_t *report = report_value(run), *answer = present_answer(words, report); /* it stays */
    run->baseline = json_object_get(answer, "baseline");
    run->baseline_text = json_string_value(json_object_get(answer, "text"));
    json_decref(report);
    struct conclusion *c = &run->conclusion;
    if (options->fail_on_new && c->stale == 0 &&
        (c->code == EXIT_CONFORMANT || c->code == EXIT_NOT_CONFORMANT))
        c->status = (enum exit_code)json_integer_value(json_object_get(answer, "status"));
}

bool is_smart_terminal(int fd)
{
    const char *term = getenv("TERM");
    return isatty(fd) && term != NULL && strcmp(term, "dumb") != 0;
}

bool print_report(const struct run *run)
{
    const char *no_color = getenv("NO_COLOR");
    enum color color = run->options->color;
    if (report_files_take_stdout(run->options))
        return true;
    bool is_colored =
        color == COLOR_ALWAYS || (color == COLOR_AUTO && is_smart_terminal(STDOUT_FILENO) &&
                                  (no_color == NULL || *no_color == '\0'));
    bool told = report_text(stdout, run, is_colored) == 0;
    if (run->baseline_text != NULL)
        fputs(run->baseline_text, stdout);
    return told;
}
