/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Python by its C-API, from PyConfig to Py_FinalizeEx.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "interpreter.h"

#include <string.h>

#include "arguments.h"
#include "text.h"

const char *interpreter_start(const char *python, bool isolated, int argc, char **argv)
{
    PyConfig config;
    /* The configuration of python itself and not PyConfig_InitIsolatedConfig, which leaves out more
     * than python -I does: the locale, UTF-8 mode, and the signal handler that makes Ctrl-C a
     * KeyboardInterrupt. */
    PyConfig_InitPythonConfig(&config);
    config.parse_argv = 0;      /* the options in argv are the script's, not Python's */
    config.isolated = isolated; /* before the first string: decoding it reads the environment */
    /* The name that this program would have if it were python: sys.path, sys.prefix and
     * sys.executable follow from where that file is. */
    PyStatus status = PyConfig_SetBytesString(&config, &config.program_name, python);
    if (!PyStatus_Exception(status))
        status = PyConfig_SetBytesArgv(&config, argc, argv);
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (!PyStatus_Exception(status))
        return NULL;
    return status.err_msg != NULL ? text_safe(status.err_msg) : "no reason given";
}

/* os.path.NAME(argument), or NULL with an exception set. */
static PyObject *os_path(const char *name, PyObject *argument)
{
    PyObject *module = argument != NULL ? PyImport_ImportModule("os.path") : NULL;
    PyObject *result = module != NULL ? PyObject_CallMethod(module, name, "O", argument) : NULL;
    Py_XDECREF(module);
    return result;
}

/* sys.flags.NAME; one that this version does not know is not set. */
static int flag_is_set(const char *name)
{
    PyObject *flags = PySys_GetObject("flags"); /* borrowed */
    PyObject *flag = flags != NULL ? PyObject_GetAttrString(flags, name) : NULL;
    int set = flag != NULL && PyObject_IsTrue(flag);
    Py_XDECREF(flag);
    PyErr_Clear();
    return set;
}

/* The folder in which the script really is becomes the first of sys.path. */
static int add_folder(PyObject *script)
{
    if (flag_is_set("isolated") || flag_is_set("safe_path"))
        return 0;
    PyObject *real = os_path("realpath", script);
    PyObject *folder = os_path("dirname", real);
    PyObject *path = PySys_GetObject("path"); /* borrowed */
    int failed = folder == NULL || path == NULL || PyList_Insert(path, 0, folder) != 0;
    Py_XDECREF(folder);
    Py_XDECREF(real);
    return failed ? -1 : 0;
}

/* What python makes of SystemExit: a number is the status, None is 0, and anything else is printed
 * and is 1.  PyErr_Print would do the same, and end the process, before the books are read. */
static int status_of_exit(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *code = PyObject_GetAttrString(value, "code");
    int status = 1;
    if (code == NULL)
        PyErr_Print();
    else if (code == Py_None)
        status = 0;
    else if (PyLong_Check(code))
        status = (int)PyLong_AsLong(code) & 0xff;
    else
        PySys_FormatStderr("%S\n", code);
    PyErr_Clear(); /* of a number that is no long */
    Py_XDECREF(code);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return status;
}

static int status_of_exception(void)
{
    if (PyErr_ExceptionMatches(PyExc_SystemExit))
        return status_of_exit();
    int status = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) ? STATUS_INTERRUPTED : 1;
    PyErr_Print();
    return status;
}

/* Runs it in the module __main__.  PyRun_SimpleFileExFlags is shorter, and ends the process where
 * the script calls sys.exit. */
static int run_in_main(FILE *file, const char *path)
{
    PyObject *module = PyImport_AddModule("__main__"); /* borrowed, as its dictionary */
    PyObject *globals = module != NULL ? PyModule_GetDict(module) : NULL;
    PyObject *script = PyUnicode_DecodeFSDefault(path);
    PyObject *absolute = os_path("abspath", script);
    PyObject *bytes = absolute != NULL ? PyUnicode_EncodeFSDefault(absolute) : NULL;
    PyObject *result = NULL;
    if (globals != NULL && bytes != NULL && add_folder(script) == 0 &&
        PyDict_SetItemString(globals, "__file__", absolute) == 0)
        result = PyRun_FileExFlags(file, PyBytes_AsString(bytes), Py_file_input, globals, globals,
                                   0, NULL);
    int status = result != NULL ? 0 : status_of_exception();
    Py_XDECREF(result);
    Py_XDECREF(bytes);
    Py_XDECREF(absolute);
    Py_XDECREF(script);
    return status;
}

int interpreter_run(FILE *file, const char *path)
{
    int status = run_in_main(file, path);
    fclose(file);
    return status;
}

int interpreter_complain(const char *what)
{
    int status =
        PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) ? STATUS_INTERRUPTED : STATUS_BROKE;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *string = PyObject_Str(value);
    const char *words = string != NULL ? PyUnicode_AsUTF8(string) : NULL;
    if (words == NULL)
        words = "";
    words += strspn(words, " \n"); /* NumPy begins its advice with empty lines */
    char first[400];
    text_clean(first, sizeof first, words, strcspn(words, "\n"), 0);
    complain(status, "%s: %s%s%s", what, ((PyTypeObject *)type)->tp_name,
             first[0] != '\0' ? ": " : "", first);
    PyErr_Clear();
    Py_XDECREF(string);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return status;
}

int interpreter_stop(int status)
{
    int failed = Py_FinalizeEx();
    return failed && status == 0 ? STATUS_FLUSH_FAILED : status;
}
