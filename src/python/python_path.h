/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which interpreter is embedded, where the command line names one.
 */
#ifndef CONFORM_PYTHON_PATH_H
#define CONFORM_PYTHON_PATH_H

/* Looks at the executable at `path`: it has to be a Python of the version whose library is linked
 * in.  NULL, and *absolute (the caller's to free) is where it is, or one line, which does not name
 * the path given, on what is wrong (good until the next calls of text()). */
const char *python_path_check(const char *path, char **absolute);

/* For whoever has told that Python does not start: "; unset PYTHONHOME=/nowhere" where such a
 * variable is set, else "".  Good until the next calls of text(). */
const char *python_path_advice(void);

#endif
