/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which line of a Python program is running: the frames of this thread, from the innermost one on.
 */

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "python/api.h"
#include "python/python.h"

/* A new reference, or NULL without an exception. */
static PyObject *attribute(PyObject *object, const char *name)
{
    PyObject *value = object != NULL ? PyObject_GetAttrString(object, name) : NULL;
    PyErr_Clear();
    return value;
}

/* One of fmt()'s buffers; "" for what is not a string. */
static const char *words_of(PyObject *string)
{
    const char *words = string != NULL ? PyUnicode_AsUTF8(string) : NULL;
    PyErr_Clear();
    return words != NULL ? escape(words) : "";
}

static const char *file_of(PyObject *frame)
{
    PyObject *code = attribute(frame, "f_code");
    PyObject *file = attribute(code, "co_filename");
    const char *words = words_of(file);
    Py_XDECREF(file);
    Py_XDECREF(code);
    return words;
}

static const char *module_of(PyObject *frame)
{
    PyObject *globals = attribute(frame, "f_globals");
    PyObject *name =
        globals != NULL ? PyDict_GetItemString(globals, "__name__") : NULL; /* borrowed */
    const char *words = words_of(name);
    Py_XDECREF(globals);
    return words;
}

/* Is it a line of the program?  NumPy's tests are.  The frames in which NumPy 1 dispatches its
 * functions are of no module. */
static bool is_the_programs(PyObject *frame)
{
    const char *module = module_of(frame), *file = file_of(frame);
    if (strcmp(module, "numpy") == 0 || begins_with(module, "numpy."))
        return strstr(module, ".tests.") != NULL;
    return !begins_with(module, "importlib.") && !begins_with(file, "<frozen importlib.") &&
           !begins_with(file, "<__array_function__ ") &&
           strcmp(module, "conform_install_hook") != 0;
}

void python_line(char *to, size_t room)
{
    to[0] = '\0';
    if (!python_is_up() || !PyGILState_Check())
        return;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *innermost = PyEval_GetFrame(), *frame = innermost;
    Py_XINCREF(frame);
    while (frame != NULL && frame != Py_None && !is_the_programs(frame)) {
        PyObject *back = attribute(frame, "f_back");
        Py_DECREF(frame);
        frame = back;
    }
    PyObject *told = frame != NULL && frame != Py_None ? frame : innermost;
    if (told != NULL)
        snprintf(to, room, "%s:%d", file_of(told), PyFrame_GetLineNumber(told));
    Py_XDECREF(frame);
    PyErr_Restore(type, value, traceback);
}

void python_line_with_gil(char *to, size_t room)
{
    bool takes = python_is_up() && !PyGILState_Check() && PyGILState_GetThisThreadState() != NULL;
    PyGILState_STATE state = takes ? PyGILState_Ensure() : 0;
    python_line(to, room);
    if (takes)
        PyGILState_Release(state);
}
