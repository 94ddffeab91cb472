/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The calls of NumPy's C-API that decide whose the memory is.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define FILLS_IN_THE_TABLE
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

/* NumPy finds the struct in a capsule of this very name. */
static const char capsule_name[] = "mem_handler";

/* Every array takes a reference to the capsule of its handler, and so does every context in which
 * that is the current one.  So this runs when nobody can call the handler any more. */
static void last_one_gone(PyObject *capsule)
{
    void (*unused)(PyDataMem_Handler *) = PyCapsule_GetContext(capsule);
    unused(PyCapsule_GetPointer(capsule, capsule_name));
}

PyObject *memory_install(PyDataMem_Handler *handler, void (*unused)(PyDataMem_Handler *handler))
{
    PyObject *capsule = PyCapsule_New(handler, capsule_name, unused != NULL ? last_one_gone : NULL);
    if (capsule == NULL)
        return NULL;
    PyObject *before = NULL;
    if (PyCapsule_SetContext(capsule, unused) == 0)
        before = PyDataMem_SetHandler(capsule);
    Py_DECREF(capsule);
    return before;
}

int memory_restore(PyObject *before)
{
    PyObject *ours = PyDataMem_SetHandler(before);
    Py_DECREF(before);
    Py_XDECREF(ours);
    return ours != NULL ? 0 : -1;
}

PyArrayObject *memory_owner(PyArrayObject *array)
{
    PyObject *base;
    while ((base = PyArray_BASE(array)) != NULL && PyArray_Check(base))
        array = (PyArrayObject *)base;
    return array;
}
