/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loading a handler in a process that has no Python, for the commands that need none.
 */
#ifndef CONFORM_LOAD_ALONE_H
#define CONFORM_LOAD_ALONE_H

#include <stdbool.h>

#include "model/options.h"
#include "model/record.h"
#include "subject/subject.h"

/* Shared with the process that loads. */
struct alone {
    enum load_state state; /* LOAD_UNKNOWN until it is over */
    bool inside;           /* the handler wants a Python that is to be had inside its executable */
    char why[512];
};

/* In a process of its own: loads the handler.  One that calls Python is linked with nobody who has
 * its functions, and is given them, though no interpreter runs.  False where none came of it. */
bool load_alone(const struct subject_place *place, struct subject *subject, struct alone *alone);

/* When that process has ended: starts the program again where that makes the handler load, and
 * leaves where it cannot be loaded.  Returns where it was, or loading has not come back. */
void loaded_alone_or_leave(const struct options *options, struct alone *alone, char **argv);

#endif
