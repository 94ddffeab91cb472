/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Starting Python and NumPy inside this program.
 */
#include "python/python.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sanitizer_detect.h"
#include "base/text.h"
#include "python/api.h"

static PyThreadState *released;

/* The place of the innermost frame, " (file.py:12)", or "". */
static const char *place_of(PyObject *traceback)
{
    const char *place = "";
    PyObject *frame = traceback;
    Py_XINCREF(frame);
    while (frame != NULL) {
        PyObject *line = PyObject_GetAttrString(frame, "tb_lineno");
        PyObject *object = PyObject_GetAttrString(frame, "tb_frame");
        PyObject *code = object != NULL ? PyObject_GetAttrString(object, "f_code") : NULL;
        PyObject *file = code != NULL ? PyObject_GetAttrString(code, "co_filename") : NULL;
        const char *name = file != NULL ? PyUnicode_AsUTF8(file) : NULL;
        if (line != NULL && name != NULL)
            place = fmt(" (%s:%ld)", name, PyLong_AsLong(line));
        PyObject *next = PyObject_GetAttrString(frame, "tb_next");
        Py_XDECREF(file);
        Py_XDECREF(code);
        Py_XDECREF(object);
        Py_XDECREF(line);
        Py_DECREF(frame);
        frame = next != Py_None ? next : NULL;
        if (next == Py_None)
            Py_DECREF(next);
    }
    PyErr_Clear();
    return place;
}

/* The message in one line: a space for each run of line ends and blanks. */
static const char *one_line(const char *message)
{
    char line[512];
    size_t used = 0;
    while (*message != '\0' && used < sizeof line - 2) {
        size_t blank = strspn(message, " \t\n");
        message += blank;
        if (*message != '\0' && blank > 0 && used > 0)
            line[used++] = ' ';
        if (*message != '\0')
            line[used++] = *message++;
    }
    line[used] = '\0';
    return escape(line);
}

const char *python_type_name(PyObject *type)
{
    PyObject *name = PyObject_GetAttrString(type, "__name__");
    const char *words = name != NULL ? PyUnicode_AsUTF8(name) : NULL;
    const char *line = words != NULL ? escape(words) : "something";
    Py_XDECREF(name);
    PyErr_Clear();
    return line;
}

const char *python_error(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (type == NULL)
        return "no exception is set";
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *words = value != NULL ? PyObject_Str(value) : NULL;
    const char *message = words != NULL ? PyUnicode_AsUTF8(words) : NULL;
    const char *line =
        fmt("%s%s%s%s", python_type_name(type), message != NULL && *message != '\0' ? ": " : "",
            message != NULL ? one_line(message) : "", place_of(traceback));
    Py_XDECREF(words);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    PyErr_Clear();
    return line;
}

/* What each signal does, for it to be put back: Python takes SIGINT, SIGPIPE and SIGXFSZ. */
static void keep_signals(struct sigaction actions[NSIG])
{
    for (int number = 1; number < NSIG; number++)
        sigaction(number, NULL, &actions[number]);
}

static void put_signals_back(const struct sigaction actions[NSIG])
{
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &actions[number], NULL);
}

bool python_is_free_threaded(void)
{
    return strstr(Py_GetVersion(), "free-threading") != NULL;
}

const char *python_version(void)
{
    const char *version = Py_GetVersion();
    return fmt("%.*s%s", (int)strcspn(version, " "), version, python_is_free_threaded() ? "t" : "");
}

bool python_uses_gil(void)
{
    PyObject *ask = python_is_free_threaded() ? PySys_GetObject("_is_gil_enabled") : NULL;
    PyObject *answer = ask != NULL ? PyObject_CallObject(ask, NULL) : NULL;
    bool uses = answer == NULL || PyObject_IsTrue(answer) == 1;
    Py_XDECREF(answer);
    PyErr_Clear();
    return uses;
}

/* The fields of a PyConfig are in other places in each version, so what is wanted is said as on a
 * command line. */
const char *python_initialize(char *const *arguments, int *exit_code)
{
    PyConfig config;
    size_t count = 0;
    while (arguments[count] != NULL)
        count++;
    PyConfig_InitPythonConfig(&config);
    PyStatus status = PyConfig_SetBytesArgv(&config, (Py_ssize_t)count, arguments);
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    *exit_code = PyStatus_IsExit(status) ? status.exitcode : -1;
    if (!PyStatus_Exception(status))
        return NULL;
    return status.err_msg != NULL ? status.err_msg : "no reason given";
}

static const char *initialize(const char *path)
{
    struct sigaction actions[NSIG];
    sigset_t interrupt, before;
    char *const arguments[] = {(char *)path, (char *)"-B", NULL};
    int exit_code;
    if (memcheck_is_running() && !python_is_free_threaded())
        setenv("PYTHONMALLOC", "malloc", 1); /* so that memcheck sees each block */
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    keep_signals(actions);
    sigprocmask(SIG_BLOCK, &interrupt, &before); /* Python would make an exception of it */
    const char *wrong = python_initialize(arguments, &exit_code);
    put_signals_back(actions); /* the coordinator's */
    sigprocmask(SIG_SETMASK, &before, NULL);
    return wrong;
}

/* The versions of Python and NumPy, and whether there is a GIL behind both. */
static const char *describe(struct environment *environment, const char *path)
{
    snprintf(environment->python, sizeof environment->python, "%s", python_version());
    snprintf(environment->python_executable, sizeof environment->python_executable, "%s", path);
    environment->free_threaded = python_is_free_threaded();
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *text_of = numpy != NULL ? PyObject_GetAttrString(numpy, "__version__") : NULL;
    const char *numpy_version = text_of != NULL ? PyUnicode_AsUTF8(text_of) : NULL;
    if (numpy_version != NULL)
        snprintf(environment->numpy, sizeof environment->numpy, "%s", numpy_version);
    Py_XDECREF(text_of);
    Py_XDECREF(numpy);
    if (numpy_version == NULL)
        return fmt("NumPy cannot be imported: %s", python_error());
    environment->gil = python_uses_gil();
    return NULL;
}

bool python_is_up(void)
{
    return Py_IsInitialized != NULL && Py_IsInitialized() != 0;
}

const char *python_import_array(void)
{
    return python_api_import_array() ? NULL
                                     : fmt("NumPy has no handlers to offer: %s", python_error());
}

const char *python_add_module(const char *name, PyMethodDef *methods)
{
    PyObject *module = PyImport_AddModule(name);
    return module != NULL && PyModule_AddFunctions(module, methods) == 0 ? NULL : python_error();
}

/* gc.FUNCTION(). */
static void tell_collector(const char *function)
{
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *none = gc != NULL ? PyObject_CallMethod(gc, function, NULL) : NULL;
    Py_XDECREF(none);
    Py_XDECREF(gc);
    PyErr_Clear();
}

const char *python_start_bare(const char *path)
{
    return python_is_up() ? NULL : initialize(path);
}

const char *python_start(const char *path, struct environment *environment)
{
    memset(environment, 0, sizeof *environment);
    const char *wrong = python_start_bare(path);
    if (wrong != NULL)
        return wrong;
    tell_collector("disable"); /* it finds nothing, again and again */
    wrong = describe(environment, path);
    tell_collector("enable");
    return wrong != NULL ? wrong : python_import_array();
}

const char *python_start_to_fork(const char *path, struct environment *environment)
{
    const char *wrong = python_start(path, environment);
    if (wrong == NULL)
        tell_collector("freeze");
    return wrong;
}

void python_before_fork(void)
{
    PyOS_BeforeFork();
}

void python_after_fork_parent(void)
{
    PyOS_AfterFork_Parent();
}

void python_after_fork_child(void)
{
    PyOS_AfterFork_Child();
}

void python_release(void)
{
    released = PyEval_SaveThread();
}

bool python_has_gil(void)
{
    /* from the beginning of Py_FinalizeEx on Python says that it is not initialized */
    return (python_is_up() || (Py_IsFinalizing != NULL && Py_IsFinalizing())) && PyGILState_Check();
}

const void *python_pending(void)
{
    /* two calls, as it is asked twice for each call of the handler's */
    PyThreadState *own = python_is_up() ? PyGILState_GetThisThreadState() : NULL;
    return own != NULL && own == PyThreadState_GetUnchecked() ? PyErr_Occurred() : NULL;
}

void python_call_with_gil(void (*body)(void *), void *data)
{
    PyGILState_STATE state = PyGILState_Ensure();
    body(data);
    PyGILState_Release(state);
}

void python_acquire(void)
{
    PyEval_RestoreThread(released);
}
