/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a command starts: in which interpreter, with which preloaded libraries, with how much static
 * TLS, and under valgrind or not.
 */
#ifndef CONFORM_LAUNCH_H
#define CONFORM_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

#include "model/options.h"
#include "subject/subject.h"

enum launch_python { WITHOUT_PYTHON, WITH_PYTHON, WITH_NUMPY };

/* What a command needs. */
struct launch {
    const struct options *options;
    char **argv;                        /* of main */
    const struct subject_place *places; /* of the handlers */
    size_t count;                       /* of them */
    enum launch_python python;
    bool static_tls;     /* more of it than usual */
    bool shows_progress; /* on the terminal, while valgrind starts */
};

/* Decides all of that together.  If this process lacks any of it, starts the program again, once,
 * and does not return.  Else opens the C-API of the interpreter, also for a handler that calls it
 * where no interpreter runs, and returns its sys.executable; "" without Python.  Prints one line
 * and exits if something cannot be had. */
const char *launch(const struct launch *launch);

/* If a handler did not load because of what another start would give it, which is static TLS or the
 * functions of Python, starts the program again.  Returns if that does not help, or if the run was
 * interrupted. */
void launch_again(const struct launch *launch, int state, const char *why);

/* Returns the libraries to preload for `count` handlers, with colons in between; NULL if this
 * process has all of them.  `python` is the interpreter that finds modules, or NULL.  Prints one
 * line and exits if there is no such runtime, if two of them, or one and valgrind, exclude each
 * other, and under --tsan if a handler is not compiled for that. */
char *sanitizer_runtimes(const struct options *options, const struct subject_place *places,
                         size_t count, const char *python);

#endif
