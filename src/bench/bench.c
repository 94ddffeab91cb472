/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rounds: each handler does the same for some milliseconds, one after the other, again and again,
 * so that what the machine does otherwise befalls all of them.  What counts is the ratio to the
 * default handler in the same round.
 */
#include "bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "supervise/child.h"
#include "supervise/children.h"

struct server {
    pid_t pid;
    int to, from;
};

struct benching {
    const struct bench_options *options;
    struct bench *bench;
    struct server servers[MOST_BENCHED];
    uint64_t begun;
    uint64_t cell_begun;
    size_t asked_for; /* cells, so far */
};

/* ---- processes --------------------------------------------------------------------------------
 */

/* What it says of itself: false. */
static bool lose(struct benching *b, size_t subject, enum bench_loss loss, const char *why)
{
    int status = 0;
    pid_t pid = b->servers[subject].pid;
    b->bench->lost = subject;
    b->bench->loss = loss;
    if (why == NULL && pid > 0 && waitpid(pid, &status, 0) == pid) {
        b->servers[subject].pid = 0;
        why = WIFSIGNALED(status) ? child_signal_name(WTERMSIG(status))
                                  : text("the process exits with %d", WEXITSTATUS(status));
    }
    snprintf(b->bench->why, sizeof b->bench->why, "%s", why != NULL ? why : "it is gone");
    return false;
}

/* Seconds: at least so long for a start of Python, and for what comes with NumPy and libc. */
static double least_limit(const struct benching *b)
{
    static const double usual = 10;
    return MAX(b->options->hangs, usual * clock_slowness());
}

/* Within so many seconds. */
static bool get(struct benching *b, size_t subject, void *what, size_t size, double limit,
                const char *when)
{
    struct pollfd answers = {b->servers[subject].from, POLLIN, 0};
    uint64_t begun = clock_now();
    int count;
    do {
        count = poll(&answers, 1, 50);
        if (b->options->is_over()) /* a signal may have come while nothing was waited for */
            return lose(b, subject, BENCH_ENDED, "interrupted");
        if (count <= 0 && clock_since(begun) > limit)
            return lose(b, subject, BENCH_HUNG, text("no end after %.3g s, %s", limit, when));
    } while (count <= 0);
    if (read(answers.fd, what, size) == (ssize_t)size)
        return true;
    lose(b, subject, BENCH_ENDED, NULL);
    snprintf(b->bench->why + strlen(b->bench->why), sizeof b->bench->why - strlen(b->bench->why),
             ", %s", when);
    return false;
}

static bool begin(struct benching *b, size_t subject)
{
    int there[2], back[2];
    struct server *server = &b->servers[subject];
    if (pipe2(there, O_CLOEXEC) != 0 || pipe2(back, O_CLOEXEC) != 0)
        return lose(b, subject, BENCH_ENDED, strerror(errno));
    *server = (struct server){child_fork(true), there[1], back[0]};
    if (server->pid == 0) {
        close(there[1]);
        close(back[0]);
        bench_serve(b->options->places[subject], b->options->python, there[0], back[1]);
    }
    close(there[0]);
    close(back[1]);
    return server->pid > 0 || lose(b, subject, BENCH_ENDED, strerror(errno));
}

static bool greet(struct benching *b, size_t subject)
{
    struct hello hello;
    if (!get(b, subject, &hello, sizeof hello, least_limit(b), "loading it"))
        return false;
    memcpy(b->bench->python, hello.python, sizeof hello.python);
    b->bench->state = hello.state;
    return *hello.wrong == '\0' || lose(b, subject, BENCH_ENDED, text("%.255s", hello.wrong));
}

static void end_all(struct benching *b)
{
    for (size_t i = 0; i < b->bench->subjects; i++) {
        struct server *server = &b->servers[i];
        if (server->pid > 0) {
            kill(-server->pid, SIGKILL);
            waitpid(server->pid, NULL, 0);
        }
        if (server->to > 0)
            close(server->to);
        if (server->from > 0)
            close(server->from);
    }
    children_end(NULL, 0); /* what these have left */
}

static const char *when(const struct cell *cell)
{
    return text("in %s%s%s", cell->title, cell->size != 0 ? " of " : "",
                cell->size != 0 ? bench_size(cell->size) : "");
}

static bool ask(struct benching *b, size_t subject, const struct cell *cell, uint64_t times,
                struct answer *answer)
{
    struct task task = {cell->work, cell->size, cell->threads, cell->figure, times};
    if (write(b->servers[subject].to, &task, sizeof task) != sizeof task)
        return lose(b, subject, BENCH_ENDED, NULL);
    double limit = subject < BENCH_GIVEN ? least_limit(b) : b->options->hangs;
    if (!get(b, subject, answer, sizeof *answer, limit, when(cell)))
        return false;
    return !answer->refused || lose(b, subject, BENCH_REFUSED, text("refused %s", when(cell)));
}

/* ---- figures ----------------------------------------------------------------------------------
 */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The one below which such a part of them lies; sorts them. */
static double quantile(double *values, size_t count, double part)
{
    qsort(values, count, sizeof *values, compare_doubles);
    double at = part * (double)(count - 1);
    size_t below = (size_t)at;
    double rest = at - (double)below;
    return values[below] * (1 - rest) + values[MIN(below + 1, count - 1)] * rest;
}

static double value_of(const struct cell *cell, const struct answer *answer, uint64_t times)
{
    return strcmp(cell->unit, "s") == 0 ? answer->wall / (double)times
                                        : answer->figures[cell->figure];
}

/* From all rounds of all handlers. */
static void conclude(struct bench_cell *cell, size_t subjects, const uint64_t *times,
                     struct answer (*answers)[MOST_BENCHED])
{
    static const double enough = 0.1;
    double values[MOST_ROUNDS], ratios[MOST_ROUNDS], used[MOST_ROUNDS], faults[MOST_ROUNDS];
    for (size_t i = 0; i < subjects; i++) {
        for (size_t round = 0; round < cell->rounds; round++) {
            const struct answer *own = &answers[round][i], *first = &answers[round][BENCH_DEFAULT];
            double beside = value_of(&cell->cell, first, times[BENCH_DEFAULT]);
            double share = (double)times[i] / (double)times[BENCH_DEFAULT];
            values[round] = value_of(&cell->cell, own, times[i]);
            ratios[round] = values[round] / MAX(beside, 1e-12);
            used[round] = own->processor / MAX(first->processor, 1e-9) / share;
            faults[round] = (double)own->faults / (double)times[i];
        }
        cell->of[i] = (struct figure){
            .is_known = true,
            .value = quantile(values, cell->rounds, 0.5),
            .ratio = quantile(ratios, cell->rounds, 0.5),
            .low = quantile(ratios, cell->rounds, 0.125),
            .high = quantile(ratios, cell->rounds, 0.875),
            .processor_ratio = quantile(used, cell->rounds, 0.5),
            .faults = quantile(faults, cell->rounds, 0.5),
        };
        if (i == BENCH_DEFAULT)
            cell->is_noisy =
                quantile(values, cell->rounds, 0.75) - quantile(values, cell->rounds, 0.25) >
                enough * cell->of[i].value;
    }
}

static bool time_is_over(const struct benching *b)
{
    return b->options->limit > 0 && clock_since(b->begun) > b->options->limit;
}

/* For the cell, which may take no more than its part of the whole: what is slow in one has its
 * other figures. */
static bool is_late(const struct benching *b)
{
    static const double most = 1. / 7;
    return time_is_over(b) ||
           (b->options->limit > 0 && clock_since(b->cell_begun) > most * b->options->limit);
}

/* So many times that it takes the handler as long as it is to. */
static bool count_times(struct benching *b, size_t subject, const struct cell *cell, double seconds,
                        uint64_t *times)
{
    struct answer answer;
    *times = 1;
    if (strcmp(cell->unit, "s") != 0) /* once, to be warm; a footprint is of a heap that is new */
        return cell->work != WORK_LATENCY || ask(b, subject, cell, 1, &answer);
    for (;;) {
        if (!ask(b, subject, cell, *times, &answer))
            return false;
        if (answer.wall >= seconds / 2 || *times >= UINT32_MAX || is_late(b))
            return true;
        double more = seconds / MAX(answer.wall, 1e-9);
        *times = (uint64_t)MAX((double)*times * MIN(more, 100.0), (double)*times + 1);
    }
}

/* Cells that one work gives several figures of are measured once. */
static bool is_same_work(const struct bench_cell *a, const struct bench_cell *b)
{
    return a->cell.work == b->cell.work && a->cell.size == b->cell.size &&
           a->cell.threads == b->cell.threads && a->cell.work != WORK_REPLAY;
}

/* Seconds: threads that want the GIL may wait for its switch interval, 5 ms. */
static double least_turn(const struct cell *cell)
{
    return cell->threads > 1 ? 0.04 : 5e-4;
}

/* Where the time is over before three rounds were made, `rounds` of the cells stays 0. */
static bool measure(struct benching *b, size_t first, size_t count, double seconds)
{
    enum { LEAST_ROUNDS = 3 };
    static struct answer answers[MOST_ROUNDS][MOST_BENCHED];
    struct bench_cell *cells = &b->bench->cells[first];
    uint64_t times[MOST_BENCHED];
    size_t subjects = b->bench->subjects, rounds = 0;
    b->cell_begun = clock_now();
    double turn = MAX(seconds / (double)(subjects + 1) / 12, least_turn(&cells->cell));
    for (size_t i = 0; i < subjects; i++) {
        if (!count_times(b, i, &cells->cell, turn, &times[i]))
            return false;
    }
    for (; rounds < MOST_ROUNDS && (rounds < LEAST_ROUNDS || clock_since(b->cell_begun) < seconds);
         rounds++) {
        for (size_t i = 0; i < subjects; i++) {
            size_t subject = (i + rounds) % subjects;
            if (is_late(b) && rounds < LEAST_ROUNDS)
                return true;
            if (!ask(b, subject, &cells->cell, times[subject], &answers[rounds][subject]))
                return false;
        }
    }
    for (size_t i = 0; i < count; i++) {
        cells[i].rounds = rounds;
        conclude(&cells[i], subjects, times, answers);
        b->bench->noisy += cells[i].is_noisy;
    }
    return true;
}

/* ---- the whole --------------------------------------------------------------------------------
 */

/* On one core, but for what is about threads: from one to the other caches are cold. */
static void stay_on_core(struct benching *b, bool one)
{
    cpu_set_t all, chosen;
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    int last = CPU_SETSIZE - 1;
    while (last > 0 && !CPU_ISSET(last, &all))
        last--;
    CPU_ZERO(&chosen);
    CPU_SET(last, &chosen);
    for (size_t i = 0; i < b->bench->subjects; i++)
        sched_setaffinity(b->servers[i].pid, sizeof all, one ? &chosen : &all);
}

/* The cells of one turn, while there is time. */
static bool measure_turn(struct benching *b, unsigned turn)
{
    struct bench *bench = b->bench;
    bool good = true;
    for (size_t i = 0, count; i < bench->count && good && !time_is_over(b); i += count) {
        struct bench_cell *cell = &bench->cells[i];
        count = 1;
        if (cell->turn != turn)
            continue;
        while (i + count < bench->count && is_same_work(cell, &bench->cells[i + count]))
            count++;
        double left = b->options->seconds - clock_since(b->begun);
        double share = (double)count / (double)(bench->count - b->asked_for);
        stay_on_core(b, cell->cell.threads == 1);
        good = measure(b, i, count, MAX(left, 0.0) * share);
        b->asked_for += count;
    }
    return good;
}

static void leave_out_unmeasured(struct bench *bench)
{
    size_t kept = 0;
    for (size_t i = 0; i < bench->count; i++) {
        if (bench->cells[i].rounds > 0)
            bench->cells[kept++] = bench->cells[i];
    }
    bench->left_out = bench->count - kept;
    bench->count = kept;
}

bool bench_run(const struct bench_options *options, struct bench *bench)
{
    struct benching b = {.options = options, .bench = bench, .begun = clock_now()};
    bool good = true;
    children_adopt(true);
    bench->count = bench_cells(bench->cells, options->is_quick);
    for (size_t i = 0; i < bench->subjects && good; i++)
        good = begin(&b, i);
    for (size_t i = 0; i < bench->subjects && good; i++)
        good = greet(&b, i);
    for (unsigned turn = 0; turn < BENCH_TURNS && good; turn++)
        good = measure_turn(&b, turn);
    leave_out_unmeasured(bench);
    end_all(&b);
    bench->seconds = clock_since(b.begun);
    return good;
}
