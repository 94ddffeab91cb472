/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The command --search.
 */
#ifndef CONFORM_COMMANDS_SEARCH_H
#define CONFORM_COMMANDS_SEARCH_H

#include "model/options.h"

/* `argv` is the program's, to be started again where the handler wants that. */
enum exit_code search_command(const struct options *options, char **argv);

#endif
