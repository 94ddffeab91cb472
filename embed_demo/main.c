/* SPDX-License-Identifier: BSD-3-Clause
 *
 * embed_demo: a C program that runs Python scripts and owns the memory of their NumPy arrays.
 *
 * main() stands at the end and says what happens in which order.  docs/embedding.md walks through
 * it; minimal.c is the same in one small file, without the threads and the proofs.
 */
#define FILLS_IN_THE_TABLE
#include "embed_demo.h"

#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The build defines DEFAULT_PYTHON, DEMO_SCRIPT (where demo.py is), and DEMO_HANDLERS (the folder
 * of the reference handlers, each NAME.so). */

/* Where the script ran, its own status is passed on. */
enum status {
    STATUS_FAILED = 1, /* it raised, or a claim did not hold */
    STATUS_USAGE = 2,
    STATUS_CANNOT_LOAD = 3,
    STATUS_PYTHON_BROKE = 4,
    STATUS_CANNOT_WORK_HERE = 77,
    STATUS_INTERRUPTED = 130,
};

static const char usage[] =
    "usage: embed_demo [--handler=PATH|NAME] [--python=PATH] [SCRIPT [ARGUMENT]...]\n"
    "Run a Python script inside a C program that owns the memory of its NumPy arrays.  Without\n"
    "a SCRIPT, run demo.py, which shows what the program can do and draws wave.png.\n"
    "  --handler  a shared object that exports a handler (see nep49.h; PATH has a slash), or the\n"
    "             name of a reference handler (default: aligned)\n"
    "  --python   the interpreter to embed, such as venv/bin/python\n";

static const char *handler_name = "aligned", *python = DEFAULT_PYTHON;

/* Static: NumPy may call a handler for as long as the process lives. */
static struct tracker tracker;

/* Prints "embed_demo: " and the line to stderr.  Returns `status`. */
static int __attribute__((format(printf, 2, 3))) complain(int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("embed_demo: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return status;
}

/* Reads the options, and leaves the script and its arguments, whose options are its own. */
static void read_options(int *argc, char ***argv)
{
    static char script[] = DEMO_SCRIPT, *demo[] = {script, NULL};
    static const struct option names[] = {
        {"handler", required_argument, NULL, 'H'},
        {"help", no_argument, NULL, 'h'},
        {"python", required_argument, NULL, 'p'},
        {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(*argc, *argv, "+H:", names, NULL)) != -1;) {
        if (option == 'H') {
            handler_name = optarg;
        } else if (option == 'p') {
            python = optarg;
        } else {
            fputs(usage, option == 'h' ? stdout : stderr);
            exit(option == 'h' ? 0 : STATUS_USAGE);
        }
    }
    *argc = optind < *argc ? *argc - optind : 1;
    *argv = (*argv)[optind] != NULL ? *argv + optind : demo;
}

static PyStatus start_python(int argc, char **argv)
{
    PyConfig config;
    /* The configuration of python itself and not PyConfig_InitIsolatedConfig, which leaves out the
     * PYTHON* variables, the locale, and the signal handler that makes Ctrl-C a KeyboardInterrupt.
     */
    PyConfig_InitPythonConfig(&config);
    config.parse_argv = 0;     /* the options in argv are the script's, not Python's */
    config.buffered_stdio = 0; /* what Python prints and what C prints come in their order */
    /* The name that this program would have if it were python: sys.path, sys.prefix and
     * sys.executable follow from where that file is, which is all that a virtual environment
     * takes. */
    PyStatus status = PyConfig_SetBytesString(&config, &config.program_name, python);
    if (!PyStatus_Exception(status))
        status = PyConfig_SetBytesArgv(&config, argc, argv);
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    return status;
}

/* Loads the handler for good: nothing unloads its code, which the last array may need. */
static int load_handler(const char *name, const PyDataMem_Handler **handler)
{
    char path[PATH_MAX];
    const char *why = "";
    if (strchr(name, '/') != NULL)
        snprintf(path, sizeof path, "%s", name);
    else
        snprintf(path, sizeof path, DEMO_HANDLERS "/%s.so", name);
    void *object = dlopen(path, RTLD_NOW);
    if (object == NULL)
        return complain(STATUS_CANNOT_LOAD, "%s", dlerror());
    PyDataMem_Handler *(*getter)(const char **) =
        (__typeof__(getter))dlsym(object, "nep49_get_handler");
    *handler = getter != NULL ? getter(&why) : dlsym(object, "nep49_handler");
    if (*handler == NULL && getter != NULL)
        return complain(STATUS_CANNOT_WORK_HERE, "%s: cannot work here: %s", name, why);
    if (*handler == NULL)
        return complain(STATUS_CANNOT_LOAD, "%s: exports no handler", name);
    /* NumPy looks at none of this, and would crash at the first array. */
    const PyDataMemAllocator *a = &(*handler)->allocator;
    if ((*handler)->version != 1 || a->malloc == NULL || a->calloc == NULL || a->realloc == NULL ||
        a->free == NULL)
        return complain(STATUS_CANNOT_LOAD, "%s: is not of version 1, or lacks a function", name);
    return 0;
}

/* Ends the pending exception, and returns the status to leave with.  PyErr_Print is enough for all
 * but SystemExit, at which it would end the process, with nothing proven yet. */
static int status_of_exception(void)
{
    PyObject *type, *value, *traceback;
    int interrupted = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
    if (!PyErr_ExceptionMatches(PyExc_SystemExit)) {
        PyErr_Print();
        return interrupted ? STATUS_INTERRUPTED : STATUS_FAILED;
    }
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *code = PyObject_GetAttrString(value, "code");
    int status = code == Py_None ? 0 : STATUS_FAILED;
    if (code != NULL && PyLong_Check(code))
        status = (int)PyLong_AsLong(code) & 0xff;
    else if (code != NULL && code != Py_None)
        PySys_FormatStderr("%S\n", code);
    Py_XDECREF(code);
    Py_XDECREF(traceback);
    Py_XDECREF(value);
    Py_DECREF(type);
    PyErr_Clear();
    return status;
}

/* Runs the script in the module __main__, with its folder first on sys.path. */
static int run_script(FILE *file, const char *path)
{
    char real[PATH_MAX];
    if (realpath(path, real) == NULL)
        snprintf(real, sizeof real, "%s", path); /* a pipe */
    /* These three are borrowed. */
    PyObject *module = PyImport_AddModule("__main__");
    PyObject *globals = module != NULL ? PyModule_GetDict(module) : NULL;
    PyObject *places = PySys_GetObject("path");
    PyObject *name = PyUnicode_DecodeFSDefault(real);
    PyObject *folder = PyUnicode_DecodeFSDefault(dirname(real));
    PyObject *result = NULL;
    if (globals != NULL && places != NULL && name != NULL && folder != NULL &&
        PyList_Insert(places, 0, folder) == 0 &&
        PyDict_SetItemString(globals, "__file__", name) == 0)
        result = PyRun_FileExFlags(file, path, Py_file_input, globals, globals, 0, NULL);
    int status = result != NULL ? 0 : status_of_exception();
    Py_XDECREF(result);
    Py_XDECREF(folder);
    Py_XDECREF(name);
    return status;
}

/* import_array() is a macro for extension modules: it prints, and returns from its caller.  The
 * function beneath it does not say why it failed, which an import does: of numpy.ma, that NumPy 2
 * imports when np.quantile or the like first needs it, and keeps two arrays in. */
static int import_numpy(void)
{
    PyObject *numpy = PyImport_ImportModule("numpy.ma");
    int failed = numpy == NULL || _import_array() != 0;
    Py_XDECREF(numpy);
    return failed ? -1 : 0;
}

int install_handler(PyDataMem_Handler *handler, PyCapsule_Destructor unused)
{
    PyObject *capsule = PyCapsule_New(handler, HANDLER_CAPSULE, unused);
    PyObject *before = capsule != NULL ? PyDataMem_SetHandler(capsule) : NULL;
    Py_XDECREF(capsule); /* the context has taken a reference, and so will each array */
    Py_XDECREF(before);
    return before != NULL ? 0 : -1;
}

/* What happens while the interpreter is up.  The handler is installed after NumPy was imported, so
 * that NumPy's own arrays are no concern of it, and stays to the end. */
static int run_with_handler(FILE *script, const char *path)
{
    const PyDataMem_Handler *handler;
    int status = load_handler(handler_name, &handler);
    if (status != 0)
        return status;
    if (import_numpy() != 0) {
        PyErr_Print();
        return STATUS_PYTHON_BROKE;
    }
    tracker_open(&tracker, handler, "main");
    status = install_handler(&tracker.handler, NULL) == 0 ? run_script(script, path)
                                                          : status_of_exception();
    report_note_exit();
    return status;
}

static int run(int argc, char **argv, FILE *script)
{
    if (access(python, X_OK) != 0)
        return complain(STATUS_USAGE, "%s: %s", python, strerror(errno));
    if (host_announce(&tracker) != 0)
        return complain(STATUS_PYTHON_BROKE, "there is no memory");
    PyStatus started = start_python(argc, argv);
    if (PyStatus_Exception(started))
        return complain(STATUS_PYTHON_BROKE, "%s: Python cannot be started: %s", python,
                        started.err_msg != NULL ? started.err_msg : "no reason given");
    int status = run_with_handler(script, argv[0]);
    if (Py_FinalizeEx() != 0 && status == 0)
        status = STATUS_FAILED;
    return tracker_first() != NULL ? report_end(status) : status;
}

int main(int argc, char **argv)
{
    read_options(&argc, &argv);
    FILE *script = fopen(argv[0], "rbe");
    if (script == NULL)
        return complain(STATUS_USAGE, "%s: %s", argv[0], strerror(errno));
    int status = run(argc, argv, script);
    fclose(script);
    return status;
}
