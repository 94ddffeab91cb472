/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --init: a project to begin with.
 */
#ifndef CONFORM_INIT_H
#define CONFORM_INIT_H

#include "model/options.h"

/* Writes the files of examples/c-make into the folder, which is made where it is missing.  All of
 * them are there then, or the folder is as it was and it leaves with one line. */
enum exit_code init_run(const char *folder);

#endif
