/* SPDX-License-Identifier: BSD-3-Clause
 *
 * _conform, the built-in module through which the .py files of the battery end their property.
 */
#define CONFORM_WANTS_PYTHON_API
#include "python.h"

#include "python_module.h"

#include "drive.h"

static PyObject *module_broken(PyObject *self, PyObject *arguments)
{
    const char *expected, *seen;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "ss", &expected, &seen))
        return NULL;
    broken(expected, "%s", seen);
}

static PyObject *module_skip(PyObject *self, PyObject *arguments)
{
    const char *reason;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "s", &reason))
        return NULL;
    skip("%s", reason);
}

static PyObject *module_step(PyObject *self, PyObject *arguments)
{
    const char *words;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "s", &words))
        return NULL;
    step("%s", words);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"broken", module_broken, METH_VARARGS, "broken(expected, seen): the clause does not hold."},
    {"skip", module_skip, METH_VARARGS, "skip(reason): it cannot be tested here."},
    {"step", module_step, METH_VARARGS, "step(words): what comes next, for a crash report."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_conform",
    .m_doc = "The harness, as the Python half of the battery sees it.",
    .m_size = -1,
    .m_methods = methods,
};

static PyObject *create(void)
{
    return PyModule_Create(&definition);
}

int python_module_register(void)
{
    return PyImport_AppendInittab("_conform", create);
}
