/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Starting Python and NumPy inside this program.
 */
#define CONFORM_WANTS_PYTHON_API
#define CONFORM_IMPORTS_ARRAY
#include "python/python.h"

#include <stdio.h>
#include <string.h>

#include "base/instrumented.h"
#include "base/text.h"

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
            place = text(" (%s:%ld)", name, PyLong_AsLong(line));
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
    return text_safe(line);
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
    const char *line = text("%s%s%s%s", ((PyTypeObject *)type)->tp_name,
                            message != NULL && *message != '\0' ? ": " : "",
                            message != NULL ? one_line(message) : "", place_of(traceback));
    Py_XDECREF(words);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    PyErr_Clear();
    return line;
}

static const char *set_path(PyConfig *config, const char *path)
{
    PyStatus status = PyConfig_SetBytesString(config, &config->program_name, path);
    if (!PyStatus_Exception(status))
        status = PyConfig_SetBytesString(config, &config->executable, path);
    return PyStatus_Exception(status) ? status.err_msg : NULL;
}

static const char *initialize(const char *path)
{
    PyPreConfig before;
    PyPreConfig_InitPythonConfig(&before);
    if (memcheck_is_running())
        before.allocator = PYMEM_ALLOCATOR_MALLOC; /* so that memcheck sees each block */
    PyStatus status = Py_PreInitialize(&before);
    if (PyStatus_Exception(status))
        return status.err_msg;
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    config.parse_argv = 0;
    config.install_signal_handlers = 0; /* Check's and the coordinator's stay */
    config.write_bytecode = 0;
    const char *wrong = set_path(&config, path);
    if (wrong == NULL)
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (wrong == NULL && PyStatus_Exception(status))
        wrong = status.err_msg != NULL ? status.err_msg : "no reason given";
    return wrong;
}

/* The start of sys.version and the version of NumPy. */
static const char *describe(struct environment *environment, const char *path)
{
    const char *version = Py_GetVersion();
    snprintf(environment->python, sizeof environment->python, "%.*s", (int)strcspn(version, " "),
             version);
    snprintf(environment->python_executable, sizeof environment->python_executable, "%s", path);
#ifdef Py_GIL_DISABLED
    environment->free_threaded = true;
#endif
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *text_of = numpy != NULL ? PyObject_GetAttrString(numpy, "__version__") : NULL;
    const char *numpy_version = text_of != NULL ? PyUnicode_AsUTF8(text_of) : NULL;
    if (numpy_version != NULL)
        snprintf(environment->numpy, sizeof environment->numpy, "%s", numpy_version);
    Py_XDECREF(text_of);
    Py_XDECREF(numpy);
    return numpy_version != NULL ? NULL : text("NumPy cannot be imported: %s", python_error());
}

bool python_is_up(void)
{
    return Py_IsInitialized() != 0;
}

const char *python_import_array(void)
{
    return _import_array() == 0 ? NULL
                                : text("NumPy does not take a program built against the headers of "
                                       "NumPy %s: %s",
                                       NUMPY_HEADERS_VERSION, python_error());
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
    wrong = describe(environment, path);
    if (wrong == NULL && _import_array() != 0)
        wrong = text("NumPy %s does not take a program built against the headers of %s: %s; "
                     "configure again with PYTHON=%s",
                     environment->numpy, NUMPY_HEADERS_VERSION, python_error(), path);
    return wrong;
}

const char *python_start_to_fork(const char *path, struct environment *environment)
{
    const char *wrong = python_start_bare(path);
    if (wrong != NULL)
        return wrong;
    tell_collector("disable");
    wrong = python_start(path, environment);
    tell_collector("freeze");
    tell_collector("enable");
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

/* From the beginning of Py_FinalizeEx on Python says that it is not initialized. */
static bool is_finalizing(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

bool python_has_gil(void)
{
    return (Py_IsInitialized() || is_finalizing()) && PyGILState_Check();
}

const void *python_pending(void)
{
    /* PyGILState_Check says yes to everybody once there was a sub-interpreter */
    bool has_state = Py_IsInitialized() && PyGILState_GetThisThreadState() != NULL;
    return has_state && PyGILState_Check() ? PyErr_Occurred() : NULL;
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
