/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a report that was read says in the end, against the verdicts in it: whoever changes the one
 * has to change the other.
 */
#ifndef CONFORM_SUMMARY_H
#define CONFORM_SUMMARY_H

#include <jansson.h>
#include <stdbool.h>

#include "model/options.h"

/* What the verdicts say of the handler, which the summary says too. */
enum exit_code summary_code(const json_t *report);

/* Whether some of them fail it, in a run that came to its end and was not a quick one. */
bool summary_is_against(const json_t *report);

/* What of it contradicts the verdicts or itself, in words (good until the next calls of text()); or
 * NULL.  Of a report of another version less is known. */
const char *summary_wrong(const json_t *report);

#endif
