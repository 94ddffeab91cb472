/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a script can ask of the program: a method for each part, which reads its arguments and
 * leaves the work to the file of that part.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "memory.h"

#include <stdio.h>

#include "exchange.h"
#include "host.h"
#include "interpreter.h"
#include "tally.h"
#include "trace.h"
#include "wave.h"
#include "workers.h"

static struct books *main_books;

static PyObject *done(void)
{
    fflush(stdout);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(
    threads_doc,
    "threads(name, function, *arguments, count=4, room=1 << 24, abort=None)\n\n"
    "Call function(rank, count, *arguments) in so many threads, each with a handler and\n"
    "an arena of its own of `room` bytes, and claim that no array was made in another's.\n"
    "It returns the arrays that it keeps, in a list.  Returns a list of what they return.\n"
    "abort() is called when one of them has raised and the others may be waiting for it.");

/* The keywords of a job. */
static int read_keywords(PyObject *keywords, struct job *job)
{
    static const char *const names[] = {"count", "room", "abort", NULL};
    PyObject *none = PyTuple_New(0);
    PyObject *abort = Py_None;
    Py_ssize_t room = (Py_ssize_t)job->room;
    int taken =
        none != NULL && PyArg_ParseTupleAndKeywords(none, keywords, "|$inO:threads", (char **)names,
                                                    &job->count, &room, &abort);
    Py_XDECREF(none);
    if (!taken)
        return -1;
    if (job->count < 1 || job->count > WORKERS_MOST || room < 1) {
        PyErr_Format(PyExc_ValueError, "count is 1 to %d, and room is not 0", WORKERS_MOST);
        return -1;
    }
    job->room = (size_t)room;
    job->abort = abort != Py_None ? abort : NULL;
    return 0;
}

static PyObject *host_threads(PyObject *module, PyObject *positional, PyObject *keywords)
{
    struct job job = {.count = 4, .room = (size_t)1 << 24};
    Py_ssize_t given = PyTuple_GET_SIZE(positional);
    PyObject *first = PyTuple_GetSlice(positional, 0, 2);
    PyObject *results = NULL;
    (void)module;
    job.arguments = PyTuple_GetSlice(positional, 2, given < 2 ? 2 : given);
    if (first != NULL && job.arguments != NULL &&
        PyArg_ParseTuple(first, "sO:threads", &job.name, &job.function) &&
        read_keywords(keywords, &job) == 0 && interpreter_flush() == 0)
        results = workers_run(&job);
    if (results != NULL && workers_prove(job.name, results) != 0)
        Py_CLEAR(results);
    fflush(stdout);
    Py_XDECREF(job.arguments);
    Py_XDECREF(first);
    return results;
}

PyDoc_STRVAR(compare_doc, "compare(name, sizes)\n\n"
                          "Claim that the blocks alive in the books of this thread's handler have\n"
                          "these sizes, in whatever order.");

static PyObject *host_compare(PyObject *module, PyObject *arguments)
{
    const char *name;
    PyObject *sizes;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "sO:compare", &name, &sizes) || interpreter_flush() != 0 ||
        trace_compare(name, sizes, workers_books(main_books)) != 0)
        return NULL;
    return done();
}

PyDoc_STRVAR(skip_doc, "skip(name, why)\n\nSay that this part cannot be tried here.");

static PyObject *host_skip(PyObject *module, PyObject *arguments)
{
    const char *name, *why;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "ss:skip", &name, &why) || interpreter_flush() != 0)
        return NULL;
    tally_skip(name, why);
    return done();
}

PyDoc_STRVAR(
    lend_doc,
    "lend(name, function, dlpack=False)\n\n"
    "Call function(array) with an array over memory of C's, whose numbers it doubles and\n"
    "which it returns or a view of it; with dlpack, function(object) with something for\n"
    "from_dlpack(), of which it returns the array or tensor.  Claim that there was no copy.");

PyDoc_STRVAR(borrow_doc,
             "borrow(name, function, dlpack=False)\n\n"
             "Call function() for an array of floats, or with dlpack anything that has\n"
             "__dlpack__, and use its memory from C.  Claim that it was not copied.");

/* The arguments of both; 0, or -1 with an exception set. */
static int read_exchange(PyObject *positional, PyObject *keywords, const char **name,
                         PyObject **function, int *by_dlpack)
{
    static const char *const names[] = {"name", "function", "dlpack", NULL};
    *by_dlpack = 0;
    if (!PyArg_ParseTupleAndKeywords(positional, keywords, "sO|p", (char **)names, name, function,
                                     by_dlpack))
        return -1;
    return interpreter_flush();
}

static PyObject *host_lend(PyObject *module, PyObject *positional, PyObject *keywords)
{
    const char *name;
    PyObject *function;
    int by_dlpack;
    (void)module;
    if (read_exchange(positional, keywords, &name, &function, &by_dlpack) != 0 ||
        exchange_lend(name, function, by_dlpack) != 0)
        return NULL;
    return done();
}

static PyObject *host_borrow(PyObject *module, PyObject *positional, PyObject *keywords)
{
    const char *name;
    PyObject *function;
    int by_dlpack;
    (void)module;
    if (read_exchange(positional, keywords, &name, &function, &by_dlpack) != 0 ||
        exchange_borrow(name, function, by_dlpack, workers_books(main_books)) != 0)
        return NULL;
    return done();
}

PyDoc_STRVAR(wave_doc,
             "wave(function, points=768, count=4, picture=None, abort=None)\n\n"
             "Call function(rank, count, modes, until, field, progress) in so many threads: see\n"
             "demo.py for what it has to do.  Claim that the field is the true one, and write it\n"
             "to the file `picture`, as PNG.");

static PyObject *host_wave(PyObject *module, PyObject *positional, PyObject *keywords)
{
    static const char *const names[] = {"function", "points", "count", "picture", "abort", NULL};
    struct wave_job job = {.points = 768, .count = 4};
    PyObject *picture = Py_None, *abort = Py_None, *path = NULL;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(positional, keywords, "O|$iiOO:wave", (char **)names,
                                     &job.function, &job.points, &job.count, &picture, &abort))
        return NULL;
    if (picture != Py_None && !PyUnicode_FSConverter(picture, &path))
        return NULL;
    int failed = -1;
    job.abort = abort != Py_None ? abort : NULL;
    job.picture = path != NULL ? PyBytes_AsString(path) : NULL;
    if (job.points < 8 || job.points > 4096 || job.count < 1 || job.count > WORKERS_MOST)
        PyErr_Format(PyExc_ValueError, "points is 8 to 4096, and count is 1 to %d", WORKERS_MOST);
    else if (interpreter_flush() == 0)
        failed = wave_run(&job);
    Py_XDECREF(path);
    return failed ? NULL : done();
}

/* METH_KEYWORDS functions have another type than the table's; Python knows which is which. */
#define WITH_KEYWORDS(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef methods[] = {
    {"borrow", WITH_KEYWORDS(host_borrow), METH_VARARGS | METH_KEYWORDS, borrow_doc},
    {"compare", host_compare, METH_VARARGS, compare_doc},
    {"lend", WITH_KEYWORDS(host_lend), METH_VARARGS | METH_KEYWORDS, lend_doc},
    {"skip", host_skip, METH_VARARGS, skip_doc},
    {"threads", WITH_KEYWORDS(host_threads), METH_VARARGS | METH_KEYWORDS, threads_doc},
    {"wave", WITH_KEYWORDS(host_wave), METH_VARARGS | METH_KEYWORDS, wave_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "host",     .m_doc = "The program that this script runs in.",
    .m_size = -1,          .m_methods = methods,
};

static PyObject *make_module(void)
{
    return PyModule_Create(&definition);
}

int host_announce(void)
{
    return PyImport_AppendInittab("host", make_module);
}

void host_begin(struct books *books)
{
    main_books = books;
    workers_begin(&books->behind);
}
