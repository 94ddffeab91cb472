/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is done with a handler: by its functions here, by NumPy in bench.py.
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/place.h"
#include "base/random.h"
#include "base/text.h"
#include "bench/bench.h"
#include "python/python_half.h"
#include "supervise/child.h"
#include "trace/replay.h"

/* ---- one size ---------------------------------------------------------------------------------
 */

static bool do_malloc(const PyDataMemAllocator *a, size_t size, uint64_t times)
{
    for (uint64_t i = 0; i < times; i++) {
        volatile char *p = a->malloc(a->ctx, size);
        if (p == NULL)
            return false;
        p[0] = p[size - 1] = 1;
        a->free(a->ctx, (void *)p, size);
    }
    return true;
}

static bool do_calloc(const PyDataMemAllocator *a, size_t size, uint64_t times)
{
    for (uint64_t i = 0; i < times; i++) {
        volatile char *p = a->calloc(a->ctx, size, 1);
        if (p == NULL)
            return false;
        (void)p[0];
        p[size - 1] = 1;
        a->free(a->ctx, (void *)p, size);
    }
    return true;
}

static bool do_realloc(const PyDataMemAllocator *a, size_t size, uint64_t times)
{
    char *p = a->malloc(a->ctx, size);
    bool good = p != NULL;
    size_t now = size;
    for (uint64_t i = 0; i < 2 * times && good; i++) {
        size_t next = now == size ? 2 * size : size;
        char *moved = a->realloc(a->ctx, p, next);
        good = moved != NULL;
        if (!good)
            break;
        p = moved;
        now = next;
        ((volatile char *)p)[now - 1] = 1;
    }
    if (p != NULL)
        a->free(a->ctx, p, now);
    return good;
}

/* ---- many sizes -------------------------------------------------------------------------------
 */

/* As many small ones as large ones, up to 256 KiB: as programs have it, most bytes are in few. */
static size_t any_size(struct random *random)
{
    enum { LEAST_LOG2 = 5, LOG2S = 13 };
    size_t power = (size_t)1 << (LEAST_LOG2 + random_below(random, LOG2S));
    return power + random_below(random, power);
}

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Blocks of any size take the place of each other. */
enum { PLACES = 1024 };

/* The turns that a slow handler has not made by then are left out: in processor time, so that a
 * busy machine does not count; but one that waits is not waited for. */
static bool is_long_enough(double used, uint64_t begun)
{
    static const double processor = 0.3, wall = 0.8;
    return processor_seconds() - used >= processor || clock_since(begun) >= wall;
}

struct crowd {
    struct random random;
    void *p[PLACES];
    size_t size[PLACES], live;
};

/* How many bytes were asked for; 0: they were refused. */
static size_t replace_one(struct crowd *crowd, const PyDataMemAllocator *a, double *took)
{
    size_t at = random_below(&crowd->random, PLACES), size = any_size(&crowd->random);
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
        memset(crowd->p[at], 1, size); /* as an array is written to */
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

static bool do_latency(const PyDataMemAllocator *a, struct answer *answer)
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

static uint64_t page_faults(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (uint64_t)used.ru_minflt;
}

/* Beside what was resident before. */
static bool look_at_footprint(PyDataMem_Handler *handler, struct answer *answer)
{
    const PyDataMemAllocator *a = &handler->allocator;
    enum { TURNS = 20000, EVERY = 1024 };
    struct crowd crowd = {.random = {11}};
    double before = resident_bytes(), over = 0, asked = 0, took[2], used = processor_seconds();
    uint64_t faults = page_faults(), begun = clock_now();
    bool good = true;
    size_t looks = 0;
    for (size_t i = 0; i < TURNS && good && !is_long_enough(used, begun); i++) {
        size_t size = replace_one(&crowd, a, took);
        good = size != 0;
        asked += (double)size;
        if (i >= 2 * PLACES && i % EVERY == 0) {
            over += (resident_bytes() - before) / (double)crowd.live;
            looks++;
        }
    }
    if (looks == 0)
        over = (resident_bytes() - before) / (double)MAX(crowd.live, (size_t)1);
    answer->figures[0] = over / (double)MAX(looks, (size_t)1);
    answer->figures[1] = (double)(page_faults() - faults) / (asked / (1 << 20));
    free_crowd(&crowd, a);
    return good;
}

/* ---- recorded programs ------------------------------------------------------------------------
 */

static const char *const programs[] = {"numpy-2.5", "programs/simulate", "programs/scientific",
                                       "programs/tables", "programs/learning"};
enum { PROGRAMS = sizeof programs / sizeof *programs };

static bool replay_program(PyDataMem_Handler *handler, unsigned program,
                           const struct replay_options *how)
{
    char path[PATH_MAX], why[256];
    const char *name = text("/%s.trace", programs[program]);
    if (!place_find(text("%s%s", SOURCE_PROFILES, name), text("%s%s", INSTALLED_PROFILES, name),
                    path))
        return false;
    struct replay_result result = {0};
    struct trace_reader *reader = trace_open(path, why, sizeof why);
    if (reader == NULL)
        return false;
    enum replay_outcome outcome = replay_run(reader, handler, how, &result);
    trace_reader_close(reader);
    return outcome == REPLAY_PASSED;
}

static bool do_replay(PyDataMem_Handler *handler, unsigned program, uint64_t times)
{
    static const struct replay_options how = {.unchecked = true};
    for (uint64_t i = 0; i < times; i++) {
        if (!replay_program(handler, program, &how))
            return false;
    }
    return true;
}

/* What is resident and what is live, summed up over the calls at which that was looked at. */
struct looks {
    double before, resident, live, asked;
    uint64_t calls, last;
};

static void look(void *p, size_t size, uint64_t live, void *data)
{
    enum { EVERY = 64 };
    struct looks *looks = data;
    if (p != NULL)
        memset(p, 1, size);
    if (live > looks->last)
        looks->asked += (double)(live - looks->last);
    looks->last = live;
    if (++looks->calls % EVERY != 0)
        return;
    looks->resident += MAX(resident_bytes() - looks->before, 0.0);
    looks->live += (double)live;
}

/* One after the other and again, and every block is written to. */
static bool look_at_programs(PyDataMem_Handler *handler, struct answer *answer)
{
    enum { TURNS = 10 };
    struct looks looks = {.before = resident_bytes()};
    const struct replay_options how = {.unchecked = true, .look = look, .data = &looks};
    uint64_t faults = page_faults(), begun = clock_now();
    double used = processor_seconds();
    bool good = true;
    for (unsigned i = 0; i < TURNS * PROGRAMS && good && !is_long_enough(used, begun); i++) {
        looks.last = 0;
        good = replay_program(handler, i % PROGRAMS, &how);
    }
    answer->figures[0] = looks.resident / MAX(looks.live, 1.0);
    answer->figures[1] = (double)(page_faults() - faults) / MAX(looks.asked / (1 << 20), 1.0);
    return good;
}

/* In a process of its own: what was freed in one round would be there in the next. */
static bool do_apart(bool (*work)(PyDataMem_Handler *handler, struct answer *answer),
                     PyDataMem_Handler *handler, struct answer *answer)
{
    int status = -1, ends[2];
    if (pipe(ends) != 0)
        return false;
    pid_t pid = child_fork(false); /* in the group of this one, and ends with it */
    if (pid == 0) {
        bool good =
            work(handler, answer) && write(ends[1], answer, sizeof *answer) == sizeof *answer;
        _exit(good ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    close(ends[1]);
    bool good = pid > 0 && read(ends[0], answer, sizeof *answer) == sizeof *answer;
    close(ends[0]);
    bool ended = waitpid(pid, &status, 0) == pid;
    if (ended && WIFSIGNALED(status)) { /* as it would have here */
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    if (ended && !good && WEXITSTATUS(status) != EXIT_FAILURE)
        _exit(WEXITSTATUS(status));
    return ended && good;
}

/* ---- the whole --------------------------------------------------------------------------------
 */

static bool do_work(const struct task *task, PyDataMem_Handler *handler, struct answer *answer)
{
    const PyDataMemAllocator *a = &handler->allocator;
    switch (task->work) {
    case WORK_MALLOC:
        return do_malloc(a, task->size, task->times);
    case WORK_CALLOC:
        return do_calloc(a, task->size, task->times);
    case WORK_REALLOC:
        return do_realloc(a, task->size, task->times);
    case WORK_REPLAY:
        return do_replay(handler, task->figure, task->times);
    case WORK_LATENCY:
        return do_latency(a, answer);
    case WORK_FOOTPRINT:
        return do_apart(look_at_footprint, handler, answer);
    case WORK_LONG_REPLAY:
        return do_apart(look_at_programs, handler, answer);
    default:
        return python_half_run("bench", "work") == NULL;
    }
}

void bench_do(const struct task *task, PyDataMem_Handler *handler, struct answer *answer)
{
    *answer = (struct answer){0};
    if (task->work >= WORK_ADD && python_half_run("bench", "prepare") != NULL)
        answer->refused = true;
    uint64_t faults = page_faults(), begun = clock_now();
    double used = processor_seconds();
    answer->refused = answer->refused || !do_work(task, handler, answer);
    answer->wall = clock_since(begun);
    answer->processor = processor_seconds() - used;
    answer->faults = page_faults() - faults;
}
