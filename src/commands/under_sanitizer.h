/* SPDX-License-Identifier: BSD-3-Clause
 *
 * This program once more, with the runtimes in it of the sanitizers that handlers were built with:
 * such an object does not load without, or ends the process as it is loaded.
 */
#ifndef CONFORM_UNDER_SANITIZER_H
#define CONFORM_UNDER_SANITIZER_H

#include "model/options.h"
#include "subject/subject.h"

/* Returns in a process that has all the runtimes that `count` places want.  Leaves with one line
 * where there is no such runtime, where one of them cannot be together with another or with
 * valgrind, and under --tsan where a place is not compiled for that. */
void sanitizer_enter(const struct options *options, char **argv, const struct subject_place *places,
                     size_t count);

#endif
