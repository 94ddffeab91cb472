/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/bench.h"

#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "python/api.h"
#include "python/python.h"
#include "trace/replay.h"

static PyDataMem_Handler *handler;
static PyDataMemAllocator *a;
static int requests, answers; /* descriptors */

static PyObject *get_descriptors(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    return Py_BuildValue("ii", requests, answers);
}

static PyObject *none_unless(bool refused)
{
    return refused ? PyErr_NoMemory() : Py_BuildValue("");
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
    return none_unless(false);
}

static PyObject *loop_realloc(PyObject *self, PyObject *arguments)
{
    Py_ssize_t least, times;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "nn", &least, &times))
        return NULL;
    size_t size = (size_t)least;
    char *p = a->malloc(a->ctx, size), *moved = p;
    for (Py_ssize_t i = 0; i < 2 * times && moved != NULL; i++) {
        size_t next = i % 2 == 0 ? 2 * (size_t)least : (size_t)least;
        moved = a->realloc(a->ctx, p, next);
        if (moved != NULL) {
            p = moved;
            size = next;
            ((volatile char *)p)[size - 1] = 1;
        }
    }
    if (p != NULL)
        a->free(a->ctx, p, size);
    return none_unless(moved == NULL);
}

/* ---- footprints -------------------------------------------------------------------------- */

/* Sums over the calls after which memory was looked at.  It is not before `is_on`. */
static struct {
    bool is_on;
    double before, resident, live, asked;
    uint64_t calls, last;
} footprint;

static double resident_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL || fscanf(file, "%*u %lu", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* After a call: writes to the block that it left, and looks at memory if it is time. */
static void look(void *p, size_t size, uint64_t live, void *data)
{
    enum { EVERY = 64 };
    (void)data;
    if (p != NULL)
        memset(p, 1, size);
    if (live > footprint.last)
        footprint.asked += (double)(live - footprint.last);
    footprint.last = live;
    if (!footprint.is_on || ++footprint.calls % EVERY != 0)
        return;
    footprint.resident += MAX(resident_bytes() - footprint.before, 0.0);
    footprint.live += (double)live;
}

static PyObject *take_footprint(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    PyObject *sums = Py_BuildValue("ddd", footprint.resident, footprint.live, footprint.asked);
    memset(&footprint, 0, sizeof footprint);
    footprint.is_on = true;
    footprint.before = resident_bytes();
    return sums;
}

/* ---- many sizes -------------------------------------------------------------------------- */

/* Blocks from 32 bytes to 256 KiB, as many small ones as large ones, that replace each other. */
enum { PLACES = 1024, LEAST_LOG2 = 5, LOG2S = 13, SEED = 7 };
static struct {
    struct random random;
    void *p[PLACES];
    size_t size[PLACES], live;
} crowd = {.random = {SEED}};

/* took[0] is the time of free in seconds, took[1] that of malloc.  False if it was refused. */
static bool replace_one(double took[2])
{
    size_t at = random_below(&crowd.random, PLACES);
    size_t power = (size_t)1 << (LEAST_LOG2 + random_below(&crowd.random, LOG2S));
    size_t size = power + random_below(&crowd.random, power);
    uint64_t begun = clock_now();
    if (crowd.p[at] != NULL)
        a->free(a->ctx, crowd.p[at], crowd.size[at]);
    took[0] = clock_since(begun);
    crowd.live -= crowd.size[at];
    look(NULL, 0, crowd.live, NULL);
    begun = clock_now();
    crowd.p[at] = a->malloc(a->ctx, size);
    took[1] = clock_since(begun);
    crowd.size[at] = crowd.p[at] != NULL ? size : 0;
    crowd.live += crowd.size[at];
    look(crowd.p[at], size, crowd.live, NULL);
    return crowd.p[at] != NULL;
}

static PyObject *loop_replace(PyObject *self, PyObject *none)
{
    enum { TURNS = 64 };
    static double took[2 * TURNS];
    (void)self, (void)none;
    for (size_t i = 0; i < TURNS; i++) {
        if (!replace_one(&took[2 * i]))
            return PyErr_NoMemory();
    }
    return PyBytes_FromStringAndSize((const char *)took, sizeof took);
}

static PyObject *free_all(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    for (size_t i = 0; i < PLACES; i++) {
        if (crowd.p[i] != NULL)
            a->free(a->ctx, crowd.p[i], crowd.size[i]);
    }
    memset(&crowd, 0, sizeof crowd);
    crowd.random.state = SEED;
    return none_unless(false);
}

/* ---- the module -------------------------------------------------------------------------- */

static PyObject *loop_replay(PyObject *self, PyObject *arguments)
{
    const char *path;
    char why[256];
    struct replay_result result = {0};
    const struct replay_options how = {.unchecked = true, .look = footprint.is_on ? look : NULL};
    (void)self;
    if (!PyArg_ParseTuple(arguments, "s", &path))
        return NULL;
    footprint.last = 0;
    struct trace_reader *reader = trace_open(path, why, sizeof why);
    bool passed = reader != NULL && replay_run(reader, handler, &how, &result) == REPLAY_PASSED;
    if (reader != NULL)
        trace_reader_close(reader);
    return none_unless(!passed);
}

/* Each raises MemoryError if the handler refuses a request. */
static PyMethodDef methods[] = {
    {"block", loop_block, METH_VARARGS, "zeroed, size, times: writes both ends, frees it"},
    {"realloc", loop_realloc, METH_VARARGS, "size, times: to twice the size and back"},
    {"replace", loop_replace, METH_NOARGS,
     "64 blocks; returns the seconds of each free and malloc"},
    {"free_all", free_all, METH_NOARGS, "frees what replace() has left"},
    {"replay", loop_replay, METH_VARARGS, "path: the calls of a recorded program"},
    {"footprint", take_footprint, METH_NOARGS, "resident, live and requested, since the last one"},
    {"descriptors", get_descriptors, METH_NOARGS, "of the pipes of requests and answers"},
    {NULL, NULL, 0, NULL},
};

const char *bench_serve(PyDataMem_Handler *given, int from, int to)
{
    handler = given;
    a = &given->allocator;
    requests = from;
    answers = to;
    const char *wrong = python_add_module("_conform_bench", methods);
    return wrong != NULL ? wrong : python_half_run("bench", "serve");
}
