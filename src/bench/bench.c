/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The loops that --bench times, as a Python module for bench.py, which does everything else.  Each
 * raises MemoryError if the handler refuses a request, and then leaves its blocks as they are: no
 * task follows.
 */
#include "bench/bench.h"

#include <signal.h>
#include <string.h>
#include <sys/param.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"
#include "harness/proc_count.h"
#include "model/options.h"
#include "python/api.h"
#include "python/python.h"
#include "trace/replay.h"

static const struct subject_place *places;
static json_t *options;
static struct subject subject;
static PyDataMemAllocator *a; /* of the subject */

static PyObject *get_options(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    return Py_BuildValue("s", json_dumps(options, 0));
}

/* In the process of a handler: loads it and installs it in NumPy. */
static PyObject *load(PyObject *self, PyObject *which)
{
    static char why[256];
    const struct subject_place *place = &places[PyLong_AsLong(which)];
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

/* ---- one size ---------------------------------------------------------------------------- */

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

/* ---- footprints -------------------------------------------------------------------------- */

/* Sums over the samples of memory, of which there are none before `is_on`; and bytes requested. */
static struct {
    bool is_on;
    double before, resident, live, requested;
    uint64_t calls, last;
} footprint;

/* After a call: writes to the block that it left, and samples memory now and then. */
static void look(void *p, size_t size, uint64_t live, void *data)
{
    enum { EVERY = 64 };
    (void)data;
    if (p != NULL)
        memset(p, 1, size);
    if (live > footprint.last)
        footprint.requested += (double)(live - footprint.last);
    footprint.last = live;
    if (!footprint.is_on || ++footprint.calls % EVERY != 0)
        return;
    footprint.resident += MAX((double)resident_bytes() - footprint.before, 0.0);
    footprint.live += (double)live;
}

static PyObject *take_footprint(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    PyObject *sums = Py_BuildValue("ddd", footprint.resident, footprint.live, footprint.requested);
    memset(&footprint, 0, sizeof footprint);
    footprint.is_on = true;
    footprint.before = (double)resident_bytes();
    return sums;
}

/* ---- many sizes -------------------------------------------------------------------------- */

/* Blocks from 32 bytes to 256 KiB, as many small ones as large ones, that replace each other. */
enum { PLACES = 1024, LEAST_LOG2 = 5, LOG2S = 13, SEED = 7 };
static struct {
    struct random random;
    struct {
        void *p;
        size_t size;
    } blocks[PLACES];
    size_t live;
} crowd = {.random = {SEED}};

static PyObject *loop_replace(PyObject *self, PyObject *none)
{
    enum { TURNS = 64 };
    static double seconds[TURNS][2]; /* of free and malloc */
    (void)self, (void)none;
    for (size_t i = 0; i < TURNS; i++) {
        size_t at = random_below(&crowd.random, PLACES), old = crowd.blocks[at].size;
        size_t power = (size_t)1 << (LEAST_LOG2 + random_below(&crowd.random, LOG2S));
        size_t size = power + random_below(&crowd.random, power);
        uint64_t begun = clock_now();
        if (old > 0)
            a->free(a->ctx, crowd.blocks[at].p, old);
        seconds[i][0] = clock_since(begun);
        look(NULL, 0, crowd.live -= old, NULL);
        begun = clock_now();
        void *p = a->malloc(a->ctx, size);
        seconds[i][1] = clock_since(begun);
        if (p == NULL)
            return PyErr_NoMemory();
        crowd.blocks[at].p = p;
        crowd.blocks[at].size = size;
        look(p, size, crowd.live += size, NULL);
    }
    return PyBytes_FromStringAndSize((const char *)seconds, sizeof seconds);
}

static PyObject *free_all(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    for (size_t i = 0; i < PLACES; i++) {
        if (crowd.blocks[i].size > 0)
            a->free(a->ctx, crowd.blocks[i].p, crowd.blocks[i].size);
    }
    memset(&crowd, 0, sizeof crowd);
    crowd.random.state = SEED;
    Py_RETURN_NONE;
}

static PyObject *loop_replay(PyObject *self, PyObject *arguments)
{
    char why[256];
    const char *path;
    Py_ssize_t times;
    struct replay_result result = {0};
    const struct replay_options how = {.unchecked = true, .look = footprint.is_on ? look : NULL};
    (void)self;
    if (!PyArg_ParseTuple(arguments, "sn", &path, &times))
        return NULL;
    for (; times > 0; times--) {
        footprint.last = 0;
        struct trace_reader *reader = trace_open(path, why, sizeof why);
        bool passed =
            reader != NULL && replay_run(reader, subject.handler, &how, &result) == REPLAY_PASSED;
        if (reader != NULL)
            trace_reader_close(reader);
        if (!passed)
            return PyErr_NoMemory();
    }
    Py_RETURN_NONE;
}

/* ---- the module -------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    {"options", get_options, METH_NOARGS, "of the measurement, as JSON"},
    {"load", load, METH_O, "number of a handler; returns a load_state, and what is wrong"},
    {"block", loop_block, METH_VARARGS, "zeroed, size, times: writes both ends, frees it"},
    {"realloc", loop_realloc, METH_VARARGS, "size, times: to twice the size and back"},
    {"replace", loop_replace, METH_NOARGS, "64 blocks; returns seconds of each free and malloc"},
    {"free_all", free_all, METH_NOARGS, "frees what replace() has left"},
    {"replay", loop_replay, METH_VARARGS, "path, times: the calls of a recorded program"},
    {"footprint", take_footprint, METH_NOARGS, "resident, live and requested, since the last one"},
    {NULL, NULL, 0, NULL},
};

_Noreturn void bench_run(const struct subject_place *of, const char *python, json_t *with)
{
    struct environment environment;
    const char *wrong = python_start(python, &environment);
    places = of;
    options = with;
    if (wrong == NULL)
        wrong = python_add_module("_conform_bench", methods);
    if (wrong == NULL)
        wrong = python_half_run("bench", "run");
    if (wrong != NULL)
        die(EXIT_HARNESS_BROKE, "the bench has failed: %s", wrong);
    _exit(EXIT_CONFORMANT);
}
