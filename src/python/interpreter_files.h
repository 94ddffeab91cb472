/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which Python an executable is, by the files around it.
 */
#ifndef CONFORM_INTERPRETER_FILES_H
#define CONFORM_INTERPRETER_FILES_H

#include <stdbool.h>

#include "python/interpreter.h"

/* Says of the executable at `path` what it would say if it were asked, without starting it, which
 * takes ten milliseconds.  False where the files leave a doubt, or something is missing. */
bool interpreter_by_files(const char *path, struct interpreter *interpreter);

#endif
