/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How fast a trace is replayed, with every check and without any, on libc's malloc and on the
 * handlers named.
 *
 *     bench_replay [HANDLER ...]
 *
 * The traces are of made-up programs that compute with arrays, mostly small ones; most are
 * temporaries, about a thousand stay, some are resized.  In the first the same lines come many
 * times over, as in a loop; in the second no two calls are alike, which is the worst for the
 * processor's guesses.  Prints calls per second of processor time, the medians of the rounds, and
 * what the checks leave of the speed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "history.h"
#include "subject/subject.h"
#include "trace/replay.h"

#include "subject/plain.h"

enum { ROUNDS = 9, CALLS = 1000000 };

_Noreturn static void stop(const char *what, const char *why)
{
    fprintf(stderr, "bench_replay: %s: %s\n", what, why);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Calls per second. */
static double replay(const char *trace, PyDataMem_Handler *handler, bool unchecked)
{
    struct replay_options options = {.unchecked = unchecked};
    struct replay_result result;
    char why[256];
    struct trace_reader *reader = trace_open(trace, why, sizeof why);
    if (reader == NULL)
        stop(trace, why);
    double start = now();
    if (replay_run(reader, handler, &options, &result) != REPLAY_PASSED)
        stop(handler->name, result.violation.text);
    double seconds = now() - start;
    trace_reader_close(reader);
    return (double)result.calls / seconds;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, by_value);
    return values[ROUNDS / 2];
}

static void bench(const char *trace, PyDataMem_Handler *handler)
{
    double checked[ROUNDS], unchecked[ROUNDS], ratio[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        unchecked[i] = replay(trace, handler, true);
        checked[i] = replay(trace, handler, false);
        ratio[i] = checked[i] / unchecked[i];
    }
    printf("%16s: %5.1f million calls a second with checks (to be above 5), %5.1f without: "
           "%.2f of it (0.50)\n",
           handler->name, median(checked) / 1e6, median(unchecked) / 1e6, median(ratio));
}

static void bench_subject(const char *trace, const char *name)
{
    struct subject_place place;
    struct subject subject;
    char why[256];
    const char *wrong = subject_find(name, &place);
    if (wrong != NULL)
        stop(name, wrong);
    if (subject_load(&place, &subject, why, sizeof why) != LOAD_DONE)
        stop(name, why);
    bench(trace, subject.handler);
    subject_place_free(&place);
}

static void bench_all(const char *title, enum history_kind kind, int argc, char **argv)
{
    const char *folder = getenv("TMPDIR");
    char path[512];
    snprintf(path, sizeof path, "%s/conform-bench-%d.trace", folder != NULL ? folder : "/tmp",
             (int)getpid());
    if (!history_write(path, kind, 49, CALLS))
        stop(path, "cannot be written");
    puts(title);
    bench(path, plain_handler());
    for (int i = 1; i < argc; i++)
        bench_subject(path, argv[i]);
    unlink(path);
}

int main(int argc, char **argv)
{
    bench_all("replay of a program of loops:", HISTORY_LOOPS, argc, argv);
    bench_all("replay of one that never does the same twice:", HISTORY_ARRAYS, argc, argv);
    return 0;
}
