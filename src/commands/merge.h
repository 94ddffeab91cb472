/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --merge FILE ...: the reports of all shards, told as one run.
 */
#ifndef CONFORM_MERGE_H
#define CONFORM_MERGE_H

#include "model/options.h"

/* Returns what the run would have ended with.  Leaves with EXIT_USAGE and one line where they are
 * not the parts of one run, or not all of them. */
enum exit_code merge_run(const struct options *options);

#endif
