/* SPDX-License-Identifier: BSD-3-Clause
 *
 * NumPy keeps the handler in a context variable.  A thread that C made begins with an empty
 * context, and so with NumPy's own handler; what it installs is seen by it alone.
 */
#include "embed_demo.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* It outlives the thread: arrays keep the handler that they were born with. */
struct worker {
    struct tracker tracker; /* the first: its handler, which NumPy has, is the worker as well */
    struct arena arena;
    struct run *run; /* while it runs */
    int rank;
    pthread_t thread;
    PyObject *result; /* what the call returned; NULL where it raised */
};

/* A job that is under way. */
struct run {
    const struct job *job;
    struct worker *workers[THREADS_MOST];
    int opened, started;
    bool interrupted;    /* by Ctrl-C */
    atomic_bool failed;  /* there is an exception */
    PyObject *errors[3]; /* it: type, value, traceback */
};

/* Keeps the pending exception if it is the first, and tells the other threads. */
static void keep_error(struct run *run)
{
    if (!atomic_exchange(&run->failed, true)) {
        PyErr_Fetch(&run->errors[0], &run->errors[1], &run->errors[2]);
        if (run->job->abort != NULL)
            Py_XDECREF(PyObject_CallObject(run->job->abort, NULL));
    }
    PyErr_Clear();
}

/* Called when no array of this worker's handler is left, and no context that has it. */
static void worker_unused(PyObject *capsule)
{
    struct worker *w = PyCapsule_GetPointer(capsule, HANDLER_CAPSULE);
    arena_close(&w->arena);
}

static void *thread_main(void *arg)
{
    struct worker *w = arg;
    PyGILState_STATE state = PyGILState_Ensure();
    if (install_handler(&w->tracker.handler, worker_unused) == 0)
        w->result = PyObject_CallFunction(w->run->job->function, "i", w->rank);
    if (w->result == NULL)
        keep_error(w->run);
    /* This ends the thread's context, and with it the context's hold on the handler. */
    PyGILState_Release(state);
    return NULL;
}

/* Makes one worker more, with its arena. */
static void open_worker(struct run *run, const PyDataMemAllocator *below)
{
    char owner[32], name[48];
    snprintf(owner, sizeof owner, "%.20s %d", run->job->name, run->opened);
    snprintf(name, sizeof name, "arena of %s", owner);
    struct worker *w = calloc(1, sizeof *w);
    if (w == NULL || arena_open(&w->arena, name, below, run->job->room) != 0) {
        free(w);
        PyErr_Format(PyExc_MemoryError, "no %zu bytes for a thread's arena", run->job->room);
        keep_error(run);
        return;
    }
    tracker_open(&w->tracker, &w->arena.handler, owner);
    w->run = run;
    w->rank = run->opened;
    run->workers[run->opened++] = w;
}

/* Starts one thread more; 0, or -1 with an exception set. */
static int start(struct run *run)
{
    struct worker *w = run->workers[run->started];
    int wrong = pthread_create(&w->thread, NULL, thread_main, w);
    run->started += wrong == 0;
    if (wrong != 0)
        PyErr_Format(PyExc_RuntimeError, "a thread cannot be started: %s", strerror(wrong));
    return -(wrong != 0);
}

/* Waits for a thread, and looks for Ctrl-C meanwhile: the main thread alone hears of that.  Python
 * cannot end while a thread runs in it, so a second Ctrl-C leaves all that to the kernel. */
static void join(struct run *run, const struct worker *w)
{
    int wrong;
    do {
        struct timespec until;
        PyThreadState *state = PyEval_SaveThread();
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 50 * 1000 * 1000;
        until.tv_sec += until.tv_nsec / (1000 * 1000 * 1000);
        until.tv_nsec %= 1000 * 1000 * 1000;
        wrong = pthread_timedjoin_np(w->thread, NULL, &until);
        PyEval_RestoreThread(state);
        if (PyErr_CheckSignals() == 0)
            continue;
        if (run->interrupted) {
            fputs("embed_demo: interrupted again, and threads did not end\n", stderr);
            _exit(130);
        }
        run->interrupted = true;
        keep_error(run);
    } while (wrong == ETIMEDOUT);
}

/* All that a thread was ever given lay between the ends of its arena, which shares no byte with
 * another; and nothing was freed through another's handler. */
static void claim_apart(const struct run *run)
{
    bool passed = true;
    size_t given = 0, peak = 0;
    for (int i = 0; i < run->started; i++) {
        const struct arena *mine = &run->workers[i]->arena;
        const struct figures f = tracker_read(&run->workers[i]->tracker);
        given += f.given;
        peak += f.peak;
        passed = passed && f.strangers == 0 &&
                 (f.lowest == NULL || (mine->base <= f.lowest && f.highest <= mine->end));
        for (int j = 0; j < i; j++) {
            const struct arena *other = &run->workers[j]->arena;
            passed = passed && (mine->end <= other->base || other->end <= mine->base);
        }
    }
    report_claim(passed, run->job->name, "%d thread%s given %.1f MB, at most %.1f MB at once, %s",
                 run->started, run->started > 1 ? "s" : "", (double)given / 1e6, (double)peak / 1e6,
                 passed ? "each byte in the own arena" : "NOT each byte in the own arena");
}

/* Is the block of this array one of the worker's? */
static bool is_at_home(struct worker *w, PyArrayObject *array)
{
    size_t size;
    for (PyObject *base = (PyObject *)array; base != NULL && PyArray_Check(base);) {
        array = (PyArrayObject *)base; /* the owner, where it was a view */
        base = PyArray_BASE(array);
    }
    return tracker_of(PyArray_DATA(array), &size) == &w->tracker &&
           size >= (size_t)PyArray_NBYTES(array);
}

/* The claim about the arrays in the results; 0, or -1 with an exception set. */
static int claim_at_home(const struct run *run, PyObject *results)
{
    size_t arrays = 0, bytes = 0, at_home = 0;
    for (int i = 0; i < run->started; i++) {
        PyObject *list = PyList_GET_ITEM(results, i);
        Py_ssize_t count = PyList_Check(list) ? PyList_GET_SIZE(list) : -1, j = 0;
        for (; j < count && PyArray_Check(PyList_GET_ITEM(list, j)); j++) {
            PyArrayObject *array = (PyArrayObject *)PyList_GET_ITEM(list, j);
            arrays++;
            bytes += (size_t)PyArray_NBYTES(array);
            at_home += is_at_home(run->workers[i], array);
        }
        if (j != count) {
            PyErr_SetString(PyExc_TypeError, "a thread returns a list of arrays");
            return -1;
        }
    }
    if (arrays > 0)
        report_claim(at_home == arrays, run->job->name,
                     "%zu arrays of %.1f MB outlive their threads, %zu where they belong", arrays,
                     (double)bytes / 1e6, at_home);
    return 0;
}

/* The results by rank, or NULL with an exception set. */
static PyObject *collect(struct run *run)
{
    PyObject *results = run->failed ? NULL : PyList_New(run->started);
    for (int i = 0; i < run->started; i++) {
        if (results != NULL)
            PyList_SET_ITEM(results, i, run->workers[i]->result);
        else
            Py_XDECREF(run->workers[i]->result);
    }
    if (run->failed)
        PyErr_Restore(run->errors[0], run->errors[1], run->errors[2]);
    return results;
}

PyObject *threads_run(const struct job *job, const PyDataMemAllocator *below)
{
    struct run run = {.job = job};
    /* All arenas first: without a GIL a thread that ends soon would leave its region to the next.
     */
    while (run.opened < job->count && !run.failed)
        open_worker(&run, below);
    while (run.started < run.opened && !run.failed)
        if (start(&run) != 0)
            keep_error(&run);
    for (int i = run.started; i < run.opened; i++)
        arena_close(&run.workers[i]->arena);
    for (int i = 0; i < run.started; i++)
        join(&run, run.workers[i]);
    PyObject *results = collect(&run);
    if (results != NULL)
        claim_apart(&run);
    if (results != NULL && claim_at_home(&run, results) != 0)
        Py_CLEAR(results);
    return results;
}
