/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Exceptions in one line.  A user of the program wants to know what is wrong; who writes the script
 * asks for the traceback.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "exception.h"

#include <string.h>

#include "arguments.h"
#include "base/text.h"

/* The three parts of an exception, owned. */
struct exception {
    PyObject *type, *value, *traceback;
};

static struct exception fetch(void)
{
    struct exception e;
    PyErr_Fetch(&e.type, &e.value, &e.traceback);
    PyErr_NormalizeException(&e.type, &e.value, &e.traceback);
    return e;
}

static void drop(struct exception *e)
{
    PyErr_Clear(); /* whatever went wrong while we looked at it */
    Py_XDECREF(e->type);
    Py_XDECREF(e->value);
    Py_XDECREF(e->traceback);
}

/* "ValueError: its first line". */
static const char *in_one_line(const struct exception *e)
{
    PyObject *string = PyObject_Str(e->value);
    const char *words = string != NULL ? PyUnicode_AsUTF8(string) : NULL;
    if (words == NULL)
        words = "";
    words += strspn(words, " \n"); /* NumPy begins its advice with empty lines */
    char first[400];
    text_clean(first, sizeof first, words, strcspn(words, "\n"), 0);
    Py_XDECREF(string);
    return text("%s%s%s", ((PyTypeObject *)e->type)->tp_name, first[0] != '\0' ? ": " : "", first);
}

/* A number that is an attribute, or 0. */
static long number_of(PyObject *object, const char *name)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    long number = value != NULL && PyLong_Check(value) ? PyLong_AsLong(value) : 0;
    Py_XDECREF(value);
    return number;
}

/* Is this entry of a traceback one of the file? */
static bool is_in(PyObject *entry, PyObject *file)
{
    PyObject *frame = PyObject_GetAttrString(entry, "tb_frame");
    PyObject *code = frame != NULL ? PyObject_GetAttrString(frame, "f_code") : NULL;
    PyObject *name = code != NULL ? PyObject_GetAttrString(code, "co_filename") : NULL;
    bool is = name != NULL && PyObject_RichCompareBool(name, file, Py_EQ) == 1;
    Py_XDECREF(name);
    Py_XDECREF(code);
    Py_XDECREF(frame);
    return is;
}

/* The line of the file that a syntax error names, or else the last that the traceback does; 0 where
 * there is none. */
static long line_in(PyObject *file, const struct exception *e)
{
    long line = 0;
    if (PyErr_GivenExceptionMatches(e->type, PyExc_SyntaxError))
        return number_of(e->value, "lineno");
    PyObject *entry = e->traceback;
    Py_XINCREF(entry);
    while (entry != NULL && entry != Py_None) {
        if (is_in(entry, file))
            line = number_of(entry, "tb_lineno");
        PyObject *next = PyObject_GetAttrString(entry, "tb_next");
        Py_DECREF(entry);
        entry = next;
    }
    Py_XDECREF(entry);
    return line;
}

/* What python makes of SystemExit: a number is the status, None is 0, and anything else is printed
 * and is 1.  PyErr_Print would do the same, and end the process, before the books are read. */
static int status_of_exit(void)
{
    struct exception e = fetch();
    PyObject *code = PyObject_GetAttrString(e.value, "code");
    int status = 1;
    if (code == NULL)
        PyErr_Print();
    else if (code == Py_None)
        status = 0;
    else if (PyLong_Check(code))
        status = (int)PyLong_AsLong(code) & 0xff;
    else
        PySys_FormatStderr("%S\n", code);
    Py_XDECREF(code);
    drop(&e);
    return status;
}

int exception_of_script(const char *path, PyObject *file, bool in_full)
{
    if (PyErr_ExceptionMatches(PyExc_SystemExit))
        return status_of_exit();
    int status = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) ? STATUS_INTERRUPTED : 1;
    if (in_full) {
        PyErr_Print();
        return status;
    }
    struct exception e = fetch();
    long line = file != NULL ? line_in(file, &e) : 0;
    const char *where = line > 0 ? text("%s:%ld", text_safe(path), line) : text_safe(path);
    complain(status, "%s: %s", where, in_one_line(&e));
    drop(&e);
    return status;
}

int exception_complain(const char *what)
{
    int status =
        PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) ? STATUS_INTERRUPTED : STATUS_BROKE;
    struct exception e = fetch();
    complain(status, "%s: %s", what, in_one_line(&e));
    drop(&e);
    return status;
}
