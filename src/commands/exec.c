/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Running a program between NumPy and the handler.  The program runs in a child process, and what
 * is found is in shared memory, so that the summary comes whatever the program does.
 *
 * How every thread and task is caught: a new thread starts with an empty context, in which NumPy
 * falls back on its default handler, and that is a capsule.  Its pointer is exchanged, so that what
 * anybody takes for the default handler is the audited one.
 */
#define CONFORM_WANTS_PYTHON_API
#include "python/python.h"

#include "commands/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "python/python_half.h"
#include "report/report.h"
#include "shims/auditor.h"
#include "shims/fault_injector.h"
#include "subject/claims.h"
#include "subject/python_subject.h"
#include "subject/subject.h"
#include "trace/trace_shim.h"

/* Shared between this process and the program's. */
struct findings {
    struct audit audit;
    _Atomic int load; /* enum load_state, of the subject */
    char why[512];
    char numpy_version[32];
    _Atomic bool trace_broke; /* of --record */
    _Atomic bool in_force, reached_exit, reached_end, uncaught, memory_error;
    size_t refused; /* by the injector */
    size_t blocks_at_exit, bytes_at_exit;
    char live[8192]; /* table of what is live at the end */
    /* --fail-each */
    _Atomic size_t runs, with_memory_error, with_success, bad_runs;
    _Atomic bool incomplete;
    size_t leaked_by_success; /* bytes live after a run in which nothing was refused */
    char first_bad[512];
};

/* The process has one program. */
static struct {
    const struct options *options;
    struct subject_place place;
    struct subject subject;
    struct findings *findings;
    struct auditor *auditor;
    struct fault_injector injector;
    struct trace_shim *trace;  /* of --record, or NULL */
    PyDataMem_Handler before;  /* NumPy's own default handler */
    PyDataMem_Handler *numpys; /* the struct that it was copied from */
} program;

/* ---- in the program's process ----------------------------------------------------------- */

enum { FEATURES_OF_1_23 = 0x10 };

/* The injector is in the way of each call, and there only where it may be wanted. */
static bool can_refuse(void)
{
    return program.options->fail_each || program.options->record != NULL;
}

/* Puts the shim of --record before `inner`; without --record that stays the first.  NULL with
 * findings->why where the trace cannot be written. */
static PyDataMem_Handler *begin_trace(PyDataMem_Handler *inner)
{
    struct findings *findings = program.findings;
    const char *path = program.options->record;
    char why[256] = "", version[32];
    if (path == NULL)
        return inner;
    program.trace = trace_shim_create(inner, path, !program.options->untimed, why, sizeof why);
    if (program.trace == NULL) {
        snprintf(findings->why, sizeof findings->why, "--record=%s: %s", text_safe(path), why);
        return NULL;
    }
    struct trace_writer *writer = trace_shim_writer(program.trace);
    snprintf(version, sizeof version, "%.*s", (int)strcspn(Py_GetVersion(), " "), Py_GetVersion());
    trace_note(writer, "handler", program.place.label);
    trace_note(writer, "python", version);
    PyObject *numpy = PyImport_ImportModule("numpy.version");
    PyObject *number = numpy != NULL ? PyObject_GetAttrString(numpy, "version") : NULL;
    if (number != NULL)
        trace_note(writer, "numpy", PyUnicode_AsUTF8(number));
    Py_XDECREF(number);
    Py_XDECREF(numpy);
    PyErr_Clear();
    for (char **word = program.options->program_arguments; *word != NULL; word++)
        trace_note(writer, "argument", *word);
    return trace_shim_handler(program.trace);
}

static PyObject *take_over(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    struct findings *findings = program.findings;
    if (findings->in_force)
        Py_RETURN_NONE;
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
    struct claims claims;
    claims_parse(program.subject.claims, &claims);
    struct auditor_options options = {.alignment = claims.alignment,
                                      .iterates_in_dims =
                                          PyArray_GetNDArrayCFeatureVersion() < FEATURES_OF_1_23,
                                      .stacks = program.options->stacks};
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
    if (PyCapsule_SetPointer(capsule, auditor_handler(program.auditor)) != 0)
        return NULL;
    findings->in_force = true;
    Py_RETURN_NONE;
}

static PyObject *in_force(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return PyBool_FromLong(program.findings->in_force);
}

static PyObject *uncaught(PyObject *self, PyObject *memory_error)
{
    (void)self;
    program.findings->uncaught = true;
    program.findings->memory_error = PyObject_IsTrue(memory_error) == 1;
    Py_RETURN_NONE;
}

static PyObject *at_exit(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    struct findings *findings = program.findings;
    findings->blocks_at_exit = findings->audit.live_blocks;
    findings->bytes_at_exit = findings->audit.live_bytes;
    FILE *table = fmemopen(findings->live, sizeof findings->live, "w");
    if (table != NULL && program.auditor != NULL)
        auditor_print_live(program.auditor, table, program.options->stacks ? 20 : 0);
    if (table != NULL)
        fclose(table);
    findings->reached_exit = true;
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
    if (program.trace != NULL)
        trace_shim_begin_part(program.trace, words);
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
    fault_injector_inject(&program.injector, (size_t)nth, keep_failing, INJECT_ANY);
    return PyLong_FromSize_t(refused);
}

static PyMethodDef methods[] = {
    {"begin_part", begin_part, METH_O, "What comes is that part of the program, in the trace."},
    {"refuse", refuse, METH_VARARGS,
     "refuse(nth, keep_failing=False): the nth request from here on gets no memory, 0 for none.\n"
     "Returns how many were refused since the last time."},
    {"take_over", take_over, METH_NOARGS, "Put the handler in force."},
    {"in_force", in_force, METH_NOARGS, "Whether it is."},
    {"uncaught", uncaught, METH_O, "An exception ends the program; true for a MemoryError."},
    {"at_exit", at_exit, METH_NOARGS, "The program has ended, and its arrays are still there."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_conform_exec",
    .m_size = -1,
    .m_methods = methods,
};

static PyObject *create(void)
{
    return PyModule_Create(&definition);
}

static _Noreturn void cannot_start(const char *why)
{
    snprintf(program.findings->why, sizeof program.findings->why, "Python cannot be started: %s",
             why);
    _exit(EXIT_HARNESS_BROKE);
}

/* As python3 would with these arguments: its own options, script, -m, -c or stdin. */
static void start_program(void)
{
    const struct options *options = program.options;
    const char *python = options->python != NULL ? options->python : DEFAULT_PYTHON;
    size_t count = 0;
    while (options->program_arguments[count] != NULL)
        count++;
    char **arguments = calloc(count + 2, sizeof *arguments);
    if (arguments == NULL)
        cannot_start("out of memory");
    arguments[0] = (char *)python;
    memcpy(arguments + 1, options->program_arguments, count * sizeof *arguments);
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    PyStatus status = PyConfig_SetBytesArgv(&config, (Py_ssize_t)count + 1, arguments);
    if (!PyStatus_Exception(status))
        status = PyConfig_SetBytesString(&config, &config.program_name, python);
    if (!PyStatus_Exception(status) && PyImport_AppendInittab("_conform_exec", create) == 0)
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_IsExit(status))
        _exit(status.exitcode); /* python --version and the like */
    if (PyStatus_Exception(status))
        cannot_start(status.err_msg != NULL ? status.err_msg : "no reason given");
}

/* Behind the end of the interpreter, which sys.exit reaches by exit(), inside Py_RunMain. */
static void note_end(void)
{
    char why[256];
    if (program.trace != NULL && !trace_shim_close(program.trace, why, sizeof why)) {
        fprintf(stderr, "conform: --record=%s: %s\n", text_safe(program.options->record), why);
        program.findings->trace_broke = true;
    }
    program.findings->refused = program.injector.refused;
    program.findings->reached_end = true;
}

static _Noreturn void run_program(void)
{
    atexit(note_end);
    exit(Py_RunMain());
}

static _Noreturn void be_the_program(void)
{
    start_program();
    const char *wrong =
        python_half_run("takeover", program.place.module != NULL ? "begin_behind_numpy" : "begin");
    if (wrong != NULL)
        cannot_start(wrong);
    run_program();
}

/* ---- --fail-each, in the process that forks the runs ------------------------------------ */

static void silence(void)
{
    int nothing = open("/dev/null", O_RDWR);
    if (nothing >= 0 && !program.options->verbose) {
        dup2(nothing, STDOUT_FILENO);
        dup2(nothing, STDERR_FILENO);
    }
}

/* What one run came to.  NULL where it is as it should be, else what is wrong. */
static const char *judge_run(int status, size_t nth)
{
    struct findings *findings = program.findings;
    const struct violation *lost = &findings->audit.violations[LOST_CONTENTS];
    if (WIFSIGNALED(status))
        return text("with request %zu refused the program died of SIG%s", nth,
                    sigabbrev_np(WTERMSIG(status)));
    if (lost->times > 0)
        return text("with request %zu refused %s", nth, lost->text);
    if (findings->audit.unbooked > 0)
        return text("with request %zu refused there was no memory to keep books of all blocks",
                    nth);
    if (findings->uncaught && !findings->memory_error)
        return text("with request %zu refused it ended by an exception that is no MemoryError",
                    nth);
    if (findings->reached_end && findings->audit.live_bytes > findings->leaked_by_success &&
        findings->leaked_by_success != SIZE_MAX)
        return text("with request %zu refused %zu bytes more than else are left after the end", nth,
                    findings->audit.live_bytes - findings->leaked_by_success);
    return NULL;
}

/* Forks one run with the nth request refused; true where that request was made. */
static bool run_once(size_t nth)
{
    struct findings *findings = program.findings;
    memset(&findings->audit, 0, sizeof findings->audit);
    findings->uncaught = findings->memory_error = findings->reached_end = false;
    findings->refused = 0;
    python_before_fork();
    pid_t pid = fork();
    if (pid == 0) {
        python_after_fork_child();
        auditor_share(program.auditor, &findings->audit);
        silence();
        fault_injector_inject(&program.injector, nth, program.options->keep_failing, INJECT_ANY);
        run_program();
    }
    python_after_fork_parent();
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        cannot_start(strerror(errno));
    if (nth == 0) {
        findings->leaked_by_success = findings->reached_end ? findings->audit.live_bytes : SIZE_MAX;
        return true;
    }
    bool refused = findings->refused > 0 || WIFSIGNALED(status);
    if (!refused)
        return false;
    findings->runs++;
    const char *bad = judge_run(status, nth);
    if (bad == NULL && findings->memory_error)
        findings->with_memory_error++;
    else if (bad == NULL)
        findings->with_success++;
    else if (findings->bad_runs++ == 0)
        snprintf(findings->first_bad, sizeof findings->first_bad, "%s", bad);
    return true;
}

static _Noreturn void be_the_fork_server(void)
{
    start_program();
    const char *wrong = python_half_run(
        "takeover", program.place.module != NULL ? "begin_behind_numpy" : "begin_with_numpy");
    if (wrong != NULL)
        cannot_start(wrong);
    run_once(0);
    size_t nth = 1, most = program.options->most_runs;
    while (nth <= most && run_once(nth))
        nth++;
    program.findings->incomplete = nth > most;
    _exit(0);
}

/* ---- in the process that waits ---------------------------------------------------------- */

static void print_calls(FILE *file, const struct audit *audit)
{
    fprintf(file, "  calls     %zu malloc, %zu calloc, %zu realloc, %zu free (%zu of NULL)",
            audit->malloc_calls, audit->calloc_calls, audit->realloc_calls, audit->free_calls,
            audit->null_frees);
    fprintf(file, "; %zu refused, %zu without the GIL\n", audit->refused, audit->without_gil);
}

static void print_sizes(FILE *file, const struct audit *audit)
{
    size_t most = 1;
    for (int i = 0; i < SIZE_CLASSES; i++)
        most = audit->by_size[i] > most ? audit->by_size[i] : most;
    const char *title = "sizes";
    for (int i = 0; i < SIZE_CLASSES; i++) {
        static const char bar[] = "########################################";
        size_t count = audit->by_size[i];
        if (count == 0)
            continue;
        fprintf(file, "  %-9s below 2^%-2d %10zu %.*s\n", title, i, count,
                (int)(1 + count * (sizeof bar - 2) / most), bar);
        title = "";
    }
    fprintf(file, "  largest  ");
    for (int i = 0; i < LARGEST && audit->largest[i] > 0; i++)
        fprintf(file, " %zu", audit->largest[i]);
    fputs(audit->largest[0] > 0 ? " bytes\n" : " none\n", file);
}

static void print_violations(FILE *file, const struct audit *audit)
{
    for (int i = 0; i < VIOLATION_KINDS; i++) {
        const struct violation *violation = &audit->violations[i];
        if (violation->times == 0)
            continue;
        fprintf(file, "%s %s: %s, %zu time%s\n",
                violation_counts((enum violation_kind)i) ? "VIOLATION" : "known    ",
                violation_party((enum violation_kind)i) == BY_HANDLER ? "by the handler"
                                                                      : "by NumPy",
                violation_name((enum violation_kind)i), violation->times,
                violation->times == 1 ? "" : "s");
        fprintf(file, "          first: %s%s%s\n", violation->text,
                violation->where[0] != '\0' ? ", at " : "", violation->where);
    }
}

static void print_summary(const struct findings *findings, double seconds)
{
    const struct audit *audit = &findings->audit;
    double inside = (double)audit->nanoseconds_inside / 1e9;
    FILE *file = stderr;
    if (!program.options->quiet) {
        fprintf(file, "\nconform: %s, audited\n", text_safe(program.place.label));
        print_calls(file, audit);
        fprintf(file, "  memory    peak %zu bytes; live at exit %zu bytes in %zu blocks",
                audit->peak_bytes, findings->bytes_at_exit, findings->blocks_at_exit);
        if (findings->reached_end)
            fprintf(file, ", after the interpreter's end %zu in %zu", audit->live_bytes,
                    audit->live_blocks);
        fprintf(file, "\n  time      about %.3f s inside the handler, of %.3f s\n", inside,
                seconds);
        print_sizes(file, audit);
        if (findings->live[0] != '\0')
            fprintf(file, "  live at exit\n%s", findings->live);
    }
    print_violations(file, audit);
    size_t handlers = audit_violations(audit, BY_HANDLER),
           numpys = audit_violations(audit, BY_NUMPY);
    if (handlers + numpys == 0 && !program.options->quiet)
        fputs("conform: no violation\n", file);
    else if (handlers + numpys > 0)
        fprintf(file, "conform: %zu kind%s of violation by the handler, %zu by NumPy\n", handlers,
                handlers == 1 ? "" : "s", numpys);
}

/* Waits for the program as a shell does: Ctrl-C is the program's to answer. */
static int wait_for(pid_t pid)
{
    int status;
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            leave_with(EXIT_HARNESS_BROKE, "waitpid: %s", strerror(errno));
    }
    return status;
}

static pid_t start(const struct options *options, void (*body)(void))
{
    const char *wrong = subject_find(options->handler, &program.place);
    if (wrong != NULL)
        leave_with(EXIT_CANNOT_LOAD, "%s", wrong);
    program.options = options;
    program.findings = mmap(NULL, sizeof *program.findings, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (program.findings == MAP_FAILED)
        leave_with(EXIT_HARNESS_BROKE, "no memory to share: %s", strerror(errno));
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        leave_with(EXIT_HARNESS_BROKE, "no process for the program: %s", strerror(errno));
    if (pid == 0)
        body();
    return pid;
}

static void check_started(const struct findings *findings)
{
    const char *handler = text_safe(program.options->handler);
    if (findings->load == LOAD_FAILED)
        leave_with(EXIT_CANNOT_LOAD, "%s: %s", handler, text_safe(findings->why));
    if (findings->load == LOAD_UNFIT)
        leave_with(EXIT_CANNOT_WORK_HERE, "%s: it says that it cannot work here: %s", handler,
                   text_safe(findings->why));
    if (findings->why[0] != '\0')
        leave_with(EXIT_HARNESS_BROKE, "%s", text_safe(findings->why));
}

int exec_run(const struct options *options)
{
    uint64_t begin = clock_now();
    int status = wait_for(start(options, be_the_program));
    const struct findings *findings = program.findings;
    double seconds = clock_since(begin);
    check_started(findings);
    if (findings->in_force)
        print_summary(findings, seconds);
    else if (!options->quiet)
        fputs("conform: the program did not import NumPy\n", stderr);
    if (WIFSIGNALED(status))
        fprintf(stderr, "conform: the program died of SIG%s\n", sigabbrev_np(WTERMSIG(status)));
    if (findings->audit.unbooked > 0)
        fprintf(stderr,
                "conform: INCOMPLETE: there was no memory to keep books of %zu blocks, which were "
                "not judged\n",
                findings->audit.unbooked);
    if (audit_violations(&findings->audit, BY_HANDLER) > 0)
        return EXIT_NOT_CONFORMANT;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && findings->trace_broke)
        return EXIT_HARNESS_BROKE;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && findings->audit.unbooked > 0)
        return EXIT_INCOMPLETE;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int exec_fail_each(const struct options *options)
{
    int status = wait_for(start(options, be_the_fork_server));
    const struct findings *findings = program.findings;
    check_started(findings);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        leave_with(EXIT_HARNESS_BROKE, "the process that forks the runs died");
    printf("%zu runs, each with one request%s refused: %zu ended in MemoryError, %zu in success, "
           "%zu otherwise\n",
           findings->runs, options->keep_failing ? " and all after it" : "",
           findings->with_memory_error, findings->with_success, findings->bad_runs);
    if (findings->bad_runs > 0)
        printf(
            "first: %s\nNo call of the handler had gone wrong: this is NumPy's or the program's.\n",
            findings->first_bad);
    if (findings->leaked_by_success == SIZE_MAX)
        printf("What is left at the end was not compared: the program does not come to its own.\n");
    if (findings->incomplete)
        printf("INCOMPLETE: stopped after %zu runs, and there are more requests; see --most-runs\n",
               options->most_runs);
    if (audit_violations(&findings->audit, BY_HANDLER) > 0)
        return EXIT_NOT_CONFORMANT;
    if (findings->bad_runs > 0)
        return EXIT_HARNESS_BROKE;
    return findings->incomplete ? EXIT_INCOMPLETE : EXIT_CONFORMANT;
}
