/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which line of a Python program is running.
 */
#ifndef CONFORM_PYTHON_LINE_H
#define CONFORM_PYTHON_LINE_H

#include <stddef.h>

/* Writes "FILE:LINE" of the innermost line on this thread that is the program's own: the frames of
 * NumPy's package, and of an import that is on its way, are passed over, unless there are no
 * others.  "" without the GIL or a frame.  A pending exception stays. */
void python_line(char *to, size_t room);

#endif
