/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The interpreter: starting it, running a script in it, ending it.  Nothing here knows of NumPy.
 */
#ifndef EMBED_DEMO_INTERPRETER_H
#define EMBED_DEMO_INTERPRETER_H

#include <stdbool.h>
#include <stdio.h>

/* Starts the interpreter whose executable is at `python`; that of a virtual environment brings its
 * packages.  sys.argv is `argv`.  `isolated` is as python -I.  The GIL is held afterwards.  NULL,
 * or one line on what went wrong (good until the next calls of text()). */
const char *interpreter_start(const char *python, bool isolated, int argc, char **argv);

/* Runs the script as python would run it from the command line, and closes `file`.  `path` is where
 * it is, as it was given.  An exception that ends it is told in one line, or with `in_full` by its
 * traceback.  Returns the script's exit status. */
int interpreter_run(FILE *file, const char *path, bool in_full);

/* Python has a buffer for stdout, and C has another: what the script has printed so far comes
 * before what C prints next.  0, or -1 with an exception set. */
int interpreter_flush(void);

/* Ends the interpreter.  Objects die in it, arrays with them.  Returns `status`, or what stands for
 * output that could not be written where `status` is 0. */
int interpreter_stop(int status);

#endif
