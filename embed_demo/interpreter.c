/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Python by its C-API, from PyConfig to Py_FinalizeEx.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "interpreter.h"

#include "arguments.h"
#include "exception.h"
#include "base/text.h"

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

/* Runs it in the module __main__.  PyRun_SimpleFileExFlags is shorter, and ends the process where
 * the script calls sys.exit. */
static int run_in_main(FILE *file, const char *path, bool in_full)
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
    int status = result != NULL ? 0 : exception_of_script(path, absolute, in_full);
    Py_XDECREF(result);
    Py_XDECREF(bytes);
    Py_XDECREF(absolute);
    Py_XDECREF(script);
    return status;
}

int interpreter_run(FILE *file, const char *path, bool in_full)
{
    int status = run_in_main(file, path, in_full);
    fclose(file);
    return status;
}

int interpreter_flush(void)
{
    PyObject *file = PySys_GetObject("stdout"); /* borrowed */
    if (file == NULL || file == Py_None)
        return 0;
    PyObject *nothing = PyObject_CallMethod(file, "flush", NULL);
    Py_XDECREF(nothing);
    return nothing != NULL ? 0 : -1;
}

int interpreter_stop(int status)
{
    int failed = Py_FinalizeEx();
    return failed && status == 0 ? STATUS_FLUSH_FAILED : status;
}
