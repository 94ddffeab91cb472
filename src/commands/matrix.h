/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The battery in several interpreters: --python given more than once.
 */
#ifndef CONFORM_MATRIX_H
#define CONFORM_MATRIX_H

#include "model/options.h"

/* Runs this program once for each interpreter, one after the other, and tells where their verdicts
 * differ or are bad.  The worst that came of any is the exit code: see `severity`. */
enum exit_code matrix_run(const struct options *options, char **argv);

#endif
