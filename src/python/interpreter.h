/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which Python is embedded: the one that the command line names, or the first that has NumPy.
 */
#ifndef CONFORM_INTERPRETER_H
#define CONFORM_INTERPRETER_H

#include <stdbool.h>

struct interpreter {
    const char *executable; /* absolute; a virtual environment's link is left as it is */
    const char *program;    /* the file that runs */
    const char *library;    /* its libpython; "" where it has none */
    bool has_numpy;
    bool is_late; /* it did not answer in time */
};

/* Asks the executable at `path` what it is, that of PATH where it has no slash and there is one;
 * with NULL, python3 of the virtual environment that is active, of the one that this program is
 * installed in, and of each folder of PATH, until one has NumPy.  What is found is the process's to
 * keep.  NULL, or one line on what is wrong, which names the path (good until the next calls of
 * fmt()).
 */
const char *interpreter_find(const char *path, struct interpreter *interpreter);

/* For whoever tells that Python does not start: "; try without PYTHONHOME=/nowhere" where such a
 * variable is set, else "".  Good until the next calls of fmt(). */
const char *interpreter_advice(void);

/* Says of the executable at `path` what it would say if it were asked, without starting it, which
 * takes ten milliseconds.  False where the files leave a doubt, or something is missing. */
bool interpreter_by_files(const char *path, struct interpreter *interpreter);

#endif
