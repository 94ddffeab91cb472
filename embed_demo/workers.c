/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Starting threads, giving each its handler, and waiting for them.
 *
 * NumPy keeps the handler in a context variable.  A thread that C made begins with an empty
 * context, and so with NumPy's own handler; what it installs is seen by it alone.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "workers.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "arguments.h"
#include "crew.h"
#include "interpreter.h"

static const PyDataMemAllocator *below; /* arenas come from there */
static struct crew *crews;
static _Thread_local struct worker *self; /* in a thread of ours */

void workers_begin(const PyDataMemAllocator *allocator)
{
    below = allocator;
}

/* NumPy holds no array of it any more, and no context. */
static void worker_unused(PyDataMem_Handler *handler)
{
    struct worker *w = handler->allocator.ctx;
    w->in_use = false;
    arena_close(&w->arena);
}

static struct worker *worker_new(struct crew *crew, int rank)
{
    char owner[sizeof crew->name + 12], name[sizeof owner + 10];
    snprintf(owner, sizeof owner, "%s %d", crew->name, rank);
    snprintf(name, sizeof name, "arena of %s", owner);
    struct worker *w = calloc(1, sizeof *w);
    if (w == NULL || arena_open(&w->arena, name, below, crew->job.room) != 0) {
        free(w);
        PyErr_Format(PyExc_MemoryError, "there are no %zu bytes for the arena of a thread",
                     crew->job.room);
        return NULL;
    }
    books_open(&w->books, &w->arena.handler, owner);
    w->crew = crew;
    w->rank = rank;
    return w;
}

/* Puts the pending exception by, if it is the first, and lets the others know. */
static void keep_error(struct crew *crew)
{
    if (crew->error[0] == NULL) {
        PyErr_Fetch(&crew->error[0], &crew->error[1], &crew->error[2]);
        if (crew->job.abort != NULL)
            Py_XDECREF(PyObject_CallFunctionObjArgs(crew->job.abort, NULL));
    }
    PyErr_Clear();
}

/* Has a thread raise KeyboardInterrupt when it runs Python the next time.  One that has not come to
 * Python yet does this for itself. */
static void interrupt(const struct worker *w)
{
    if (w->python_id != 0)
        PyThreadState_SetAsyncExc(w->python_id, PyExc_KeyboardInterrupt);
}

static PyObject *call(const struct worker *w)
{
    PyObject *place = Py_BuildValue("(ii)", w->rank, w->crew->count);
    PyObject *all = place != NULL ? PySequence_Concat(place, w->crew->job.arguments) : NULL;
    PyObject *result = all != NULL ? PyObject_Call(w->crew->job.function, all, NULL) : NULL;
    Py_XDECREF(all);
    Py_XDECREF(place);
    return result;
}

/* What a thread does under the GIL. */
static void run_with_own_handler(struct worker *w)
{
    w->in_use = true;
    PyObject *before = memory_install(&w->books.handler, worker_unused);
    w->result = before != NULL ? call(w) : NULL;
    if (w->result == NULL)
        keep_error(w->crew);
    if (before != NULL && memory_restore(before) != 0)
        keep_error(w->crew);
}

/* Where not all threads could be started, none begins: they may have to wait for each other. */
static bool wait_at_gate(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    while (crew->gate == GATE_SHUT)
        pthread_cond_wait(&crew->changed, &crew->lock);
    bool open = crew->gate == GATE_OPEN;
    pthread_mutex_unlock(&crew->lock);
    return open;
}

static void run_in_python(struct worker *w)
{
    PyGILState_STATE state = PyGILState_Ensure();
    w->python_id = PyThread_get_thread_ident();
    if (w->crew->interrupted && w->crew->job.abort == NULL)
        interrupt(w);
    run_with_own_handler(w);
    w->python_id = 0;
    /* This ends the thread's context, and with it the context's hold on the handler. */
    PyGILState_Release(state);
}

static void *thread_main(void *arg)
{
    struct worker *w = self = arg;
    if (wait_at_gate(w->crew))
        run_in_python(w);
    pthread_mutex_lock(&w->crew->lock);
    w->crew->running--;
    pthread_cond_broadcast(&w->crew->changed);
    pthread_mutex_unlock(&w->crew->lock);
    return NULL;
}

/* How much of the job is done, from 0 to 1. */
static double progress(const struct crew *crew)
{
    double sum = 0;
    for (int i = 0; i < crew->count; i++) {
        double done;
        __atomic_load(&crew->job.progress[i], &done, __ATOMIC_RELAXED);
        sum += done;
    }
    return sum > 0 && sum < crew->count ? sum / crew->count : sum > 0;
}

/* The line of a job that is under way, on a terminal, in place of the one before. */
static void draw_progress(const struct crew *crew)
{
    static const char full[] = "########################################";
    const int width = sizeof full - 1;
    int done = (int)(width * progress(crew));
    fprintf(stderr, "\r\033[K%s [%.*s%*s] %3.0f%%", crew->name, done, full, width - done, "",
            100 * progress(crew));
}

/* Waits a twentieth of a second at most.  Has the last thread ended? */
static bool all_ended(struct crew *crew)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 50 * 1000 * 1000;
    until.tv_sec += until.tv_nsec / (1000 * 1000 * 1000);
    until.tv_nsec %= 1000 * 1000 * 1000;
    pthread_mutex_lock(&crew->lock);
    if (crew->running > 0)
        pthread_cond_timedwait(&crew->changed, &crew->lock, &until);
    bool ended = crew->running == 0;
    pthread_mutex_unlock(&crew->lock);
    return ended;
}

/* Ctrl-C is heard by the main thread alone, which is here.  A thread that never comes back to
 * Python cannot be ended, nor the interpreter with it: a second Ctrl-C leaves it all to the kernel.
 */
static void pass_interrupt_on(struct crew *crew)
{
    if (crew->interrupted)
        _exit(complain(STATUS_INTERRUPTED, "interrupted again, and threads did not end"));
    crew->interrupted = true;
    keep_error(crew);
    for (int i = 0; i < crew->count && crew->job.abort == NULL; i++)
        interrupt(crew->workers[i]);
}

/* The GIL is taken now and then, to look for signals. */
static void wait_for_all(struct crew *crew)
{
    bool draws = crew->job.progress != NULL && isatty(STDERR_FILENO), ended;
    do {
        if (draws)
            draw_progress(crew);
        PyThreadState *state = PyEval_SaveThread();
        ended = all_ended(crew);
        PyEval_RestoreThread(state);
        if (PyErr_CheckSignals() != 0)
            pass_interrupt_on(crew);
    } while (!ended);
    if (draws)
        fputs("\r\033[K", stderr);
}

/* Starts all threads, or none.  Returns how many there are to be joined. */
static int start(struct crew *crew)
{
    int started = 0;
    while (started < crew->count) {
        struct worker *w = crew->workers[started];
        int error = pthread_create(&w->thread, NULL, thread_main, w);
        if (error != 0) {
            PyErr_Format(PyExc_RuntimeError, "a thread cannot be started: %s", strerror(error));
            keep_error(crew);
            break;
        }
        started++;
    }
    pthread_mutex_lock(&crew->lock);
    crew->running = started;
    crew->gate = started == crew->count ? GATE_OPEN : GATE_GO_HOME;
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
    return started;
}

static void worker_free(struct worker *w)
{
    books_close(&w->books);
    free(w);
}

/* A crew with all its arenas, or NULL with an exception set. */
static struct crew *crew_new(const struct job *job)
{
    struct crew *crew = calloc(1, sizeof *crew);
    if (crew == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    crew->job = *job;
    snprintf(crew->name, sizeof crew->name, "%s", job->name);
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->changed, NULL);
    while (crew->count < job->count) {
        struct worker *w = worker_new(crew, crew->count);
        if (w == NULL)
            break;
        crew->workers[crew->count++] = w;
    }
    if (crew->count == job->count)
        return crew;
    for (int i = 0; i < crew->count; i++) {
        arena_close(&crew->workers[i]->arena);
        worker_free(crew->workers[i]);
    }
    free(crew);
    return NULL;
}

/* The results by rank, or NULL with the crew's exception set. */
static PyObject *collect(struct crew *crew)
{
    PyObject *list = crew->error[0] == NULL ? PyList_New(crew->count) : NULL;
    for (int i = 0; i < crew->count; i++) {
        PyObject *result = crew->workers[i]->result;
        crew->workers[i]->result = NULL;
        if (list != NULL)
            PyList_SET_ITEM(list, i, result);
        else
            Py_XDECREF(result);
    }
    if (crew->error[0] != NULL)
        PyErr_Restore(crew->error[0], crew->error[1], crew->error[2]);
    return list;
}

PyObject *workers_run(const struct job *job)
{
    struct crew *crew = crew_new(job);
    if (crew == NULL)
        return NULL;
    crew->next = crews;
    crews = crew;
    int started = start(crew);
    wait_for_all(crew);
    for (int i = 0; i < started; i++)
        pthread_join(crew->workers[i]->thread, NULL);
    if (interpreter_flush() != 0)
        keep_error(crew);
    for (int i = 0; i < crew->count; i++)
        if (!crew->workers[i]->in_use && crew->workers[i]->arena.region != NULL)
            arena_close(&crew->workers[i]->arena); /* of a thread that never began */
    return collect(crew);
}

struct crew *crew_find(const char *name)
{
    struct crew *crew = crews;
    while (crew != NULL && strcmp(crew->name, name) != 0)
        crew = crew->next;
    return crew;
}

struct books *workers_books(struct books *otherwise)
{
    return self != NULL ? &self->books : otherwise;
}

int workers_in_use(void)
{
    int in_use = 0;
    for (const struct crew *crew = crews; crew != NULL; crew = crew->next)
        for (int i = 0; i < crew->count; i++)
            in_use += crew->workers[i]->in_use;
    return in_use;
}

void workers_end(void)
{
    if (workers_in_use() > 0)
        return;
    while (crews != NULL) {
        struct crew *crew = crews;
        crews = crew->next;
        for (int i = 0; i < crew->count; i++)
            worker_free(crew->workers[i]);
        free(crew);
    }
}
