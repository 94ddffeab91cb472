/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How reports stand.
 */
#include "report/standing.h"

#include <stdbool.h>
#include <sys/param.h>

#include "report/members.h"
#include "report/summary.h"

/* From the best. */
static const struct standing standings[] = {{"conformant", "good", "#1a7f37"},
                                            {"conformant with waivers", "warn", "#8a5c00"},
                                            {"partial", "warn", "#8a5c00"},
                                            {"no verdict", "none", "#57606a"},
                                            {"not conformant", "bad", "#c6202c"}};
enum { WHOLE, WAIVED, PARTIAL, NO_VERDICT, NOT_CONFORMANT };

static int place_of(const json_t *report)
{
    const json_t *environment = json_object_get(report, "environment");
    bool waived = json_integer_value(json_object_get(report, "waivers")) > 0 &&
                  json_integer_value(json_object_get(report, "exit_code")) == 0;
    if (waived || json_is_true(json_object_get(report, "conformant")))
        return !json_is_true(json_object_get(report, "whole")) || *word(environment, "checker") != 0
                   ? PARTIAL
               : waived ? WAIVED
                        : WHOLE;
    return summary_is_against(report) ? NOT_CONFORMANT : NO_VERDICT;
}

const struct standing *standing_of(const json_t *report)
{
    return &standings[place_of(report)];
}

const struct standing *standing_of_all(const json_t *reports)
{
    int worst = json_array_size(reports) > 0 ? WHOLE : NO_VERDICT;
    for (size_t i = 0; i < json_array_size(reports); i++)
        worst = MAX(worst, place_of(json_array_get(reports, i)));
    return &standings[worst];
}
