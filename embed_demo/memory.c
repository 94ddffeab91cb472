/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The three calls of NumPy's C-API that matter here.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <numpy/arrayobject.h>

#include "memory.h"

/* import_array() is a macro for extension modules: it prints, and returns from its caller.  The
 * function beneath it says no more than that NumPy's inner module failed, so the package is
 * imported first, which says why. */
int memory_import_numpy(void)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    int failed = numpy == NULL || _import_array() != 0;
    Py_XDECREF(numpy);
    return failed ? -1 : 0;
}

PyObject *memory_install(PyDataMem_Handler *handler)
{
    /* NumPy finds the struct in a capsule of this very name.  Every array takes a reference to it.
     * A destructor would run when the last of them is gone, and be the place to free the handler;
     * ours is static, and needs none. */
    PyObject *capsule = PyCapsule_New(handler, "mem_handler", NULL);
    PyObject *before = capsule != NULL ? PyDataMem_SetHandler(capsule) : NULL;
    Py_XDECREF(capsule);
    return before;
}

int memory_restore(PyObject *before)
{
    PyObject *ours = PyDataMem_SetHandler(before);
    Py_DECREF(before);
    Py_XDECREF(ours);
    return ours != NULL ? 0 : -1;
}
