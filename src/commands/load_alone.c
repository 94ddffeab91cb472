/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A handler without an interpreter.
 */
#include "commands/load_alone.h"

#include <stdio.h>
#include <string.h>

#include "base/inside.h"
#include "commands/embed.h"
#include "python/api.h"
#include "python/interpreter.h"
#include "supervise/loaded.h"

static void give_it_python(struct alone *alone)
{
    struct interpreter python;
    if (inside_python() != NULL)
        return; /* it has had what there is */
    if (strstr(alone->why, "undefined symbol: Py") == NULL &&
        strstr(alone->why, "undefined symbol: _Py") == NULL)
        return;
    const char *wrong = interpreter_find(NULL, &python);
    alone->inside = wrong == NULL && *python.library == '\0';
    if (wrong == NULL && !alone->inside)
        wrong = python_api_open(python.library);
    snprintf(alone->why, sizeof alone->why, "%s%s", wrong != NULL ? "it calls Python, and " : "",
             wrong != NULL ? wrong : "");
    alone->state = wrong != NULL ? LOAD_FAILED : LOAD_UNKNOWN;
}

bool load_alone(const struct subject_place *place, struct subject *subject, struct alone *alone)
{
    alone->state = subject_load(place, subject, alone->why, sizeof alone->why);
    if (alone->state == LOAD_FAILED)
        give_it_python(alone);
    if (!alone->inside && alone->state == LOAD_UNKNOWN)
        alone->state = subject_load(place, subject, alone->why, sizeof alone->why);
    return alone->state == LOAD_DONE;
}

void loaded_alone_or_leave(const struct options *options, struct alone *alone, char **argv)
{
    if (alone->inside)
        embed(options, false, argv);
    alone->why[sizeof alone->why - 1] = '\0';
    loaded_start_again((int)alone->state, alone->why, argv);
    loaded_or_leave(options->handler, (int)alone->state, alone->why);
}
