/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --exec: a Python program, whole, with the handler in force wherever NumPy allocates, and the
 * auditor between the two.
 */
#ifndef CONFORM_EXEC_H
#define CONFORM_EXEC_H

#include "model/options.h"

/* Runs what `options->program_arguments` says as python3 would, and prints a summary to stderr.
 * Returns the program's exit status; where the handler broke the contract, EXIT_NOT_CONFORMANT. */
int exec_run(const struct options *options);

/* --exec --fail-each: runs it with the first request refused, then with the second, and so on. */
int exec_fail_each(const struct options *options);

#endif
