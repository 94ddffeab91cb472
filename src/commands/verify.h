/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --verify FILE ...: whether a bundle is as it was written, complete, and what it says; and with
 * --rerun, whether that is so here.
 */
#ifndef CONFORM_VERIFY_H
#define CONFORM_VERIFY_H

#include "model/options.h"

/* Returns the status of the run that it is of, or what is worse: 5 where it is not complete, 2
 * where it is not as it was written, and 1 where running it again gives something else. */
enum exit_code verify_run(const struct options *options);

#endif
