/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a script can ask of the program: a function for each part, which reads its arguments and
 * leaves the work to the file of that part.
 */
#include "embed_demo.h"

static const struct tracker *main_tracker;

/* claim(part, passed, text): prints a claim, and whether it passed. */
static PyObject *host_claim(PyObject *module, PyObject *arguments)
{
    const char *part, *text;
    int passed;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "sps:claim", &part, &passed, &text))
        return NULL;
    report_claim(passed, part, "%s", text);
    Py_RETURN_NONE;
}

/* threads(name, function, count=4, room=1 << 24, abort=None): calls function(rank) in so many
 * threads, with an arena of `room` bytes each, and returns a list of what they return, which are
 * lists of the arrays that they keep. */
static PyObject *host_threads(PyObject *module, PyObject *positional, PyObject *keywords)
{
    static const char *const names[] = {"name", "function", "count", "room", "abort", NULL};
    struct job job = {.count = 4};
    Py_ssize_t room = 1 << 24;
    PyObject *abort = Py_None;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(positional, keywords, "sO|inO:threads", (char **)names,
                                     &job.name, &job.function, &job.count, &room, &abort))
        return NULL;
    if (job.count < 1 || job.count > THREADS_MOST || room < 1)
        return PyErr_Format(PyExc_ValueError, "count is 1 to %d, and room is not 0", THREADS_MOST);
    job.room = (size_t)room;
    job.abort = abort != Py_None ? abort : NULL;
    return threads_run(&job, &main_tracker->behind);
}

/* live(): how many blocks of this thread's handler are alive, and of how many bytes. */
static PyObject *host_live(PyObject *module, PyObject *nothing)
{
    (void)module, (void)nothing;
    PyObject *capsule = PyDataMem_GetHandler();
    if (capsule == NULL)
        return NULL;
    PyDataMem_Handler *handler = PyCapsule_GetPointer(capsule, HANDLER_CAPSULE);
    Py_DECREF(capsule); /* the context holds it */
    if (handler == NULL || handler->allocator.ctx != handler)
        return PyErr_Format(PyExc_RuntimeError, "this thread has not a handler of the host's");
    struct figures f = tracker_read((struct tracker *)handler);
    return Py_BuildValue("nn", (Py_ssize_t)f.blocks, (Py_ssize_t)f.bytes);
}

/* lend(name, function, dlpack=False), borrow(name, function, dlpack=False): see exchange_lend and
 * exchange_borrow. */
static PyObject *exchange(PyObject *arguments, int (*by)(const char *, PyObject *, bool))
{
    const char *name;
    PyObject *function;
    int by_dlpack = 0;
    if (!PyArg_ParseTuple(arguments, "sO|p", &name, &function, &by_dlpack) ||
        by(name, function, by_dlpack) != 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *host_lend(PyObject *module, PyObject *arguments)
{
    (void)module;
    return exchange(arguments, exchange_lend);
}

static PyObject *host_borrow(PyObject *module, PyObject *arguments)
{
    (void)module;
    return exchange(arguments, exchange_borrow);
}

static PyMethodDef methods[] = {
    {"borrow", host_borrow, METH_VARARGS, "Use an array of Python's from C, and claim things."},
    {"claim", host_claim, METH_VARARGS, "Print a claim."},
    {"lend", host_lend, METH_VARARGS, "Show Python an array of C's, and claim things."},
    {"live", host_live, METH_NOARGS, "Blocks and bytes of this thread's handler."},
    /* A function with keywords has another type than the table's; the flags say so. */
    {"threads", (PyCFunction)(void (*)(void))host_threads, METH_VARARGS | METH_KEYWORDS,
     "Run a function in threads with an arena each, and claim things."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "host",     .m_doc = "The program that this script runs in.",
    .m_size = -1,          .m_methods = methods,
};

static PyObject *make_module(void)
{
    PyObject *module = PyModule_Create(&definition);
#ifdef Py_GIL_DISABLED
    if (module != NULL) /* else a free-threaded Python would turn its GIL on */
        PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    return module;
}

int host_announce(const struct tracker *tracker)
{
    main_tracker = tracker;
    return PyImport_AppendInittab("host", make_module);
}
