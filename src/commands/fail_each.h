/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --exec --fail-each: how a program takes it when it gets no memory.
 */
#ifndef CONFORM_FAIL_EACH_H
#define CONFORM_FAIL_EACH_H

#include "model/options.h"

/* Runs the program with nothing refused, then with the first request refused, then with the second,
 * and so on, and prints what came of it.  EXIT_NOT_CONFORMANT where the handler broke the contract
 * in any run.  `argv` is what to start again where the handler wants more static TLS. */
int fail_each_run(const struct options *options, char **argv);

#endif
