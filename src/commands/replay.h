/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --replay FILE: a trace on a handler, or with --print as text.
 */
#ifndef CONFORM_REPLAY_COMMAND_H
#define CONFORM_REPLAY_COMMAND_H

#include "model/options.h"

/* Replays options->replay on options->handler in a process of its own, and says what came of it; or
 * shows it.  `argv` is the command line, to start this program again by. */
enum exit_code replay_command(const struct options *options, char **argv);

#endif
