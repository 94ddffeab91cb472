/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --bench
 */
#ifndef CONFORM_COMMANDS_BENCH_H
#define CONFORM_COMMANDS_BENCH_H

#include "model/options.h"

/* How fast the handlers are: prints the figures and writes the files that were asked for. */
enum exit_code bench_command(const struct options *options, char **argv);

#endif
