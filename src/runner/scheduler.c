/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Starting workers, watching them, and completing what they leave behind.
 */
#include "runner/scheduler.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "model/options.h"
#include "supervise/child.h"
#include "supervise/interrupt.h"

/* Returns the worker's ends; ours are kept.  None of them is 0, which main.c occupies. */
static struct worker_pipes make_pipes(struct scheduler *s, size_t number)
{
    int wakeup[2], commands[2];
    if (pipe2(wakeup, O_CLOEXEC | O_NONBLOCK) != 0 || pipe2(commands, O_CLOEXEC) != 0)
        die(EXIT_HARNESS_BROKE, "no pipe for a worker: %s", strerror(errno));
    s->workers[number] = (struct one_worker){.pipes = {wakeup[0], commands[1]}};
    return (struct worker_pipes){wakeup[1], commands[0]};
}

/* It has ended, or was never there. */
static void forget_worker(struct scheduler *s, size_t number)
{
    if (s->workers[number].pipes.wakeup != 0)
        worker_close_pipes(&s->workers[number].pipes);
    s->workers[number] = (struct one_worker){0};
}

static void fork_worker(struct scheduler *s, size_t number, struct worker_pipes pipes,
                        const struct worker_pipes *forked_workers)
{
    atomic_store(&s->plan->shared->rests[number], 0);
    pid_t pid = child_fork(true);
    if (pid < 0)
        die(EXIT_HARNESS_BROKE, "no process for a worker: %s", strerror(errno));
    if (pid == 0) {
        for (size_t i = 0; i <= s->jobs; i++)
            forget_worker(s, i);
        worker_run(s->plan, number, number == s->jobs, pipes, forked_workers);
    }
    worker_close_pipes(&pipes);
    s->workers[number].pid = pid;
    s->workers[number].since = clock_now();
}

static void start_worker(struct scheduler *s, size_t number)
{
    forget_worker(s, number);
    fork_worker(s, number, make_pipes(s, number), NULL);
}

/* Starts the first worker, which forks those beside it that there are not. */
static void start_workers(struct scheduler *s)
{
    struct worker_pipes forked_workers[WORKER_SLOTS] = {0}, own;
    forget_worker(s, 0);
    own = make_pipes(s, 0);
    for (size_t i = 1; i < s->jobs; i++) {
        if (s->workers[i].pid != 0)
            continue;
        forget_worker(s, i);
        forked_workers[i] = make_pipes(s, i);
        atomic_store(&s->plan->shared->rests[i], 1);
    }
    fork_worker(s, 0, own, forked_workers);
    for (size_t i = 1; i < s->jobs; i++) {
        if (forked_workers[i].wakeup != 0)
            worker_close_pipes(&forked_workers[i]);
    }
}

/* Adopts the workers that the first one has forked.  A process that does not become our child ends
 * when its pipes are closed, and is replaced. */
static void adopt_forked_workers(struct scheduler *s)
{
    for (size_t i = 1; i < s->jobs; i++) {
        pid_t pid = atomic_exchange(&s->plan->shared->forked_workers[i], 0);
        if (pid != 0 && waitpid(pid, NULL, WNOHANG) == 0)
            s->workers[i].pid = pid;
    }
}

/* Starts the worker, or lets one that waits begin the round; watch() sees if it has died. */
static void begin_round(struct scheduler *s, size_t number)
{
    struct one_worker *worker = &s->workers[number];
    if (worker->pid == 0) {
        if (number == 0 && s->jobs > 1)
            start_workers(s);
        else
            start_worker(s, number);
        return;
    }
    worker->since = clock_now();
    atomic_store(&s->plan->shared->rests[number], 0);
    if (write(worker->pipes.commands, "", 1) < 0 && errno != EPIPE)
        die(EXIT_HARNESS_BROKE, "a worker cannot be told to go on: %s", strerror(errno));
}

static bool runs(const struct scheduler *s, size_t number)
{
    return s->workers[number].pid != 0 && atomic_load(&s->plan->shared->rests[number]) == 0;
}

/* Gives a verdict to the property of a worker that died or was killed. */
static void complete(struct scheduler *s, size_t number, const char *how, enum verdict verdict)
{
    struct shared_results *shared = s->plan->shared;
    size_t index = atomic_exchange(&shared->workers[number].property, 0);
    if (index == 0)
        return;
    struct record *record = results_record(shared, index - 1);
    if (record->verdict != VERDICT_NONE)
        return;
    record->signal = 0;
    ending_describe(record, how);
    if (verdict == CRASH)
        ending_forget_cause(record);
    record->seconds = clock_since(atomic_load(&shared->workers[number].since));
    record->verdict = verdict;
    atomic_fetch_add(&shared->finished, 1);
}

/* Ends the processes that dead workers have left. */
static void end_orphans(const struct scheduler *s)
{
    pid_t workers[WORKER_SLOTS];
    for (size_t i = 0; i <= s->jobs; i++)
        workers[i] = s->workers[i].pid;
    children_end(workers, s->jobs + 1);
}

/* True if Python or the import of NumPy has ended a worker, or never returned. */
static bool died_at_start(const struct scheduler *s, size_t number)
{
    const struct shared_results *shared = s->plan->shared;
    return number < s->jobs && atomic_load(&shared->workers[number].property) == 0 &&
           atomic_load(&shared->environment_known) == 0 && shared->python_error[0] == '\0';
}

static const char *how_it_ended(int status)
{
    return WIFSIGNALED(status) ? child_signal_name(WTERMSIG(status))
                               : fmt("status %d", WEXITSTATUS(status));
}

static void worker_ended(struct scheduler *s, size_t number, int status)
{
    struct shared_results *shared = s->plan->shared;
    bool hung = s->workers[number].hung;
    forget_worker(s, number);
    if (died_at_start(s, number))
        snprintf(shared->python_error, sizeof shared->python_error, "%s",
                 hung ? "it does not come back from its start"
                      : fmt("the process ends with %s as Python starts and imports NumPy",
                            how_it_ended(status)));
    else if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    end_orphans(s);
    if (shared->python_error[0] != '\0') {
        atomic_store(&shared->abandoned, 1);
        return;
    }
    bool in_hand = atomic_load(&shared->workers[number].property) != 0;
    const char *how = hung ? "the worker did not come back"
                           : fmt("it took the worker down with it (%s)", how_it_ended(status));
    if (hung)
        atomic_fetch_add(&shared->timeouts, 1);
    complete(s, number, how, hung ? TIMEOUT : CRASH);
    if (in_hand || ++s->restarts < 3)
        start_worker(s, number);
    else
        atomic_store(&shared->abandoned, 1);
}

/* True if a worker has not ended its property in time or, if it starts Python or waits for the
 * first verdict, is there when the whole run should be over. */
static bool is_hung(const struct scheduler *s, size_t number)
{
    struct shared_results *shared = s->plan->shared;
    const struct options *options = s->plan->options;
    double grace = 2 + options->timeout / 10; /* memcheck makes all slow */
    if (atomic_load(&shared->workers[number].property) != 0)
        return clock_now() > atomic_load(&shared->workers[number].until) + (uint64_t)(grace * 1e9);
    double most = options->max_time * (options->max_time_is_given ? 1 : clock_slowness());
    return clock_since(s->workers[number].since) > options->timeout + grace &&
           clock_since(atomic_load(&shared->begin)) > most + grace;
}

/* A worker ends a property that takes too long; this is for a worker that does not come back. */
static void end_hung_workers(struct scheduler *s)
{
    for (size_t i = 0; i <= s->jobs; i++) {
        struct one_worker *worker = &s->workers[i];
        if (!runs(s, i) || worker->hung || !is_hung(s, i))
            continue;
        worker->hung = true;
        kill(worker->pid, SIGKILL);
    }
}

static void show_progress(const struct scheduler *s)
{
    struct shared_results *shared = s->plan->shared;
    if (!s->plan->shows_progress)
        return;
    size_t finished = atomic_load(&shared->finished); /* before the rest: one less is no harm */
    const char *id = finished == 0 ? "starting Python" : NULL;
    bool is_starting = finished == 0 && atomic_load(&shared->workers[0].property) == 0;
    size_t first = SIZE_MAX; /* of those that run: all wait for the one at the start */
    for (size_t i = 0; i <= s->jobs && !is_starting; i++) {
        size_t property = atomic_load(&shared->workers[i].property);
        first = property != 0 ? MIN(first, property) : first;
    }
    if (first != SIZE_MAX)
        id = s->plan->properties[first - 1]->id;
    if (id != NULL)
        fprintf(stderr, "\r\033[K[%zu/%zu] %s", finished, s->plan->count, id);
}

/* Waits for an event, handles it, and returns the number of workers that still run. */
static size_t watch(struct scheduler *s)
{
    struct pollfd wakeups[WORKER_SLOTS];
    size_t count = 0;
    for (size_t i = 0; i <= s->jobs; i++) {
        if (runs(s, i))
            wakeups[count++] = (struct pollfd){.fd = s->workers[i].pipes.wakeup, .events = POLLIN};
    }
    show_progress(s);
    poll(wakeups, count, 200);
    adopt_forked_workers(s);
    size_t running = 0;
    for (size_t i = 0; i <= s->jobs; i++) {
        char bytes[64];
        int status;
        if (!runs(s, i))
            continue;
        while (read(s->workers[i].pipes.wakeup, bytes, sizeof bytes) > 0)
            continue;
        if (waitpid(s->workers[i].pid, &status, WNOHANG) == s->workers[i].pid)
            worker_ended(s, i, status);
        running += runs(s, i);
    }
    end_hung_workers(s);
    return running;
}

/* After a signal: what is known so far is reported, and marked as a part. */
static void end_all(struct scheduler *s)
{
    for (size_t i = 0; i <= s->jobs; i++) {
        if (s->workers[i].pid == 0)
            continue;
        kill(s->workers[i].pid, SIGKILL);
        waitpid(s->workers[i].pid, NULL, 0);
        forget_worker(s, i);
        complete(s, i, "interrupted", INCOMPLETE);
    }
    end_orphans(s);
}

static bool has_all_verdicts(const struct plan *plan)
{
    size_t i = 0;
    while (i < plan->count && results_record(plan->shared, i)->verdict != VERDICT_NONE)
        i++;
    return i == plan->count;
}

bool scheduler_run(struct scheduler *s)
{
    struct plan *plan = s->plan;
    struct shared_results *shared = plan->shared;
    size_t fresh = s->jobs, begun = 1;
    bool interrupted = false;
    children_adopt(true);
    atomic_store(&shared->begin, clock_now());
    begin_round(s, 0);
    if (s->jobs > 1 && plan->fresh_count > 0)
        begin_round(s, fresh); /* in the place of the last one, which begins behind it */
    for (;;) {
        size_t running = watch(s);
        if (interrupt_came() != 0) {
            interrupted = !has_all_verdicts(plan); /* else the workers are only about to rest */
            end_all(s);
            break;
        }
        bool goes_on = worker_subject_lives(shared) && shared->python_error[0] == '\0';
        while (goes_on && begun + runs(s, fresh) < s->jobs &&
               atomic_load(&shared->next_python) < plan->python_count) {
            begin_round(s, begun++);
            running++;
        }
        if (running == 0 && goes_on && atomic_load(&shared->next_fresh) < plan->fresh_count)
            begin_round(s, fresh);
        else if (running == 0)
            break;
    }
    if (plan->shows_progress)
        fputs("\r\033[K", stderr);
    return !interrupted;
}

static bool is_over(void *end)
{
    return clock_now() > *(const uint64_t *)end;
}

void scheduler_end(struct scheduler *s)
{
    uint64_t end = clock_now() + 10 * 1000000000ull; /* far more than any takes that is well */
    pid_t pids[WORKER_SLOTS];
    for (size_t i = 0; i <= s->jobs; i++) {
        pids[i] = s->workers[i].pid;
        forget_worker(s, i);
    }
    for (size_t i = 0; i <= s->jobs; i++) {
        int status;
        if (pids[i] != 0)
            child_wait(pids[i], is_over, &end, &status);
    }
}
