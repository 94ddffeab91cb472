/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --exec: a Python program, whole, with the handler in force wherever NumPy allocates, and the
 * auditor between the two.
 */
#ifndef CONFORM_EXEC_H
#define CONFORM_EXEC_H

#include <stdio.h>

#include "model/options.h"
#include "shims/auditor.h"

/* Runs what `options->operands` says as python3 would, and prints a summary to stderr.
 * Returns the program's exit status; where the handler broke the contract, EXIT_NOT_CONFORMANT.
 * `argv` is what to start again where the handler wants more static TLS. */
int exec_run(const struct options *options, char **argv);

/* A line or two for each kind of violation. */
void exec_print_violations(FILE *file, const struct audit *audit);

#endif
