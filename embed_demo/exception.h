/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the program says and returns where Python raised an exception that nobody caught.
 *
 * Whoever includes this has included Python.h.
 */
#ifndef EMBED_DEMO_EXCEPTION_H
#define EMBED_DEMO_EXCEPTION_H

#include <stdbool.h>

/* Ends the pending exception of a script, and returns the status to leave with.  SystemExit brings
 * its own.  Any other is told in one line, with the line of the script (`file`: __file__; `path`:
 * as the user gave it) that it came from; with `in_full` as python does. */
int exception_of_script(const char *path, PyObject *file, bool in_full);

/* Tells the pending exception in one line that begins with `what`, and clears it.  Returns the
 * status to leave with. */
int exception_complain(const char *what);

#endif
