/* SPDX-License-Identifier: BSD-3-Clause
 *
 * NumPy: importing it, and saying who allocates the data of its arrays.
 *
 * Whoever includes this has included Python.h.
 */
#ifndef EMBED_DEMO_MEMORY_H
#define EMBED_DEMO_MEMORY_H

#include <numpy/ndarraytypes.h>

/* Imports NumPy and its C-API; 0, or -1 with an exception set. */
int memory_import_numpy(void);

/* Makes `handler` the one of every array that is born from now on in this thread's context.
 * Arrays keep the handler that they were born with, so it has to stay where it is for as long as
 * any of them may live.  Returns the capsule of the one before, to be given to memory_restore, or
 * NULL with an exception set. */
PyObject *memory_install(PyDataMem_Handler *handler);

/* Puts the one before back, and takes its reference; 0, or -1 with an exception set. */
int memory_restore(PyObject *before);

#endif
