/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The Python half of this program: our own .py files, which are compiled into it as data
 * (python_sources.h).  NAME.py is the module conform_NAME.
 *
 * All of these with the GIL held.  What they return is NULL, or one line on what is wrong, good
 * until the next calls of text().
 */
#ifndef CONFORM_PYTHON_HALF_H
#define CONFORM_PYTHON_HALF_H

#include <stddef.h>

/* Imports GROUP.py and GROUP_*.py, where there are any, so that processes forked from here on need
 * not; the group is the first `length` characters. */
void python_half_prepare(const char *group, size_t length);

/* Whether there is such a function in MODULE.py. */
const char *python_half_has(const char *module, const char *function);

/* Calls it without arguments; what it raised is what is wrong. */
const char *python_half_run(const char *module, const char *function);

#endif
