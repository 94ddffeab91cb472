/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Seeing that a handler uses Python's allocators without the GIL.
 */
#ifndef CONFORM_PYTHON_ALLOCATORS_H
#define CONFORM_PYTHON_ALLOCATORS_H

/* From now on the property fails where the subject, in a call that calls.h makes, calls
 * PyMem_* or PyObject_* memory functions in a thread that does not hold the GIL.  It would go
 * unnoticed most of the time.  Called with the GIL held, once. */
void gil_watch(void);

#endif
