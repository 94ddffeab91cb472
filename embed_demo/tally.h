/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the host has claimed and found to hold, or not: a line for each, and one at the end.
 */
#ifndef EMBED_DEMO_TALLY_H
#define EMBED_DEMO_TALLY_H

#include <stdbool.h>

/* Prints the outcome of one claim and counts it.  `part` is the word that it goes by.  Called by
 * one thread at a time: under the GIL, or where there is no interpreter.  Returns `held`. */
bool tally(bool held, const char *part, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Says of a part that it cannot be tried here, and why.  That is no failure. */
void tally_skip(const char *part, const char *why);

/* How many claims there were, and whether all of them held. */
int tally_count(void);
bool tally_held(void);

/* Prints the last line: whether everything held.  `status` is the script's own. */
void tally_end(int status);

#endif
