/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench: finds the handlers, and starts a process that measures them.  The loops that are timed
 * are here, as a Python module for bench.py, which chooses the tasks and makes the statistics.
 */
#include "commands/commands.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/install_path.h"
#include "base/random.h"
#include "base/text.h"
#include "commands/launch.h"
#include "harness/proc_count.h"
#include "python/api.h"
#include "python/python.h"
#include "report/present.h"
#include "report/report_files.h"
#include "subject/subject.h"
#include "supervise/child.h"
#include "supervise/interrupt.h"
#include "trace/replay.h"

/* NumPy's default handler, libc, and the handlers that were given. */
enum { BENCH_DEFAULT, BENCH_LIBC, BENCH_GIVEN, MOST_BENCHED = BENCH_GIVEN + 6 };
static struct subject_place places[MOST_BENCHED];
static size_t count;

/* ---- in the process of one handler --------------------------------------------------------- */

static struct subject subject;
static PyDataMemAllocator *a; /* of the subject */

/* Loads the handler of this number and installs it in NumPy. */
static PyObject *load(PyObject *self, PyObject *number)
{
    char why[256];
    const struct subject_place *place = &places[PyLong_AsLong(number)];
    (void)self;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    enum load_state state = (place->module != NULL ? python_subject_load : subject_load)(
        place, &subject, why, sizeof why);
    if (state != LOAD_DONE)
        return Py_BuildValue("is", state, escape(why));
    a = &subject.handler->allocator;
    PyObject *capsule = PyCapsule_New(subject.handler, "mem_handler", NULL);
    if (capsule == NULL || (!place->is_default && PyDataMem_SetHandler(capsule) == NULL))
        return NULL;
    return Py_BuildValue("is", state, "");
}

/* The loops raise MemoryError if the handler refuses a request, and then leave their blocks as they
 * are: no task follows. */

static PyObject *loop_block(PyObject *self, PyObject *arguments)
{
    int zeroed;
    Py_ssize_t size, times;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "inn", &zeroed, &size, &times))
        return NULL;
    for (Py_ssize_t i = 0; i < times; i++) {
        volatile char *p =
            zeroed ? a->calloc(a->ctx, (size_t)size, 1) : a->malloc(a->ctx, (size_t)size);
        if (p == NULL)
            return PyErr_NoMemory();
        p[0] = p[size - 1] = 1;
        a->free(a->ctx, (void *)p, (size_t)size);
    }
    Py_RETURN_NONE;
}

static PyObject *loop_realloc(PyObject *self, PyObject *arguments)
{
    Py_ssize_t size, times;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "nn", &size, &times))
        return NULL;
    volatile char *p = a->malloc(a->ctx, (size_t)size);
    for (Py_ssize_t i = 0; i < 2 * times && p != NULL; i++) {
        Py_ssize_t next = i % 2 == 0 ? 2 * size : size;
        p = a->realloc(a->ctx, (void *)p, (size_t)next);
        if (p != NULL)
            p[next - 1] = 1;
    }
    if (p == NULL)
        return PyErr_NoMemory();
    a->free(a->ctx, (void *)p, (size_t)size);
    Py_RETURN_NONE;
}

/* Replaces random blocks among 1,024, whose sizes are 32 bytes to 256 KiB, as many small ones as
 * large ones.  Writes to each block, and samples memory now and then.  Stops early if the handler
 * is slow.  Returns the seconds of each free and malloc, resident memory over live memory, and page
 * faults for each MiB that was requested. */
static PyObject *loop_replace(PyObject *self, PyObject *none)
{
    enum { TIMES = 16384, SAMPLE = 32, PLACES = 1024, LEAST_LOG2 = 5, LOG2S = 13 };
    static double seconds[TIMES][2];
    struct {
        void *p;
        size_t size;
    } blocks[PLACES] = {0};
    struct random random = {7};
    struct rusage begin, end;
    double resident = 0, live = 0, requested = 0;
    size_t now_live = 0, times = 0;
    (void)self, (void)none;
    memset(seconds, 0, sizeof seconds); /* it is resident from now on */
    getrusage(RUSAGE_SELF, &begin);
    double before = (double)resident_bytes();
    for (uint64_t start = clock_now(); times < TIMES && clock_since(start) < 0.8; times++) {
        size_t at = random_below(&random, PLACES), old = blocks[at].size;
        size_t power = (size_t)1 << (LEAST_LOG2 + random_below(&random, LOG2S));
        size_t size = power + random_below(&random, power);
        uint64_t begun = clock_now();
        if (old > 0)
            a->free(a->ctx, blocks[at].p, old);
        seconds[times][0] = clock_since(begun);
        begun = clock_now();
        void *p = a->malloc(a->ctx, size);
        seconds[times][1] = clock_since(begun);
        if (p == NULL)
            return PyErr_NoMemory();
        memset(p, 1, size);
        blocks[at].p = p;
        blocks[at].size = size;
        now_live += size - old;
        requested += (double)size;
        if (times % SAMPLE != 0)
            continue;
        resident += MAX((double)resident_bytes() - before, 0.0);
        live += (double)now_live;
    }
    getrusage(RUSAGE_SELF, &end);
    for (size_t i = 0; i < PLACES; i++) {
        if (blocks[i].size > 0)
            a->free(a->ctx, blocks[i].p, blocks[i].size);
    }
    PyObject *bytes =
        PyBytes_FromStringAndSize((const char *)seconds, (Py_ssize_t)(times * sizeof *seconds));
    double faults = (double)(end.ru_minflt - begin.ru_minflt);
    return Py_BuildValue("Ndd", bytes, resident / live, faults * 0x1p20 / requested);
}

static PyObject *loop_replay(PyObject *self, PyObject *arguments)
{
    char why[256];
    const char *path;
    Py_ssize_t times;
    struct replay_result result;
    const struct replay_options how = {.unchecked = true};
    (void)self;
    if (!PyArg_ParseTuple(arguments, "sn", &path, &times))
        return NULL;
    for (; times > 0; times--) {
        struct trace_reader *reader = trace_open(path, why, sizeof why);
        if (reader == NULL || replay_run(reader, subject.handler, &how, &result) != REPLAY_PASSED)
            return PyErr_NoMemory();
        trace_reader_close(reader);
    }
    Py_RETURN_NONE;
}

/* ---- the process that measures, and forks those of the handlers ------------------------------ */

static json_t *task; /* what bench.py is to do */

static PyObject *get_task(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    return Py_BuildValue("s", json_dumps(task, 0));
}

static PyMethodDef methods[] = {
    {"task", get_task, METH_NOARGS, "what is to be measured, as JSON"},
    {"load", load, METH_O, "number of a handler; returns a load_state, and what is wrong"},
    {"block", loop_block, METH_VARARGS, "zeroed, size, times: writes both ends, frees it"},
    {"realloc", loop_realloc, METH_VARARGS, "size, times: to twice the size and back"},
    {"replace", loop_replace, METH_NOARGS,
     "returns seconds of calls, resident over live, faults for a MiB"},
    {"replay", loop_replay, METH_VARARGS, "path, times: the calls of a recorded program"},
    {NULL, NULL, 0, NULL},
};

static _Noreturn void measure(const char *python)
{
    struct environment environment;
    const char *wrong = python_start(python, &environment);
    if (wrong == NULL)
        wrong = python_add_module("_conform_bench", methods);
    if (wrong == NULL)
        wrong = python_half_run("bench", "run");
    if (wrong != NULL)
        die(EXIT_HARNESS_BROKE, "the bench has failed: %s", wrong);
    _exit(EXIT_CONFORMANT);
}

/* ---- the command ------------------------------------------------------------------------------
 */

static void find_all(const struct options *options)
{
    if (options->handler_count > MOST_BENCHED - BENCH_GIVEN)
        die(EXIT_USAGE, "bench takes up to %d handlers", MOST_BENCHED - BENCH_GIVEN);
    const char *wrong = subject_find("default", &places[BENCH_DEFAULT]);
    places[BENCH_LIBC] = *plain_place();
    count = BENCH_GIVEN;
    for (size_t i = 0; i < options->handler_count && wrong == NULL; i++)
        wrong = subject_find(options->handlers[i], &places[count++]);
    if (wrong != NULL)
        die(EXIT_CANNOT_LOAD, "%s", wrong);
}

/* Forks the process that measures, waits for it, and returns what it has written. */
static json_t *run(const struct options *options, const char *python)
{
    enum { QUICK_SECONDS = 9 };
    char profiles[PATH_MAX];
    size_t length;
    int status, answer = present_memory();
    json_t *labels = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(labels, json_string(i == BENCH_DEFAULT ? "NumPy's default"
                                                  : i == BENCH_LIBC  ? "libc"
                                                                     : escape(places[i].label)));
    place_find(SOURCE_PROFILES, INSTALLED_PROFILES, profiles);
    task =
        json_pack("{s:o, s:s, s:s, s:b, s:f, s:f, s:i}", "handlers", labels, "conform",
                  program_version, "profiles", escape(profiles), "quick", options->quick, "seconds",
                  options->quick && !options->max_time_is_given ? QUICK_SECONDS : options->max_time,
                  "timeout", options->timeout, "answer", answer);
    pid_t pid = child_fork(true);
    if (pid == 0)
        measure(python);
    if (pid < 0 || child_wait(pid, is_interrupted, NULL, &status) < 0)
        die(EXIT_HARNESS_BROKE, "no process: %s", strerror(errno));
    kill(-pid, SIGKILL);
    children_end(NULL, 0);
    if (interrupt_came() != 0)
        interrupt_die();
    if (WIFSIGNALED(status))
        die(EXIT_HARNESS_BROKE, "the bench died of %s", child_signal_name(WTERMSIG(status)));
    if (status != 0) /* it has reported why */
        exit(EXIT_HARNESS_BROKE);
    char *contents = present_read(answer, &length);
    return json_loadb(contents, length, 0, NULL);
}

enum exit_code bench_command(const struct options *options, char **argv)
{
    int lost, state;
    const char *verdict, *why;
    child_prepare();
    interrupt_catch();
    find_all(options);
    struct launch how = {.options = options,
                         .argv = argv,
                         .places = places + BENCH_GIVEN,
                         .count = count - BENCH_GIVEN,
                         .python = WITH_NUMPY};
    const char *python = launch(&how);
    struct report_files *files = report_files_open(options);
    children_adopt(true);
    json_t *bench = run(options, python);
    if (json_unpack(bench, "{s:i, s:i, s:s, s:s}", "lost", &lost, "state", &state, "verdict",
                    &verdict, "why", &why) == 0) {
        if (lost >= BENCH_GIVEN) {
            launch_again(&how, state, why);
            loaded_or_leave(places[lost].argument, state, why);
        }
        printf("%-7s %s; there are no figures\n", verdict, escape(why));
        return lost < BENCH_GIVEN ? EXIT_HARNESS_BROKE : EXIT_NOT_CONFORMANT;
    }
    present_with(python);
    const char *const words[] = {"--bench", NULL};
    int code = EXIT_CONFORMANT;
    if (!options->quiet && !report_files_take_stdout(options))
        code = present(words, bench, true);
    if (code == EXIT_CONFORMANT)
        report_files_write(files, bench, words);
    return (enum exit_code)code;
}
