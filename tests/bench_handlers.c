/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_handlers.c - what a handler costs beside libc.
 *
 *     bench_handlers [--threads N] HANDLER.so ...
 *
 * Times the handlers and libc in turn, through the same struct of function pointers, and prints
 * for each the nanoseconds of one repetition, the difference to libc, and the ratio.  Each
 * figure is the median of ROUNDS rounds.  Part of `make bench`; needs neither Python nor NumPy.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nep49.h"

#include "subject/plain.h"

enum { ROUNDS = 31, MOST_SUBJECTS = 16, MOST_THREADS = 64 };

/* Does one thing `times` times.  False: the handler refused. */
typedef bool work_fn(const PyDataMemAllocator *a, size_t size, unsigned times);

/* An array that is made, written to and dropped: its first and last byte stand for all of it. */
static bool malloc_and_free(const PyDataMemAllocator *a, size_t size, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        volatile char *p = a->malloc(a->ctx, size);
        if (p == NULL)
            return false;
        p[0] = p[size - 1] = 1;
        a->free(a->ctx, (void *)p, size);
    }
    return true;
}

static bool calloc_and_free(const PyDataMemAllocator *a, size_t size, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        volatile char *p = a->calloc(a->ctx, size, 1);
        if (p == NULL)
            return false;
        p[0] = p[size - 1] = 1;
        a->free(a->ctx, (void *)p, size);
    }
    return true;
}

/* A hundred arrays alive at once, dropped in the order in which they were made. */
static bool hundred_alive(const PyDataMemAllocator *a, size_t size, unsigned times)
{
    enum { ALIVE = 100 };
    volatile char *alive[ALIVE] = {NULL};
    bool all_well = true;

    for (unsigned i = 0; i < times && all_well; i++) {
        volatile char **slot = &alive[i % ALIVE];
        a->free(a->ctx, (void *)*slot, size);
        *slot = a->malloc(a->ctx, size);
        if (*slot == NULL)
            all_well = false;
        else
            (*slot)[0] = (*slot)[size - 1] = 1;
    }
    for (unsigned i = 0; i < ALIVE; i++)
        a->free(a->ctx, (void *)alive[i], size);
    return all_well;
}

/* From 64 bytes by half as much again up to size, filled, then cut to a half, as fromiter does. */
static bool grow_by_realloc(const PyDataMemAllocator *a, size_t size, unsigned times)
{
    bool all_well = true;

    for (unsigned i = 0; i < times && all_well; i++) {
        char *p = NULL;
        size_t held = 0;
        for (size_t n = 64; n <= size; n += n / 2) {
            char *q = a->realloc(a->ctx, p, n);
            all_well = q != NULL;
            if (!all_well)
                break;
            memset(q + held, 1, n - held);
            p = q;
            held = n;
        }
        char *q = all_well ? a->realloc(a->ctx, p, size / 2) : NULL;
        all_well = q != NULL;
        a->free(a->ctx, q ? q : p, q ? size / 2 : held);
    }
    return all_well;
}

struct measurement {
    const char *what;
    work_fn *work;
    size_t size;
    unsigned times;
};

static const struct measurement measurements[] = {
    {"malloc+free", malloc_and_free, 16, 20000},
    {"malloc+free", malloc_and_free, 64, 20000},
    {"malloc+free", malloc_and_free, 256, 20000},
    {"malloc+free", malloc_and_free, 1 << 10, 20000},
    {"malloc+free", malloc_and_free, 4 << 10, 20000},
    {"malloc+free", malloc_and_free, 16 << 10, 20000},
    {"malloc+free", malloc_and_free, 64 << 10, 20000},
    {"malloc+free", malloc_and_free, 256 << 10, 20000},
    {"malloc+free", malloc_and_free, 1 << 20, 20000},
    {"calloc+free", calloc_and_free, 64, 20000},
    {"calloc+free", calloc_and_free, 4 << 10, 10000},
    {"calloc+free", calloc_and_free, 64 << 10, 1000},
    {"100 alive", hundred_alive, 16, 20000},
    {"100 alive", hundred_alive, 256, 20000},
    {"100 alive", hundred_alive, 4 << 10, 20000},
    {"grow by realloc", grow_by_realloc, 4 << 10, 1000},
    {"grow by realloc", grow_by_realloc, 64 << 10, 200},
    {"grow by realloc", grow_by_realloc, 1 << 20, 20},
};

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

struct job {
    pthread_barrier_t *start;
    const struct measurement *m;
    const PyDataMemAllocator *allocator;
    unsigned times;
    double took_ns; /* -1: refused */
};

static void *run_job(void *arg)
{
    struct job *job = arg;

    if (job->start != NULL)
        pthread_barrier_wait(job->start);
    double start = now_ns();
    bool all_well = job->m->work(job->allocator, job->m->size, job->times);
    job->took_ns = all_well ? now_ns() - start : -1;
    return NULL;
}

/* Nanoseconds of one repetition in the slowest of `threads` threads, or -1: it was refused. */
static double time_once(const struct measurement *m, const PyDataMemAllocator *allocator,
                        unsigned threads)
{
    pthread_barrier_t barrier;
    pthread_t ids[MOST_THREADS];
    struct job jobs[MOST_THREADS] = {{NULL, m, allocator, m->times, 0}};
    double slowest = 0;

    if (threads == 1) { /* no other: libc's malloc knows, and leaves its locks out */
        run_job(&jobs[0]);
        return jobs[0].took_ns < 0 ? -1 : jobs[0].took_ns / m->times;
    }
    pthread_barrier_init(&barrier, NULL, threads);
    for (unsigned i = 0; i < threads; i++) { /* for longer: they do not start at the same time */
        jobs[i] = (struct job){&barrier, m, allocator, 10 * m->times, 0};
        if (pthread_create(&ids[i], NULL, run_job, &jobs[i]) != 0) {
            fprintf(stderr, "bench_handlers: thread %u of %u cannot be started\n", i + 1, threads);
            exit(1);
        }
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        if (jobs[i].took_ns < 0)
            slowest = -1;
        else if (slowest >= 0 && jobs[i].took_ns > slowest)
            slowest = jobs[i].took_ns;
    }
    pthread_barrier_destroy(&barrier);
    return slowest < 0 ? -1 : slowest / (10 * m->times);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), compare_doubles);
    return values[n / 2];
}

/* subjects[0] is libc.  The order changes from round to round, so that none always comes first. */
static bool measure(const struct measurement *m, PyDataMem_Handler *const *subjects, unsigned n,
                    unsigned threads)
{
    double seen[MOST_SUBJECTS][ROUNDS], base = 0;

    for (unsigned round = 0; round <= ROUNDS; round++) {
        for (unsigned i = 0; i < n; i++) {
            unsigned s = (round + i) % n;
            double t = time_once(m, &subjects[s]->allocator, threads);
            if (t < 0) {
                fprintf(stderr, "bench_handlers: %s refused: %s, %zu bytes\n", subjects[s]->name,
                        m->what, m->size);
                return false;
            }
            if (round > 0) /* the first only warms up */
                seen[s][round - 1] = t;
        }
    }
    for (unsigned s = 0; s < n; s++) {
        double t = median(seen[s], ROUNDS);
        if (s == 0)
            printf("%-16s %8zu %-16s %10.1f ns\n", m->what, m->size, subjects[s]->name, base = t);
        else
            printf("%-16s %8s %-16s %10.1f ns %+10.1f ns %6.2f x\n", "", "", subjects[s]->name, t,
                   t - base, t / base);
    }
    fflush(stdout);
    return true;
}

static PyDataMem_Handler *load(const char *path)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        fprintf(stderr, "bench_handlers: %s\n", dlerror());
        return NULL;
    }

    PyDataMem_Handler *handler = dlsym(object, "nep49_handler");
    if (handler != NULL)
        return handler;

    const char *why = "it exports neither nep49_handler nor nep49_get_handler";
    PyDataMem_Handler *(*get)(const char **) = NULL;
    *(void **)&get = dlsym(object, "nep49_get_handler");
    handler = get ? get(&why) : NULL;
    if (handler == NULL)
        fprintf(stderr, "bench_handlers: %s: %s\n", path, why);
    return handler;
}

static int usage(void)
{
    fprintf(stderr, "usage: bench_handlers [--threads 1..%d] HANDLER.so ... (%d at most)\n",
            MOST_THREADS, MOST_SUBJECTS - 1);
    return 2;
}

int main(int argc, char **argv)
{
    PyDataMem_Handler *subjects[MOST_SUBJECTS] = {plain_handler()};
    unsigned n = 1, threads = 1;
    int first = 1;

    if (argc > 2 && strcmp(argv[1], "--threads") == 0) {
        char *end;
        unsigned long t = strtoul(argv[2], &end, 10);
        if (*end != '\0' || t < 1 || t > MOST_THREADS)
            return usage();
        threads = (unsigned)t;
        first = 3;
    }
    if (first >= argc || argc - first >= MOST_SUBJECTS)
        return usage();
    for (int i = first; i < argc; i++) {
        subjects[n] = load(argv[i]);
        if (subjects[n++] == NULL)
            return 3;
    }
    printf("%-16s %8s %-16s %13s %13s %8s\n", threads == 1 ? "one thread" : "each thread", "bytes",
           "handler", "median", "over libc", "ratio");
    for (size_t i = 0; i < sizeof(measurements) / sizeof(measurements[0]); i++) {
        if (!measure(&measurements[i], subjects, n, threads))
            return 1;
    }
    return 0;
}
