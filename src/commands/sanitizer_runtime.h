/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The runtimes of the sanitizers that handlers were built with: without its runtime in the program,
 * such an object does not load, or ends the process when it is loaded.
 */
#ifndef CONFORM_SANITIZER_RUNTIME_H
#define CONFORM_SANITIZER_RUNTIME_H

#include "model/options.h"
#include "subject/subject.h"

/* Returns the libraries to preload for `count` handlers, with colons in between; NULL if this
 * process has all of them.  `python` is the interpreter that finds modules, or NULL.  Prints one
 * line and exits if there is no such runtime, if two of them, or one and valgrind, exclude each
 * other, and under --tsan if a handler is not compiled for that. */
char *sanitizer_runtimes(const struct options *options, const struct subject_place *places,
                         size_t count, const char *python);

#endif
