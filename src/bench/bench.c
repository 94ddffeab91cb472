/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/bench.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/install_path.h"
#include "base/random.h"
#include "base/text.h"
#include "python/api.h"
#include "python/python.h"
#include "trace/replay.h"

static struct task task;

/* ---- one size ---------------------------------------------------------------------------------
 */

static bool time_malloc(const PyDataMemAllocator *a, bool zeroed)
{
    for (uint64_t i = 0; i < task.times; i++) {
        volatile char *p = zeroed ? a->calloc(a->ctx, task.size, 1) : a->malloc(a->ctx, task.size);
        if (p == NULL)
            return false;
        p[0] = p[task.size - 1] = 1;
        a->free(a->ctx, (void *)p, task.size);
    }
    return true;
}

static bool time_realloc(const PyDataMemAllocator *a)
{
    char *p = a->malloc(a->ctx, task.size), *moved = p;
    size_t size = task.size;
    for (uint64_t i = 0; i < 2 * task.times && moved != NULL; i++) {
        size_t next = size == task.size ? 2 * size : task.size;
        moved = a->realloc(a->ctx, p, next);
        if (moved != NULL) {
            p = moved;
            size = next;
            ((volatile char *)p)[size - 1] = 1;
        }
    }
    if (p != NULL)
        a->free(a->ctx, p, size);
    return moved != NULL;
}

/* ---- many sizes -------------------------------------------------------------------------------
 */

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Ends the work of a slow handler early.  Processor time counts, so that the load of the machine
 * does not matter; wall time ends a handler that waits. */
static bool is_long_enough(double used, uint64_t begun)
{
    return processor_seconds() - used >= 0.3 || clock_since(begun) >= 0.8;
}

/* Blocks from 32 bytes to 256 KiB, as many small ones as large ones, that replace each other. */
enum { PLACES = 1024, LEAST_LOG2 = 5, LOG2S = 13 };
struct crowd {
    struct random random;
    void *p[PLACES];
    size_t size[PLACES], live;
};

/* Returns the size that was asked for, or 0 if it was refused.  took[0] is the time of free in
 * seconds, took[1] that of malloc. */
static size_t replace_one(struct crowd *crowd, const PyDataMemAllocator *a, double *took)
{
    size_t at = random_below(&crowd->random, PLACES);
    size_t power = (size_t)1 << (LEAST_LOG2 + random_below(&crowd->random, LOG2S));
    size_t size = power + random_below(&crowd->random, power);
    uint64_t begun = clock_now();
    if (crowd->p[at] != NULL)
        a->free(a->ctx, crowd->p[at], crowd->size[at]);
    uint64_t freed = clock_now();
    crowd->p[at] = a->malloc(a->ctx, size);
    uint64_t made = clock_now();
    crowd->live -= crowd->size[at];
    crowd->size[at] = crowd->p[at] != NULL ? size : 0;
    crowd->live += crowd->size[at];
    took[0] = (double)(freed - begun) / 1e9;
    took[1] = (double)(made - freed) / 1e9;
    if (crowd->p[at] != NULL)
        memset(crowd->p[at], 1, size);
    return crowd->size[at];
}

static void free_crowd(struct crowd *crowd, const PyDataMemAllocator *a)
{
    for (size_t i = 0; i < PLACES; i++) {
        if (crowd->p[i] != NULL)
            a->free(a->ctx, crowd->p[i], crowd->size[i]);
    }
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool time_single_calls(const PyDataMemAllocator *a, struct answer *answer)
{
    enum { TURNS = 10000 };
    static double took[2 * TURNS];
    struct crowd crowd = {.random = {7}};
    bool good = true;
    size_t calls = 0;
    uint64_t begun = clock_now();
    double used = processor_seconds();
    for (; calls < 2 * TURNS && good && !is_long_enough(used, begun); calls += 2)
        good = replace_one(&crowd, a, &took[calls]) != 0;
    free_crowd(&crowd, a);
    qsort(took, calls, sizeof *took, compare_doubles);
    answer->figures[0] = took[calls / 2];
    answer->figures[1] = took[calls - calls / 100 - 1];
    answer->figures[2] = took[calls - calls / 1000 - 1];
    answer->figures[3] = took[calls - 1];
    return good;
}

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

static double page_faults(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)used.ru_minflt;
}

/* Sums over the calls after which memory was looked at. */
struct footprint {
    double before, faults, resident, live, asked;
    uint64_t calls, every, last;
};

static struct footprint footprint_begin(uint64_t every)
{
    return (struct footprint){.before = resident_bytes(), .faults = page_faults(), .every = every};
}

/* For replay_run: writes to the block, and looks at memory after some of the calls. */
static void footprint_look(void *p, size_t size, uint64_t live, void *data)
{
    struct footprint *f = data;
    if (p != NULL)
        memset(p, 1, size);
    if (live > f->last)
        f->asked += (double)(live - f->last);
    f->last = live;
    if (++f->calls % f->every != 0)
        return;
    f->resident += MAX(resident_bytes() - f->before, 0.0);
    f->live += (double)live;
}

/* Resident memory over live memory, and page faults for each MiB that was asked for. */
static void footprint_end(const struct footprint *f, struct answer *answer)
{
    answer->figures[0] = f->resident / MAX(f->live, 1.0);
    answer->figures[1] = (page_faults() - f->faults) / MAX(f->asked / (1 << 20), 1.0);
}

static bool measure_footprint(const PyDataMemAllocator *a, struct answer *answer)
{
    enum { TURNS = 20000, EVERY = 1024 };
    struct crowd crowd = {.random = {11}};
    struct footprint f = footprint_begin(EVERY);
    double took[2], used = processor_seconds();
    uint64_t begun = clock_now();
    bool good = true;
    for (size_t i = 0; i < TURNS && good && !is_long_enough(used, begun); i++) {
        size_t size = replace_one(&crowd, a, took);
        good = size != 0;
        f.asked += (double)size;
        f.last = UINT64_MAX; /* what is asked for is known here */
        footprint_look(NULL, 0, crowd.live, &f);
    }
    f.every = 1;
    footprint_look(NULL, 0, crowd.live, &f); /* a slow handler has made too few calls before */
    footprint_end(&f, answer);
    free_crowd(&crowd, a);
    return good;
}

/* ---- recorded programs ------------------------------------------------------------------------
 */

static const char *const programs[] = {"numpy-2.5", "programs/simulate", "programs/scientific",
                                       "programs/tables", "programs/learning"};
enum { PROGRAMS = sizeof programs / sizeof *programs };

static bool replay_program(PyDataMem_Handler *handler, uint64_t program,
                           const struct replay_options *how)
{
    char path[PATH_MAX], why[256];
    struct replay_result result = {0};
    const char *name = text("/%s.trace", programs[program]);
    if (!place_find(text("%s%s", SOURCE_PROFILES, name), text("%s%s", INSTALLED_PROFILES, name),
                    path))
        return false;
    struct trace_reader *reader = trace_open(path, why, sizeof why);
    if (reader == NULL)
        return false;
    enum replay_outcome outcome = replay_run(reader, handler, how, &result);
    trace_reader_close(reader);
    return outcome == REPLAY_PASSED;
}

static bool time_replay(PyDataMem_Handler *handler)
{
    static const struct replay_options how = {.unchecked = true};
    bool good = true;
    for (uint64_t i = 0; i < task.times && good; i++)
        good = replay_program(handler, task.figure, &how);
    return good;
}

static bool measure_programs(PyDataMem_Handler *handler, struct answer *answer)
{
    enum { TURNS = 10, EVERY = 64 };
    struct footprint f = footprint_begin(EVERY);
    const struct replay_options how = {.unchecked = true, .look = footprint_look, .data = &f};
    double used = processor_seconds();
    uint64_t begun = clock_now();
    bool good = true;
    for (unsigned i = 0; i < TURNS * PROGRAMS && good && !is_long_enough(used, begun); i++) {
        f.last = 0;
        good = replay_program(handler, i % PROGRAMS, &how);
    }
    footprint_end(&f, answer);
    return good;
}

/* ---- a task ------------------------------------------------------------------------------------
 */

static bool do_work(PyDataMem_Handler *handler, struct answer *answer)
{
    switch (task.work) {
    case WORK_MALLOC:
    case WORK_CALLOC:
        return time_malloc(&handler->allocator, task.work == WORK_CALLOC);
    case WORK_REALLOC:
        return time_realloc(&handler->allocator);
    case WORK_REPLAY:
        return time_replay(handler);
    case WORK_LATENCY:
        return time_single_calls(&handler->allocator, answer);
    case WORK_FOOTPRINT:
        return measure_footprint(&handler->allocator, answer);
    case WORK_LONG_REPLAY:
        return measure_programs(handler, answer);
    default:
        return python_half_run("bench", "work") == NULL;
    }
}

static PyObject *get_task(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return Py_BuildValue("nnnn", (Py_ssize_t)(task.work - WORK_NUMPY), (Py_ssize_t)task.size,
                         (Py_ssize_t)task.threads, (Py_ssize_t)task.times);
}

static PyMethodDef methods[] = {
    {"task", get_task, METH_NOARGS, "Returns the task: work, size, threads, times."},
    {NULL, NULL, 0, NULL},
};

const char *bench_prepare(void)
{
    return python_add_module("_conform_bench", methods);
}

void bench_do(const struct task *given, PyDataMem_Handler *handler, struct answer *answer)
{
    task = *given;
    *answer = (struct answer){0};
    bool good = task.work < WORK_NUMPY || python_half_run("bench", "prepare") == NULL;
    double faults = page_faults(), used = processor_seconds();
    uint64_t begun = clock_now();
    answer->refused = !(good && do_work(handler, answer));
    answer->wall = clock_since(begun);
    answer->processor = processor_seconds() - used;
    answer->faults = page_faults() - faults;
}
