/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Installing a handler, as a program does.
 */
#define CONFORM_WANTS_PYTHON_API
#include "python/python.h"

#include "harness/install.h"
#include "harness/verdict.h"

void install_handler(PyDataMem_Handler *handler)
{
    PyObject *capsule = handler != NULL ? PyCapsule_New(handler, "mem_handler", NULL) : NULL;
    PyObject *before = capsule != NULL ? PyDataMem_SetHandler(capsule) : NULL;
    if (before == NULL)
        harness_broke("the handler cannot be installed: %s", python_error());
    Py_DECREF(before);
    Py_DECREF(capsule);
}
