/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --compare: two reports, and what is different between them.  Nothing is run.
 */
#ifndef CONFORM_COMPARE_H
#define CONFORM_COMPARE_H

#include "model/options.h"

/* Prints what is different.  EXIT_CONFORMANT, or with --fail-on=new EXIT_NOT_CONFORMANT where
 * something fails that did not before. */
enum exit_code compare_run(const struct options *options);

#endif
