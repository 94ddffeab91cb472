/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --from: a page or a badge of reports that there are.  Nothing is run.
 */
#ifndef CONFORM_FROM_H
#define CONFORM_FROM_H

#include "model/options.h"

/* Writes them; leaves with EXIT_USAGE, and nothing written, where a report cannot be read. */
enum exit_code from_run(const struct options *options);

#endif
