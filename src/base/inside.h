/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Running inside an interpreter's own executable, for one that has no shared libpython: that file
 * is started with conform-engine.so preloaded, which is this program once more and puts its main in
 * the place of Python's (src/preloaded.c).  All of Python's functions are there then, and Python is
 * not started yet.
 */
#ifndef CONFORM_INSIDE_H
#define CONFORM_INSIDE_H

#include <stdbool.h>
#include <stddef.h>

/* Whether these are the words that inside_start starts an executable with. */
bool inside_is_meant(int argc, char **argv);

/* For main to begin with: where it is so, takes those words away, which leaves the command line as
 * it was, and takes the engine out of the environment. */
void inside_arrive(int *argc, char ***argv);

/* How the interpreter calls itself that this is the executable of; NULL where it is none. */
const char *inside_python(void);

/* Replaces this process by the executable at `executable`, which calls itself `python`; both stay.
 * Comes back only with words on why not, behind that name, good until the next calls of text(). */
const char *inside_start(const char *executable, const char *python, char **argv);

/* Replaces this process by one like it.  `launcher` has the words that come first, up to a NULL:
 * those of a program that is to start it.  Comes back only with words on why not, and errno. */
const char *inside_start_again(const char *const *launcher, char **argv);

#endif
