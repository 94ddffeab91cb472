/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What came of loading a handler in a child, said in one way by every command.
 */
#ifndef CONFORM_LOADED_H
#define CONFORM_LOADED_H

#include "model/record.h"

/* What a child that loads a handler shares with its parent. */
struct loaded {
    enum load_state state; /* LOAD_UNKNOWN until loading is over */
    char why[512];         /* a text that the handler can overwrite */
};

/* Prints one line and exits with the code for it if there is no handler to check.  `argument` is
 * what --handler was given. */
void loaded_or_leave(const char *argument, int state, const char *why);

#endif
