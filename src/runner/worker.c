/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Running properties, each in a process of its own.  The kernel reports how that process ended; the
 * verdict is in the record that it fills in, because a process may call exit(0) half-way.
 */
#include "runner/worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sanitizer_detect.h"
#include "base/text.h"
#include "harness/code_place.h"
#include "harness/limits.h"
#include "harness/property_child.h"
#include "python/python.h"
#include "runner/memcheck.h"
#include "subject/subject.h"
#include "supervise/child.h"
#include "supervise/interrupt.h"

/* Why a property was ended from outside. */
enum given_up { NOT_GIVEN_UP, HANGS, OUT_OF_TIME };

/* Facts about this worker. */
static struct {
    const struct plan *plan;
    size_t number;
    int nothing; /* /dev/null, to read from */
    bool python_up;
    struct environment python; /* once it is up */
    sigset_t not_default;      /* the signals that a property's process has to reset */
} worker;

/* One run of a property in a process of its own. */
struct attempt {
    const struct property *property;
    size_t index;
    struct record *record; /* in the shared results, or elsewhere if this is a control */
    bool is_control;       /* on libc's allocator */
    double limit;          /* seconds that a call may take, or the property without one */
    int output[2];         /* pipe: what the property prints */
};

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* More than enough for a property, by the slowest one with its fixture so far. */
static double learned_limit(const struct plan *plan, const struct property *property, double slower)
{
    static const double least_part = 0.02, least = 0.2, of_programs = 1, times = 5;
    double slowest = (double)atomic_load(&plan->shared->slowest[property->fixture]) / 1e9;
    bool programs = property->programs || property->fixture == FIXTURE_FRESH;
    double short_time = larger(programs ? of_programs : least, least_part * plan->options->timeout);
    return larger(times * slowest, short_time * slower);
}

double worker_time_limit(const struct plan *plan, const struct property *property)
{
    static const double parts[] = {1, 0.2, 0.2, 0.1};
    enum { LAST = sizeof parts / sizeof *parts - 1, MANY = 4 };
    int timeouts = atomic_load(&plan->shared->timeouts);
    double timeout = plan->options->timeout, slower = clock_slowness();
    double most = timeout * (plan->options->timeout_is_given ? 1 : slower);
    double limit = timeout * parts[timeouts < LAST ? timeouts : LAST] * slower;
    double learned = learned_limit(plan, property, slower);
    if (timeouts >= MANY && learned < limit)
        limit = learned;
    return limit < most ? limit : most;
}

static void learn_limit(struct shared_results *shared, enum fixture fixture, uint64_t nanoseconds)
{
    uint64_t slowest = atomic_load(&shared->slowest[fixture]);
    while (nanoseconds > slowest &&
           !atomic_compare_exchange_weak(&shared->slowest[fixture], &slowest, nanoseconds))
        continue;
}

bool worker_subject_lives(struct shared_results *shared)
{
    return results_record(shared, 0)->verdict == PASS;
}

void worker_close_pipes(const struct worker_pipes *pipes)
{
    close(pipes->wakeup);
    close(pipes->commands);
}

/* ---- in the property's process ---------------------------------------------------------- */

static void reset_signals(void)
{
    for (int number = 1; number < NSIG; number++) {
        if (sigismember(&worker.not_default, number) == 1)
            signal(number, SIG_DFL);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void close_descriptors(unsigned first, unsigned last)
{
    if (close_range(first, last, 0) == 0)
        return;
    unsigned most = (unsigned)sysconf(_SC_OPEN_MAX); /* a kernel before 5.9, or valgrind */
    for (unsigned fd = first; fd <= last && fd < most; fd++)
        close((int)fd);
}

/* The property sees an empty input, its output goes into the pipe, and nothing else is open. */
static void arrange_descriptors(int output)
{
    dup2(worker.nothing, 0);
    dup2(output, OUTPUT_FD);
    dup2(output, 1);
    dup2(output, 2);
    close_descriptors(3, OUTPUT_FD - 1);
    close_descriptors(OUTPUT_FD + 1, ~0u);
    fcntl(OUTPUT_FD, F_SETFD, FD_CLOEXEC);
}

/* The set-up of a property's process, but for what differs between the three ways to run it. */
static struct property_setup setup_of(const struct plan *plan, size_t index, struct record *record)
{
    const struct property *property = plan->properties[index];
    return (struct property_setup){
        .property = property,
        .place = &plan->places[atomic_load(&plan->shared->handler)],
        .record = record,
        .seed = plan->options->seed,
        .python_path = plan->python_path,
        .scratch = plan->scratch,
    };
}

static void begin_in_child(const struct attempt *attempt)
{
    const struct plan *plan = worker.plan;
    bool first = attempt->index == 0;
    struct property_setup setup = setup_of(plan, attempt->index, attempt->record);
    setup.limit = attempt->limit;
    setup.data_races = plan->data_races;
    if (attempt->is_control)
        setup.place = plain_place();
    else if (first)
        setup.load = results_load(plan->shared);
    reset_signals();
    arrange_descriptors(attempt->output[1]);
    results_isolate(plan->shared, attempt->index, first);
    if (worker.python_up)
        python_after_fork_child();
    memcheck_enable();
    begin_property(&setup);
}

static _Noreturn void run_property(const struct property *property)
{
    if (property->fixture != FIXTURE_FRESH && property->fixture != FIXTURE_UNLOADED)
        load_subject();
    if (property->fixture == FIXTURE_BARE && python_is_up())
        python_release();
    property->run();
    pass();
}

/* ---- in the worker ---------------------------------------------------------------------- */

static enum verdict judge_end(const struct attempt *attempt, int status, enum given_up given_up)
{
    struct record *record = attempt->record;
    bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (given_up == NOT_GIVEN_UP && ended && atomic_load(&record->state) == RECORD_ENDED) {
        record_terminate(record);
        return record->reached;
    }
    record->signal = given_up == NOT_GIVEN_UP && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (given_up == OUT_OF_TIME) {
        record->expected[0] = '\0';
        snprintf(record->seen, sizeof record->seen,
                 "it got on, and the %g s of the whole run were over; give it more by --max-time",
                 worker.plan->options->max_time);
        return INCOMPLETE;
    }
    if (given_up == HANGS) {
        ending_describe(record, fmt("no end after %.3g s", attempt->limit));
        atomic_fetch_add(&worker.plan->shared->timeouts, 1);
        return TIMEOUT;
    }
    if (record->signal == 0 && ending_by_sanitizer(record))
        return FAIL;
    record->by_checker = sanitizer_is_running() && record->signal == 0 ? FOUND_ERROR : NO_CHECKER;
    ending_describe(record, record->signal != 0
                                ? child_signal_name(record->signal)
                                : fmt("the process exited with status %d", WEXITSTATUS(status)));
    return CRASH;
}

/* Copies what was printed from the pipe, which refuses more than it holds.  Reads nothing from the
 * record: a process that the property left can still write to it. */
static void keep_output(const struct attempt *attempt)
{
    struct record *record = attempt->record;
    char buffer[4096];
    ssize_t length;
    size_t printed = 0;
    while ((length = read(attempt->output[0], buffer, sizeof buffer)) > 0) {
        size_t room = printed < sizeof record->output ? sizeof record->output - printed : 0;
        memcpy(record->output + (sizeof record->output - room), buffer,
               (size_t)length < room ? (size_t)length : room);
        printed += (size_t)length;
    }
    record->output_length = printed;
    close(attempt->output[0]);
    close(attempt->output[1]);
}

bool is_past_max_time(const struct options *options, uint64_t begin)
{
    double taken = clock_since(begin), most = options->max_time;
    return taken > most && (options->max_time_is_given || taken > most * clock_slowness());
}

/* How far a property has got, as its record shows. */
struct progress {
    const struct attempt *attempt;
    uint64_t since[CALL_SLOTS]; /* when the thread's latest call began, or was first seen */
    unsigned calls[CALL_SLOTS];
    uint64_t any; /* when anything was last seen to happen */
    enum given_up given_up;
    pid_t pid;
};

/* Has the threads of a process that hangs record where in the handler they are. */
static void ask_where_it_hangs(const struct progress *progress)
{
    enum { TRIES = 100 };
    static const struct timespec pause = {0, 1000000};
    const volatile char *object = progress->attempt->record->place.object;
    DIR *threads = opendir(fmt("/proc/%d/task", (int)progress->pid));
    for (struct dirent *each; threads != NULL && (each = readdir(threads)) != NULL;) {
        if (each->d_name[0] != '.')
            syscall(SYS_tgkill, progress->pid, atoi(each->d_name), SIGNAL_OF_HANG);
    }
    if (threads != NULL)
        closedir(threads);
    for (int i = 0; i < TRIES && *object == '\0'; i++)
        nanosleep(&pause, NULL);
}

/* A call that does not return hangs, and so does a property that makes no calls.  Any other, and a
 * start of Python, has the time of the whole run. */
static bool is_to_end(void *data)
{
    struct progress *progress = data;
    const struct record *record = progress->attempt->record;
    uint64_t now = clock_now(), limit = (uint64_t)(progress->attempt->limit * 1e9);
    for (size_t i = 0; i < CALL_SLOTS; i++) {
        unsigned made = record->made[i];
        if (made == 0)
            continue; /* not written yet: reading more would allocate a page */
        if (made != progress->calls[i])
            progress->since[i] = progress->any = now;
        else if (record->calls[i].kind != OUTSIDE && now - progress->since[i] > limit)
            progress->given_up = HANGS;
        progress->calls[i] = made;
    }
    if (atomic_load(&record->python_starts) != 0)
        progress->any = now;
    if (now - progress->any > limit)
        progress->given_up = HANGS;
    if (progress->given_up == HANGS)
        ask_where_it_hangs(progress);
    else if (is_past_max_time(worker.plan->options, worker.plan->shared->begin))
        progress->given_up = OUT_OF_TIME;
    atomic_store(&worker.plan->shared->workers[worker.number].until, progress->any + limit);
    return progress->given_up != NOT_GIVEN_UP;
}

/* Runs the property in a process of its own and returns the verdict; the rest is in the record. */
static enum verdict run_in_process(struct attempt *attempt)
{
    struct record *record = attempt->record;
    struct progress progress = {.attempt = attempt, .any = clock_now()};
    int status;
    if (pipe2(attempt->output, O_NONBLOCK | O_CLOEXEC) != 0) {
        snprintf(record->seen, sizeof record->seen, "no pipe: %s", strerror(errno));
        return BROK;
    }
    if (worker.python_up)
        python_before_fork();
    pid_t pid = child_fork(true);
    if (pid == 0) {
        begin_in_child(attempt);
        run_property(attempt->property);
    }
    int error = errno;
    progress.pid = pid;
    if (worker.python_up)
        python_after_fork_parent();
    bool ran = pid > 0 && child_wait(pid, is_to_end, &progress, &status) >= 0;
    if (pid > 0)
        kill(-pid, SIGKILL);
    if (!ran)
        snprintf(record->seen, sizeof record->seen, "no process for it: %s", strerror(error));
    keep_output(attempt);
    children_end(NULL, 0); /* what it left running outside its process group */
    return ran ? judge_end(attempt, status, progress.given_up) : BROK;
}

/* Runs the property on libc's allocator; for memcheck_judge. */
static const struct record *run_control(const void *data)
{
    static struct shared_results *shared;
    struct attempt control = *(const struct attempt *)data;
    if (shared == NULL && (shared = results_create(1)) == NULL)
        return NULL;
    results_clear(shared);
    control.record = results_record(shared, 0);
    control.is_control = true;
    control.record->verdict = run_in_process(&control);
    return control.record;
}

static void run_property_once(struct attempt *attempt)
{
    const struct property *property = attempt->property;
    struct record *record = attempt->record;
    const char *folder = worker.plan->memcheck_folder;
    if (worker.python_up &&
        (property->fixture == FIXTURE_PYTHON || property->fixture == FIXTURE_UNLOADED))
        python_half_prepare(property->id, strcspn(property->id, "."));
    uint64_t begin = clock_now();
    enum verdict verdict = run_in_process(attempt);
    record->seconds = clock_since(begin);
    if (verdict == PASS)
        learn_limit(worker.plan->shared, property->fixture, clock_now() - begin);
    record->memcheck[0] = '\0';
    if (folder != NULL)
        verdict = memcheck_judge(record, verdict, folder, run_control, attempt);
    record->verdict = verdict;
}

/* True if the time of the run is over; the property is then INCOMPLETE. */
static bool is_too_late(const struct plan *plan, size_t index)
{
    struct record *record = results_record(plan->shared, index);
    if (index == 0 || !is_past_max_time(plan->options, plan->shared->begin))
        return false;
    snprintf(record->seen, sizeof record->seen,
             "not run: the %g s of the whole run were over; give it more by --max-time",
             plan->options->max_time);
    record->not_run = 1;
    record->verdict = INCOMPLETE;
    atomic_fetch_add(&plan->shared->finished, 1);
    return true;
}

static void take(size_t index, int wakeup)
{
    const struct plan *plan = worker.plan;
    struct shared_results *shared = plan->shared;
    uint64_t since = clock_now();
    if (is_too_late(plan, index))
        return;
    struct attempt attempt = {.property = plan->properties[index],
                              .index = index,
                              .record = results_record(shared, index),
                              .limit = worker_time_limit(plan, plan->properties[index])};
    atomic_store(&shared->workers[worker.number].since, since);
    atomic_store(&shared->workers[worker.number].until, since + (uint64_t)(attempt.limit * 1e9));
    atomic_store(&shared->workers[worker.number].property, index + 1);
    run_property_once(&attempt);
    atomic_store(&shared->workers[worker.number].property, 0);
    atomic_fetch_add(&shared->finished, 1);
    if ((plan->shows_progress || index == 0) && write(wakeup, "", 1) < 0 && errno == EPIPE)
        _exit(4); /* the coordinator is gone */
}

/* Without the page that Python prints if it does not start; the reason comes back as one line. */
static const char *start_quietly(const char *path, struct environment *environment)
{
    int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, OUTPUT_FD);
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (kept >= 0 && nothing >= 0)
        dup2(nothing, STDERR_FILENO);
    const char *wrong = python_start_to_fork(path, environment);
    if (kept >= 0 && nothing >= 0)
        dup2(kept, STDERR_FILENO);
    close(kept);
    close(nothing);
    return wrong;
}

static void start_python(const struct plan *plan)
{
    const char *wrong = start_quietly(plan->python_path, &worker.python);
    if (wrong == NULL)
        wrong = python_module_add();
    if (wrong != NULL) {
        snprintf(plan->shared->python_error, sizeof plan->shared->python_error, "%s", wrong);
        _exit(4);
    }
    worker.python_up = true;
    if (atomic_exchange(&plan->shared->environment_known, 1) == 0)
        plan->shared->environment = worker.python;
}

/* Waits for the verdict of the first property; false if the others cannot be run. */
static bool wait_for_first(struct shared_results *shared)
{
    while (results_record(shared, 0)->verdict == VERDICT_NONE &&
           atomic_load(&shared->abandoned) == 0)
        nanosleep(&(struct timespec){0, 200000}, NULL);
    return worker_subject_lives(shared);
}

/* Runs the queue until it is empty.  The first worker runs the first property; meanwhile the
 * `fresh` worker runs one, and the others wait. */
static void run_round(const struct plan *plan, bool fresh, int wakeup)
{
    const size_t *queue = fresh ? plan->fresh : plan->python;
    size_t count = fresh ? plan->fresh_count : plan->python_count;
    _Atomic size_t *next = fresh ? &plan->shared->next_fresh : &plan->shared->next_python;
    if (worker.number == 0 && results_record(plan->shared, 0)->verdict == VERDICT_NONE)
        take(0, wakeup);
    for (bool waits = !fresh;; waits = true) {
        if (waits && !wait_for_first(plan->shared))
            return;
        size_t i = atomic_fetch_add(next, 1);
        if (i >= count)
            return;
        if (queue[i] != LEFT_OUT)
            take(queue[i], wakeup);
    }
}

/* Signals that the parent ignores, and those of the coordinator; SIGPIPE stays ignored. */
static void note_signals(void)
{
    sigemptyset(&worker.not_default);
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
            sigaddset(&worker.not_default, number);
    }
    sigdelset(&worker.not_default, SIGPIPE);
}

static void prepare(const struct plan *plan)
{
    worker.plan = plan;
    note_signals();
    code_place_prepare();
    (void)is_instrumented(); /* asked here once, it need not be looked up in each process */
    /* else OpenBLAS starts threads when NumPy is imported, and the worker could not fork */
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
}

/* valgrind reports a process that ends with errors disabled. */
static _Noreturn void end_worker(int status)
{
    memcheck_enable();
    _exit(status);
}

static bool wait_for_command(struct worker_pipes pipes)
{
    char byte;
    ssize_t length;
    do
        length = read(pipes.commands, &byte, 1);
    while (length < 0 && errno == EINTR);
    return length == 1;
}

/* False where there is no other round. */
static bool wait_for_round(struct shared_results *shared, size_t number, struct worker_pipes pipes)
{
    atomic_store(&shared->rests[number], 1);
    return !(write(pipes.wakeup, "", 1) < 0 && errno == EPIPE) && wait_for_command(pipes);
}

/* Forks the workers that have pipes there.  Returns the number of the worker in each, 0 here. */
static size_t fork_all(struct shared_results *shared, const struct worker_pipes *forked_workers)
{
    for (size_t i = 1; i < WORKER_SLOTS; i++) {
        pid_t pid = forked_workers[i].wakeup != 0 ? fork() : -1;
        if (pid == 0)
            return i;
        if (pid > 0)
            atomic_store(&shared->forked_workers[i], pid);
    }
    return 0;
}

/* Returns in this worker, and in each forked one, with its own number and pipes, when the
 * coordinator starts it.  A process in between forks them and ends, which makes them the
 * coordinator's. */
static void fork_workers(const struct worker_pipes *forked_workers, size_t *number,
                         struct worker_pipes *pipes)
{
    pid_t coordinator = getppid();
    size_t forked = 0;
    int status;
    children_adopt(false);
    if (worker.python_up)
        python_before_fork();
    pid_t between = child_fork(true);
    if (between == 0 && (forked = fork_all(worker.plan->shared, forked_workers)) == 0)
        end_worker(0);
    for (size_t i = 1; i < WORKER_SLOTS; i++) {
        if (forked_workers[i].wakeup != 0 && i != forked)
            worker_close_pipes(&forked_workers[i]);
    }
    if (between != 0) {
        if (worker.python_up)
            python_after_fork_parent();
        if (between > 0)
            child_wait(between, NULL, NULL, &status);
        return;
    }
    worker_close_pipes(pipes);
    *pipes = forked_workers[forked];
    worker.number = *number = forked;
    setpgid(0, 0);
    child_prepare(); /* SIGCHLD was let through by child_fork */
    if (worker.python_up)
        python_after_fork_child();
    if (!wait_for_command(*pipes) || !child_is_adopted(coordinator))
        end_worker(0);
}

_Noreturn void worker_run(const struct plan *plan, size_t number, bool fresh,
                          struct worker_pipes pipes, const struct worker_pipes *forked_workers)
{
    prepare(plan);
    memcheck_disable(); /* the worker is neither the handler's nor the property's */
    worker.number = number;
    child_prepare();
    children_adopt(true);
    signal(SIGPIPE, SIG_IGN);
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    worker.nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (!fresh && !plan->without_python)
        start_python(plan);
    if (forked_workers != NULL)
        fork_workers(forked_workers, &number, &pipes);
    children_adopt(true);
    do
        run_round(plan, fresh, pipes.wakeup);
    while (!fresh && wait_for_round(plan->shared, number, pipes));
    end_worker(0);
}

static _Noreturn void run_alone(const struct plan *plan, const struct property_setup *setup)
{
    if (setup->property->fixture != FIXTURE_FRESH)
        start_python(plan);
    begin_property(setup);
    run_property(setup->property);
}

_Noreturn void worker_run_here(const struct plan *plan, size_t index, void (*at_end)(void))
{
    prepare(plan);
    struct property_setup setup = setup_of(plan, index, results_record(plan->shared, index));
    setup.load = results_load(plan->shared);
    setup.at_end = at_end; /* without a limit: a debugger's user takes their time */
    run_alone(plan, &setup);
}

_Noreturn void worker_run_logged(const struct plan *plan, size_t index, struct record *record,
                                 struct call_log *log)
{
    struct rlimit no_core = {0, 0};
    prepare(plan);
    struct property_setup setup = setup_of(plan, index, record);
    setup.limit = plan->options->timeout;
    setup.log = log;
    setrlimit(RLIMIT_CORE, &no_core);
    reset_signals();
    run_alone(plan, &setup);
}
