/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How every thread and task is caught: a new thread starts with an empty context, in which NumPy
 * falls back on its default handler, and that is a capsule.  Its pointer is exchanged, so that what
 * anybody takes for the default handler is the audited one.
 */
#include "commands/audited_process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "commands/launch.h"
#include "harness/interpose.h"
#include "harness/proc_count.h"
#include "python/api.h"
#include "python/interpreter.h"
#include "python/python.h"
#include "shims/fault_injector.h"
#include "subject/subject.h"
#include "supervise/child.h"
#include "supervise/interrupt.h"
#include "trace/trace.h"

/* The process has one program. */
static struct {
    const struct options *options;
    struct launch launch;
    const char *python;
    struct subject_place place;
    struct subject subject;
    struct findings *findings;
    struct auditor *auditor;
    struct fault_injector injector;
    PyDataMem_Handler before;  /* NumPy's own default handler */
    PyDataMem_Handler *numpys; /* the struct that it was copied from */
    pid_t process;
} program;

/* ---- in the program's process ----------------------------------------------------------- */

/* The injector is in the way of each call, and there only where it may be wanted. */
static bool can_refuse(void)
{
    return program.options->command == COMMAND_FAIL_EACH || program.options->record != NULL;
}

/* Puts the shim of --record before `inner`; without --record that stays the first.  NULL with
 * findings->why where the trace cannot be written. */
static PyDataMem_Handler *begin_trace(PyDataMem_Handler *inner)
{
    struct findings *findings = program.findings;
    const char *path = program.options->record;
    char why[256] = "";
    if (path == NULL)
        return inner;
    PyDataMem_Handler *shim =
        trace_shim_begin(inner, path, !program.options->untimed, why, sizeof why);
    if (shim == NULL) {
        findings->no_trace = errno != 0; /* the name is wrong */
        snprintf(findings->why, sizeof findings->why, "--record=%s: %s", escape(path), why);
        return NULL;
    }
    struct trace_writer *writer = trace_shim_writer();
    trace_note(writer, "handler", program.place.label);
    trace_note(writer, "python", python_version());
    PyObject *numpy = PyImport_ImportModule("numpy.version");
    PyObject *number = numpy != NULL ? PyObject_GetAttrString(numpy, "version") : NULL;
    if (number != NULL)
        trace_note(writer, "numpy", PyUnicode_AsUTF8(number));
    Py_XDECREF(number);
    Py_XDECREF(numpy);
    PyErr_Clear();
    for (char **word = program.options->operands; *word != NULL; word++)
        trace_note(writer, "argument", *word);
    return shim;
}

/* In place of PyDataMem_SetHandler.  The audited handler may be put back. */
static PyObject *set_handler(PyObject *capsule)
{
    struct findings *findings = program.findings;
    const PyDataMem_Handler *handler =
        capsule != NULL ? PyCapsule_GetPointer(capsule, "mem_handler") : NULL;
    PyErr_Clear();
    if (handler != NULL && handler != auditor_handler(program.auditor) &&
        findings->own_handler++ == 0)
        snprintf(findings->own_handler_name, sizeof findings->own_handler_name, "%.*s",
                 (int)sizeof handler->name, handler->name);
    return PyDataMem_SetHandler(capsule);
}

static PyObject *take_over(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    static bool has_begun; /* an import in here may come back: NumPy 1.26 has both modules */
    struct findings *findings = program.findings;
    if (has_begun)
        Py_RETURN_NONE;
    has_begun = true;
    const char *wrong = python_import_array();
    if (wrong != NULL) {
        snprintf(findings->why, sizeof findings->why, "%s", wrong);
        PyErr_SetString(PyExc_ImportError, wrong);
        return NULL;
    }
    enum load_state state = (program.place.module != NULL ? python_subject_load : subject_load)(
        &program.place, &program.subject, findings->why, sizeof findings->why);
    findings->load = state;
    if (state != LOAD_DONE)
        _exit(EXIT_CANNOT_LOAD); /* told by the process that waits */
    struct claims claims = subject_all_claims(&program.place, &program.subject);
    struct auditor_options options = {.alignment = claims.alignment,
                                      .features = PyArray_GetNDArrayCFeatureVersion(),
                                      .stacks = program.options->stacks || claims.guard};
    PyObject *capsule = PyDataMem_DefaultHandler;
    program.numpys = PyCapsule_GetPointer(capsule, "mem_handler");
    if (program.numpys == NULL)
        return NULL;
    program.before = *program.numpys;
    fault_injector_init(&program.injector, program.subject.handler);
    PyDataMem_Handler *behind =
        begin_trace(can_refuse() ? &program.injector.handler : program.subject.handler);
    program.auditor =
        behind == NULL ? NULL : auditor_create(behind, &program.before, &findings->audit, &options);
    if (findings->why[0] != '\0')
        _exit(EXIT_HARNESS_BROKE); /* told by the process that waits */
    if (program.auditor == NULL)
        return PyErr_NoMemory();
    if (PyCapsule_SetPointer(capsule, auditor_handler(program.auditor)) != 0 ||
        !array_watch_begin(program.auditor) ||
        !crash_report_begin(program.auditor, claims.guard != GUARD_NONE))
        return NULL;
    python_api_exchange_set_handler(set_handler);
    interpose_set_owner(auditor_owns);
    interpose_count_pythons(&findings->pythons);
    findings->free_threaded = python_is_free_threaded();
    findings->gil = python_uses_gil();
    findings->in_force = true;
    Py_RETURN_NONE;
}

static PyObject *in_force(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return PyBool_FromLong(program.findings->in_force);
}

static PyObject *imported(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    program.findings->imported = true;
    Py_RETURN_NONE;
}

static PyObject *uncaught(PyObject *self, PyObject *arguments)
{
    struct findings *findings = program.findings;
    int memory_error;
    const char *words;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "pz", &memory_error, &words))
        return NULL;
    if (getpid() == program.process) {
        findings->uncaught = true;
        findings->memory_error = memory_error != 0;
        snprintf(findings->exception, sizeof findings->exception, "%s", words);
    }
    Py_RETURN_NONE;
}

static PyObject *at_exit(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    struct findings *findings = program.findings;
    if (getpid() != program.process)
        Py_RETURN_NONE;                /* a forked child that leaves as its parent does */
    findings->gil = python_uses_gil(); /* an imported module may have turned it on */
    findings->blocks_at_exit = findings->audit.live_blocks;
    findings->bytes_at_exit = findings->audit.live_bytes;
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    findings->resident_at_exit = resident_bytes_of(getpid());
    findings->resident_peak = MAX((size_t)used.ru_maxrss * 1024, findings->resident_at_exit);
    findings->has_left = true;
    FILE *table = fmemopen(findings->live, sizeof findings->live, "w");
    if (table != NULL && program.auditor != NULL)
        auditor_print_live(program.auditor, table, program.options->stacks ? 20 : 0);
    if (table != NULL)
        fclose(table);
    Py_RETURN_NONE;
}

/* For programs that are recorded to be read.  Without --record, or before the handler is in force,
 * there is nothing to do. */
static PyObject *begin_part(PyObject *self, PyObject *name)
{
    (void)self;
    const char *words = PyUnicode_AsUTF8(name);
    if (words == NULL)
        return NULL;
    trace_shim_begin_part(words);
    Py_RETURN_NONE;
}

static PyObject *refuse(PyObject *self, PyObject *arguments)
{
    Py_ssize_t nth;
    int keep_failing = 0;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "n|p", &nth, &keep_failing))
        return NULL;
    if (nth < 0)
        return PyErr_Format(PyExc_ValueError, "requests are counted from 1");
    if (nth > 0 && !can_refuse())
        return PyErr_Format(PyExc_RuntimeError, "refuse() goes with --record");
    size_t refused = program.injector.refused;
    fault_injector_inject(&program.injector, (size_t)nth, keep_failing);
    return PyLong_FromSize_t(refused);
}

static PyMethodDef methods[] = {
    {"begin_part", begin_part, METH_O, "What comes is that part of the program, in the trace."},
    {"refuse", refuse, METH_VARARGS,
     "refuse(nth, keep_failing=False): the nth request from here on gets no memory, 0 for none.\n"
     "Returns how many were refused since the last time."},
    {"take_over", take_over, METH_NOARGS, "Put the handler in force."},
    {"in_force", in_force, METH_NOARGS, "Whether it is."},
    {"imported", imported, METH_NOARGS, "NumPy's import has come to its end."},
    {"uncaught", uncaught, METH_VARARGS,
     "An exception ends the program; true for a MemoryError, and its words."},
    {"at_exit", at_exit, METH_NOARGS, "The program has ended, and its arrays are still there."},
    {NULL, NULL, 0, NULL},
};

_Noreturn void program_cannot_start(const char *why)
{
    snprintf(program.findings->why, sizeof program.findings->why, "Python cannot be started: %s%s",
             why, interpreter_advice());
    _exit(EXIT_HARNESS_BROKE);
}

/* Behind the end of the interpreter, which sys.exit reaches by exit(), inside Py_RunMain. */
static void note_end(void)
{
    char why[256];
    if (getpid() != program.process)
        return;
    if (!trace_shim_close(why, sizeof why)) {
        fprintf(stderr, "conform: --record=%s: %s\n", escape(program.options->record), why);
        program.findings->trace_broke = true;
    }
    program.findings->refused = program.injector.refused;
    program.findings->reached_end = true;
}

_Noreturn void program_run(void)
{
    program.process = getpid();
    atexit(note_end);
    exit(Py_RunMain());
}

/* Python reads the arguments as python3 does: its own options, script, -m, -c or stdin. */
void program_start(const char *begin)
{
    char **operands = program.options->operands;
    size_t count = 0;
    int exit_code;
    while (operands[count] != NULL)
        count++;
    char **arguments = calloc(count + 2, sizeof *arguments);
    if (arguments == NULL)
        program_cannot_start("out of memory");
    arguments[0] = (char *)program.python;
    memcpy(arguments + 1, operands, count * sizeof *arguments);
    const char *wrong = python_initialize(arguments, &exit_code);
    if (exit_code >= 0) { /* python --version and the like */
        fflush(stdout);
        _exit(exit_code);
    }
    if (wrong == NULL)
        wrong = python_add_module("_conform_exec", methods);
    if (wrong == NULL)
        wrong = python_half_run("install_hook",
                                program.place.module != NULL ? "begin_behind_numpy" : begin);
    if (wrong != NULL)
        program_cannot_start(wrong);
}

void program_begin_run(size_t nth, bool keep_failing)
{
    auditor_share(program.auditor, &program.findings->audit);
    program.injector.where = program.findings->refused_at;
    fault_injector_inject(&program.injector, nth, keep_failing);
}

/* ---- in the process that waits ---------------------------------------------------------- */

static bool is_to_end(void *until)
{
    return interrupt_came() != 0 || clock_now() > *(uint64_t *)until;
}

/* A handler that wants more static TLS has to be known for it before the program begins, for the
 * program cannot be begun twice.  Anything else that goes wrong here goes wrong there as well. */
static void try_loading(void)
{
    struct findings *findings = program.findings;
    double limit = program.options->timeout;
    uint64_t until = clock_now() + (uint64_t)(limit * 1e9);
    int status, given_up = 0;
    if (program.place.module != NULL)
        return;
    pid_t pid = child_fork(false);
    if (pid == 0) {
        findings->load =
            subject_load(&program.place, &program.subject, findings->why, sizeof findings->why);
        _exit(0);
    }
    if (pid > 0)
        given_up = child_wait(pid, is_to_end, &until, &status);
    if (interrupt_came() != 0)
        interrupt_die();
    if (given_up > 0)
        die(EXIT_CANNOT_LOAD, "%s: no end of loading it after %.3g s; --timeout gives more",
            escape(program.options->handler), limit);
    launch_again(&program.launch, findings->load, findings->why);
    findings->load = LOAD_UNKNOWN;
    findings->why[0] = '\0';
}

struct findings *program_prepare(const struct options *options, char **argv)
{
    const char *wrong = subject_find(options->handler, &program.place);
    if (wrong != NULL)
        die(EXIT_CANNOT_LOAD, "%s", wrong);
    if (program.place.module == NULL)
        check_not_overwriting(options, program.place.path, "the handler");
    program.place.claims = options->claims;
    program.launch = (struct launch){.options = options,
                                     .argv = argv,
                                     .places = &program.place,
                                     .count = 1,
                                     .python = WITH_PYTHON};
    program.python = launch(&program.launch);
    program.options = options;
    program.findings = mmap(NULL, sizeof *program.findings, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (program.findings == MAP_FAILED)
        die(EXIT_HARNESS_BROKE, "no memory to share: %s", strerror(errno));
    child_prepare();
    try_loading();
    return program.findings;
}

const char *program_handler_label(void)
{
    return program.place.label;
}

void program_check_started(const struct findings *findings)
{
    if (interrupt_came() != 0 && !findings->in_force && findings->why[0] != '\0')
        interrupt_die(); /* that may be why */
    loaded_or_leave(program.options->handler, findings->load, findings->why);
    if (findings->why[0] != '\0')
        die(findings->no_trace ? EXIT_USAGE : EXIT_HARNESS_BROKE, "%s", escape(findings->why));
}
