/* SPDX-License-Identifier: BSD-3-Clause
 *
 * NumPy: its C-API, and saying who allocates the data of its arrays.
 *
 * Whoever includes this has included Python.h.
 */
#ifndef EMBED_DEMO_MEMORY_H
#define EMBED_DEMO_MEMORY_H

/* NumPy's functions are reached through a table, which memory.c fills in.  Without this name and
 * without NO_IMPORT_ARRAY each file would have a table of its own, and an empty one. */
#define PY_ARRAY_UNIQUE_SYMBOL embed_demo_numpy
#ifndef FILLS_IN_THE_TABLE
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

/* Imports NumPy and its C-API; 0, or -1 with an exception set. */
int memory_import_numpy(void);

/* Makes `handler` the one of every array that is born from now on in this thread's context.
 * Arrays keep the handler that they were born with, so it has to stay where it is for as long as
 * any of them may live: `unused`, if not NULL, is called when the last of them is gone, and the
 * last context that had it.  Returns the capsule of the handler before, to be given to
 * memory_restore, or NULL with an exception set. */
PyObject *memory_install(PyDataMem_Handler *handler, void (*unused)(PyDataMem_Handler *handler));

/* Puts the one before back, and takes its reference; 0, or -1 with an exception set. */
int memory_restore(PyObject *before);

/* The array that owns the data which `array` shows: itself, unless it is a view.  Borrowed. */
PyArrayObject *memory_owner(PyArrayObject *array);

#endif
