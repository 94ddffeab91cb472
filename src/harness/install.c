/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Installing a handler, as a program does.
 */
#include "harness/install.h"

#include "harness/verdict.h"
#include "python/api.h"
#include "python/python.h"

void install_handler(PyDataMem_Handler *handler)
{
    PyObject *capsule = handler != NULL ? PyCapsule_New(handler, "mem_handler", NULL) : NULL;
    PyObject *before = capsule != NULL ? PyDataMem_SetHandler(capsule) : NULL;
    if (before == NULL)
        harness_broke("the handler cannot be installed: %s", python_error());
    Py_DECREF(before);
    Py_DECREF(capsule);
}
