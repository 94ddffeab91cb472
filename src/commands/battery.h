/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The coordinator: chooses properties, starts workers, watches them, and sees to it that every
 * property gets its verdict whatever happens.  It starts no Python and loads no subject.
 */
#ifndef CONFORM_COORDINATOR_H
#define CONFORM_COORDINATOR_H

#include "model/options.h"

/* Runs the battery and reports; returns the exit code. */
enum exit_code battery_run(const struct options *options, char **argv);

#endif
