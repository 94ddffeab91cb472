/* SPDX-License-Identifier: BSD-3-Clause
 *
 * This program defines getenv and secure_getenv itself, so that what a subject asks the environment
 * for from inside one of its four functions is seen.
 */
#ifndef CONFORM_GETENV_WATCH_H
#define CONFORM_GETENV_WATCH_H

#include <stdbool.h>
#include <stddef.h>

/* From now on what is asked for is noted.  False where it does not come through here. */
bool getenv_watch(void);

/* What was asked for since, in calls of one thread at a time. */
struct asked_variable {
    char name[64];
    const void *by; /* the code that asked first */
    size_t times;
};
enum { ASKED_VARIABLES = 16 };

/* The first of them, up to one without a name. */
const struct asked_variable *getenv_asked(void);

#endif
