/* SPDX-License-Identifier: BSD-3-Clause
 *
 * embed_demo: a C program that runs Python scripts and owns the memory of their NumPy arrays.
 *
 * Start to read at main(), at the end.  docs/embedding.md explains the program.  minimal.c does the
 * same without threads, without sharing arrays, and without checks.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <numpy/arrayobject.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "handlers.h" /* after NumPy's header, which declares the struct of a handler */

static struct tracker main_tracker; /* static: arrays can outlive the interpreter */
static int checks, failures;

/* Prints what was checked, and whether it holds.  `part` is the first word of the line. */
static void check(bool passed, const char *part, const char *text)
{
    printf("%-8s%-9s%s\n", passed ? "PASS" : "FAIL", part, text);
    checks++;
    failures += !passed;
}

/* Prints the table and the last check.  Runs when the process exits, which is after the end of
 * Python, even if the script calls sys.exit(). */
static void report(int status, void *unused)
{
    struct tally sum = {.blocks = 0}, at_exit = {.blocks = 0};
    char text[128];
    (void)unused;
    printf("\n%-12s%-20s%9s%9s%9s%9s%12s%11s%12s%12s\n", "thread", "handler", "malloc", "calloc",
           "realloc", "free", "requested", "peak", "script end", "Python end");
    for (struct tracker *t = trackers; t != NULL; t = t->next) {
        const struct tally *c = &t->now;
        printf("%-12s%-20s%9lu%9lu%9lu%9lu%12zu%11zu%12zu%12zu\n", t->owner, t->handler.name,
               c->calls[MALLOC], c->calls[CALLOC], c->calls[REALLOC], c->calls[FREE], c->requested,
               c->peak, t->at_exit.bytes, c->bytes);
        at_exit.blocks += t->at_exit.blocks;
        sum.blocks += c->blocks;
        sum.foreign += c->foreign;
        sum.null_frees += c->null_frees;
        sum.wrong_sizes += c->wrong_sizes;
    }
    printf("NumPy called free with NULL %lu times, and with a wrong size %lu times\n\n",
           sum.null_frees, sum.wrong_sizes);
    snprintf(text, sizeof text,
             "%zu blocks outlived the script, %zu outlived Python, %lu went to "
             "the wrong handler",
             at_exit.blocks, sum.blocks, sum.foreign);
    check(sum.blocks == 0 && sum.foreign == 0, "balance", text);
    printf("embed_demo: %d of %d checks passed; the script ended with status %d\n",
           checks - failures, checks, status);
    if (fflush(stdout) != 0 || ferror(stdout) || (failures > 0 && status == 0))
        _exit(1);
}

/* NumPy finds the handler in a capsule of this name, in the context of the thread.  Arrays keep the
 * handler that made them; `unused` is called when the last of them and the context are gone. */
static int install_handler(PyDataMem_Handler *handler, PyCapsule_Destructor unused)
{
    PyObject *capsule = PyCapsule_New(handler, "mem_handler", unused);
    PyObject *before = capsule != NULL ? PyDataMem_SetHandler(capsule) : NULL;
    Py_XDECREF(capsule); /* the context has its own reference now */
    Py_XDECREF(before);
    return before != NULL ? 0 : -1;
}

struct own {                /* never freed, because NumPy calls it as long as an array lives */
    struct tracker tracker; /* first: a pointer to its handler is one to the struct */
    struct arena arena;
};

static void own_unused(PyObject *capsule)
{
    arena_close(&((struct own *)PyCapsule_GetPointer(capsule, "mem_handler"))->arena);
}

/* host.own_arena(owner, room): from now on, this thread makes its arrays in an arena of `room`
 * bytes. A new thread has an empty context, and so NumPy's own handler. */
static PyObject *host_own_arena(PyObject *module, PyObject *arguments)
{
    const char *owner;
    Py_ssize_t room;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "sn", &owner, &room))
        return NULL;
    struct own *own = calloc(1, sizeof *own);
    if (own == NULL || arena_open(&own->arena, &main_tracker.backing, (size_t)room) != 0) {
        free(own);
        return PyErr_Format(PyExc_MemoryError, "no %zd bytes for an arena", room);
    }
    tracker_open(&own->tracker, &own->arena.handler, owner);
    own->tracker.low = own->arena.base;
    own->tracker.high = own->arena.end;
    if (install_handler(&own->tracker.handler, own_unused) != 0)
        return NULL;
    Py_RETURN_NONE;
}

/* host.owner(address): the owner of the live block at that address, or None. */
static PyObject *host_owner(PyObject *module, PyObject *address)
{
    (void)module;
    lock();
    struct block *block = *find(PyLong_AsVoidPtr(address));
    const char *owner = block != NULL ? block->tracker->owner : NULL;
    unlock();
    return PyErr_Occurred() ? NULL : Py_BuildValue("z", owner);
}

/* host.counts(owner): its live blocks, live bytes, bytes requested, peak, and blocks outside of the
 * arena or freed by another handler. */
static PyObject *host_counts(PyObject *module, PyObject *owner)
{
    const char *name = PyUnicode_AsUTF8(owner);
    struct tally c = {.blocks = 0};
    (void)module;
    lock();
    for (struct tracker *t = trackers; name != NULL && t != NULL; t = t->next)
        c = strcmp(t->owner, name) == 0 ? t->now : c;
    unlock();
    return name == NULL ? NULL
                        : Py_BuildValue("(nnnnk)", c.blocks, c.bytes, c.requested, c.peak,
                                        c.outside + c.foreign);
}

/* ---- arrays from C to Python and back, as NumPy arrays or by DLPack ---- */

/* DLPack passes arrays between libraries without a copy.  These are the structs of DLPack 0.x,
 * which a capsule named "dltensor" holds.  The receiver renames the capsule to "used_dltensor", and
 * calls the deleter when done.  If nobody takes the tensor, the capsule itself calls it. */
enum { DL_CPU = 1, DL_FLOAT = 2 };

typedef struct {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides; /* strides in elements; NULL: contiguous */
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self); /* or NULL */
} DLManagedTensor;

/* The numbers that C lends, and how many objects of Python have them. */
static double numbers[1000];
static int64_t shape[] = {1000};
static atomic_int borrowers;

/* Any thread may call this, even after the end of Python, so it uses nothing of Python. */
static void let_go(DLManagedTensor *tensor)
{
    (void)tensor;
    borrowers--;
}

static DLManagedTensor lent = {
    {numbers, DL_CPU, 0, 1, DL_FLOAT, 64, 1, shape, NULL, 0}, NULL, let_go};

static void capsule_gone(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, "used_dltensor")) /* else its receiver calls the deleter */
        let_go(&lent);
}

/* host.lend(dlpack): an array over the numbers of C; with dlpack, a capsule for from_dlpack().
 * Such an array must not own its memory (OWNDATA), because NumPy would call free() on it.  Its base
 * is a capsule instead.  Each view has the array as its base, so the capsule ends with the last. */
static PyObject *host_lend(PyObject *module, PyObject *dlpack)
{
    (void)module;
    PyObject *capsule =
        PyCapsule_New(&lent, dlpack == Py_True ? "dltensor" : "numbers of C", capsule_gone);
    borrowers += capsule != NULL;
    if (capsule == NULL || dlpack == Py_True)
        return capsule;
    PyObject *array = PyArray_SimpleNewFromData(1, (npy_intp *)shape, NPY_DOUBLE, numbers);
    if (array == NULL)
        Py_DECREF(capsule);
    else if (PyArray_SetBaseObject((PyArrayObject *)array, capsule) != 0) /* takes the capsule */
        Py_CLEAR(array);
    return array;
}

/* host.borrowers(): how many objects of Python have the numbers. */
static PyObject *host_borrowers(PyObject *module, PyObject *nothing)
{
    (void)module, (void)nothing;
    return PyLong_FromLong(borrowers);
}

/* Numbers of Python that C uses, and what keeps them alive: an array or a tensor. */
struct loan {
    const double *numbers;
    Py_ssize_t count;
    PyObject *array;
    DLManagedTensor *tensor;
};

static void loan_ends(PyObject *capsule)
{
    struct loan *loan = PyCapsule_GetPointer(capsule, "loan");
    if (loan->tensor != NULL && loan->tensor->deleter != NULL)
        loan->tensor->deleter(loan->tensor); /* with the GIL, because it may release an array */
    Py_XDECREF(loan->array);
    free(loan);
}

static bool is_row_of_doubles(const DLTensor *t)
{
    return t->device_type == DL_CPU && t->ndim == 1 && t->code == DL_FLOAT && t->bits == 64 &&
           t->lanes == 1 && (!t->strides || t->strides[0] == 1);
}

/* host.borrow(object): a capsule by which C uses an array of floats, or the tensor in a capsule
 * of __dlpack__(). */
static PyObject *host_borrow(PyObject *module, PyObject *object)
{
    struct loan *loan = calloc(1, sizeof *loan);
    DLManagedTensor *tensor = NULL;
    PyArrayObject *array = (PyArrayObject *)object;
    (void)module;
    if (loan == NULL)
        return PyErr_NoMemory();
    if (PyCapsule_IsValid(object, "dltensor"))
        tensor = PyCapsule_GetPointer(object, "dltensor");
    if (tensor != NULL && is_row_of_doubles(&tensor->dl_tensor)) {
        const char *data = tensor->dl_tensor.data;
        *loan = (struct loan){(void *)(data + tensor->dl_tensor.byte_offset),
                              tensor->dl_tensor.shape[0], NULL, tensor};
        PyCapsule_SetName(object, "used_dltensor"); /* the deleter is ours to call now */
    } else if (PyArray_Check(object) && PyArray_TYPE(array) == NPY_DOUBLE &&
               PyArray_ISCARRAY_RO(array)) {
        *loan = (struct loan){PyArray_DATA(array), PyArray_SIZE(array), object, NULL};
        Py_INCREF(object);
    } else {
        free(loan);
        return PyErr_Format(PyExc_TypeError, "not one row of contiguous floats");
    }
    return PyCapsule_New(loan, "loan", loan_ends);
}

/* host.sum(loan): the sum of borrowed numbers, without the GIL, and their address. */
static PyObject *host_sum(PyObject *module, PyObject *capsule)
{
    double sum = 0;
    struct loan *loan = PyCapsule_GetPointer(capsule, "loan");
    (void)module;
    if (loan == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    for (Py_ssize_t i = 0; i < loan->count; i++)
        sum += loan->numbers[i];
    Py_END_ALLOW_THREADS;
    return Py_BuildValue("dn", sum, (Py_ssize_t)loan->numbers);
}

/* host.check(part, passed, text): prints a check. */
static PyObject *host_check(PyObject *module, PyObject *arguments)
{
    const char *part, *text;
    int passed;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "sps", &part, &passed, &text))
        return NULL;
    check(passed, part, text);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"borrow", host_borrow, METH_O, "Let C use an array or a tensor of Python."},
    {"borrowers", host_borrowers, METH_NOARGS, "How many objects have the numbers of C."},
    {"check", host_check, METH_VARARGS, "Print a check."},
    {"counts", host_counts, METH_O, "What the tracker of this owner has counted."},
    {"lend", host_lend, METH_O, "An array or a tensor over numbers of C."},
    {"own_arena", host_own_arena, METH_VARARGS, "Give this thread a handler with an arena."},
    {"owner", host_owner, METH_O, "The owner of the block at this address."},
    {"sum", host_sum, METH_O, "The sum of borrowed numbers, and their address."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "host", .m_size = -1,
                                        .m_methods = methods};

static PyObject *make_module(void)
{
    PyObject *module = PyModule_Create(&definition);
#ifdef Py_GIL_DISABLED
    if (module != NULL) /* or a free-threaded Python would enable its GIL */
        PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    return module;
}

enum { USAGE = 2, CANNOT_LOAD = 3, PYTHON_BROKE = 4, CANNOT_WORK_HERE = 77, INTERRUPTED = 130 };

/* Prints why, and exits. */
static _Noreturn void fail(int status, const char *what, const char *why)
{
    fprintf(stderr, "embed_demo: %s: %s\n", what, why);
    exit(status);
}

/* Loads a shared object that exports a handler, for good: the last array may need its code. */
static const PyDataMem_Handler *load_handler(const char *path)
{
    const char *why = "exports no handler";
    void *object = dlopen(path, RTLD_NOW);
    if (object == NULL)
        fail(CANNOT_LOAD, "--handler", dlerror());
    PyDataMem_Handler *(*getter)(const char **) =
        (__typeof__(getter))dlsym(object, "nep49_get_handler");
    PyDataMem_Handler *h = getter != NULL ? getter(&why) : dlsym(object, "nep49_handler");
    if (h == NULL)
        fail(getter != NULL ? CANNOT_WORK_HERE : CANNOT_LOAD, path, why);
    const PyDataMemAllocator *a = &h->allocator; /* NumPy does not look, and would crash */
    if (h->version != 1 || !a->malloc || !a->calloc || !a->realloc || !a->free)
        fail(CANNOT_LOAD, path, "is not of version 1, or lacks a function");
    return h;
}

static void start_python(const char *python, int argc, char **argv)
{
    PyConfig config;
    /* PyConfig_InitIsolatedConfig would leave out the PYTHON* variables, the locale, and Ctrl-C. */
    PyConfig_InitPythonConfig(&config);
    config.parse_argv = 0;     /* the options in argv are the script's */
    config.buffered_stdio = 0; /* so that lines of Python and of C come in order */
    /* By its interpreter Python finds its packages; that of a virtual environment will do. */
    PyStatus status = PyConfig_SetBytesString(&config, &config.program_name, python);
    if (!PyStatus_Exception(status))
        status = PyConfig_SetBytesArgv(&config, argc, argv);
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status))
        fail(PYTHON_BROKE, python, status.err_msg != NULL ? status.err_msg : "no reason given");
}

/* Runs the script as `python` does.  Returns the exit status, unless it calls sys.exit(). */
static int run_script(FILE *file, const char *path)
{
    PyObject *globals = PyModule_GetDict(PyImport_AddModule("__main__"));
    PyRun_SimpleString("import os, sys\n__file__ = os.path.realpath(sys.argv[0])\n"
                       "sys.path.insert(0, os.path.dirname(__file__))\ndel os, sys");
    PyObject *result = PyRun_FileExFlags(file, path, Py_file_input, globals, globals, 1, NULL);
    bool interrupted = result == NULL && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
    for (struct tracker *t = trackers; t != NULL; t = t->next)
        t->at_exit = t->now;
    if (result == NULL)
        PyErr_Print(); /* after sys.exit() this ends Python and the process */
    Py_XDECREF(result);
    return interrupted ? INTERRUPTED : result == NULL;
}

static const char usage[] =
    "usage: embed_demo [--handler PATH] [--python PATH] [SCRIPT [ARGUMENT]...]\n"
    "  --handler  a shared object that exports a handler, see nep49.h (default: aligned.so)\n"
    "  --python   the interpreter to embed, such as venv/bin/python\n"
    "  SCRIPT     default: demo.py, which shows what the program can do, and draws wave.png";

int main(int argc, char **argv)
{
    static char script[] = DEFAULT_SCRIPT, *demo[] = {script, NULL};
    const char *handler = DEFAULT_HANDLER, *python = DEFAULT_PYTHON;
    for (; argc > 2 && strcmp(argv[1], "--handler") == 0; argc -= 2, argv += 2)
        handler = argv[2];
    for (; argc > 2 && strcmp(argv[1], "--python") == 0; argc -= 2, argv += 2)
        python = argv[2];
    if (argc > 1 && argv[1][0] == '-')
        fail(USAGE, argv[1], usage);
    char **words = argc > 1 ? argv + 1 : demo;
    FILE *file = fopen(words[0], "rbe");
    if (file == NULL || access(python, X_OK) != 0)
        fail(USAGE, file == NULL ? words[0] : python, strerror(errno));
    PyImport_AppendInittab("host", make_module);
    start_python(python, argc > 1 ? argc - 1 : 1, words);
    const PyDataMem_Handler *loaded = load_handler(handler);
    /* NumPy first, so that the handler does not see NumPy's own arrays.  numpy.ma is imported
     * because NumPy 2 does so when a function first needs it, and keeps two arrays in it. */
    PyObject *numpy = PyImport_ImportModule("numpy.ma");
    if (numpy == NULL || _import_array() != 0) {
        PyErr_Print();
        return PYTHON_BROKE;
    }
    Py_DECREF(numpy);
    tracker_open(&main_tracker, loaded, "main");
    on_exit(report, NULL);
    if (install_handler(&main_tracker.handler, NULL) != 0)
        fail(PYTHON_BROKE, python, "the handler cannot be installed");
    int status = run_script(file, words[0]);
    return Py_FinalizeEx() != 0 && status == 0 ? 1 : status;
}
