/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The interpreter of this run: which it is, and its C-API in this process.
 */
#ifndef CONFORM_EMBED_H
#define CONFORM_EMBED_H

#include <stdbool.h>

#include "model/options.h"

/* Finds it and makes its functions callable, for a handler that calls some also where no
 * interpreter runs; leaves with one line where that cannot be.  One without a shared libpython gets
 * this program started anew, by `argv`, inside its executable.  Returns the executable's path as
 * the interpreter says it. */
const char *embed(const struct options *options, bool wants_numpy, char **argv);

#endif
