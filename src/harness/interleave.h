/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two threads of which one is stopped between two instructions of a call, while the other makes
 * calls of its own: what free-running threads do by chance, once in many thousands of calls.
 */
#ifndef CONFORM_INTERLEAVE_H
#define CONFORM_INTERLEAVE_H

#include <stdbool.h>

/* Tries calls of all four functions, each stopped at one of its instructions after the other, for
 * some 50 milliseconds; fails where a block is then not what it should be.  With `hands_over` the
 * threads resize and free each other's blocks, else only their own.  With `in_python` both call as
 * NumPy does, as threads that Python knows and with what is called the GIL; only where there is
 * none can both have it.  Runs in a process of its own.  Does nothing where a call cannot be
 * stopped (breakpoint.h), under memcheck and the sanitizers. */
void interleave(bool hands_over, bool in_python);

#endif
