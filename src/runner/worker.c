/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Running properties, each as a test of Check's in a process of its own.  How that ended is what
 * the kernel says; the verdict lives in the record that it fills in, for a process may call exit(0)
 * half-way.
 */
#include "runner/worker.h"

#include <check.h>
#undef fail /* an old name of ck_abort_msg */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/instrumented.h"
#include "base/text.h"
#include "harness/drive.h"
#include "harness/limits.h"
#include "harness/python_module.h"
#include "python/python.h"
#include "python/python_half.h"
#include "runner/ending.h"
#include "runner/memcheck_judge.h"
#include "subject/plain.h"
#include "supervise/child.h"
#include "supervise/children.h"
#include "supervise/interrupt.h"

/* Check handles them while a test runs. */
static const int checks_signals[] = {SIGALRM, SIGINT, SIGTERM};
enum { CHECKS_SIGNALS = sizeof checks_signals / sizeof *checks_signals };

/* Why a property was ended from outside. */
enum given_up { NOT_GIVEN_UP, HANGS, OUT_OF_TIME };

/* The properties that a worker takes, in one run of Check's. */
struct round {
    const size_t *queue;
    size_t count;
    _Atomic size_t *next; /* of the queue, for all workers */
    bool is_fresh, has_taken_one, is_over;
    int wakeup;
};

/* What the process of a property has to know, and Check's test; that is passed nothing. */
static struct {
    const struct plan *plan;
    size_t number, index;
    struct record *record; /* that of the property, or another one where a control runs it */
    bool is_control;
    int output[2]; /* pipe: what the property prints */
    int nothing;   /* /dev/null, to read from */
    bool python_up;
    struct environment python; /* once it is up */
    sigset_t not_default;      /* the signals that a property's process has to reset */
    struct sigaction actions[CHECKS_SIGNALS]; /* without Check's */
    char **environment;                       /* that of the property */
    double limit; /* seconds that a call may take, or the property without one */
    bool ran;     /* the process ended, or was ended, with that status */
    int error;    /* else why not */
    int status;
    enum given_up given_up;
    struct round round;
    SRunner *runner;
} worker;

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* What is enough by far for a property, going by those of its fixture that have ended; they have
 * been as slow as the machine is. */
static double learned_limit(const struct plan *plan, const struct property *property, double slower)
{
    static const double least_part = 0.02, least = 0.2, of_programs = 1, times = 5;
    double slowest = (double)atomic_load(&plan->board->slowest[property->fixture]) / 1e9;
    bool programs = property->programs || property->fixture == FIXTURE_FRESH;
    double short_time = larger(programs ? of_programs : least, least_part * plan->timeout);
    return larger(times * slowest, short_time * slower);
}

double worker_time_limit(const struct plan *plan, const struct property *property)
{
    static const double parts[] = {1, 0.2, 0.2, 0.1};
    enum { LAST = sizeof parts / sizeof *parts - 1, MANY = 4 };
    int timeouts = atomic_load(&plan->board->timeouts);
    double slower = clock_slowness(), most = plan->timeout * (plan->timeout_is_given ? 1 : slower);
    double limit = plan->timeout * parts[timeouts < LAST ? timeouts : LAST] * slower;
    double learned = learned_limit(plan, property, slower);
    if (timeouts >= MANY && learned < limit)
        limit = learned;
    return limit < most ? limit : most;
}

static void learn_limit(struct board *board, enum fixture fixture, uint64_t nanoseconds)
{
    uint64_t slowest = atomic_load(&board->slowest[fixture]);
    while (nanoseconds > slowest &&
           !atomic_compare_exchange_weak(&board->slowest[fixture], &slowest, nanoseconds))
        continue;
}

bool worker_subject_lives(struct board *board)
{
    return board_record(board, 0)->verdict == PASS;
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

/* The property sees an empty input, its output goes into the pipe, and nothing else is open:
 * Check's own file neither, which a subject could otherwise write into. */
static void arrange_descriptors(void)
{
    dup2(worker.nothing, 0);
    dup2(worker.output[1], OUTPUT_FD);
    dup2(worker.output[1], 1);
    dup2(worker.output[1], 2);
    close_descriptors(3, OUTPUT_FD - 1);
    close_descriptors(OUTPUT_FD + 1, ~0u);
    fcntl(OUTPUT_FD, F_SETFD, FD_CLOEXEC);
}

static const struct subject_place *place_of(const struct plan *plan)
{
    return &plan->places[atomic_load(&plan->board->handler)];
}

static uint64_t seed_of(const struct plan *plan, const struct property *property)
{
    return property->daily ? plan->daily_seed : plan->seed;
}

static void begin_in_child(void)
{
    const struct plan *plan = worker.plan;
    reset_signals();
    arrange_descriptors();
    bool first = worker.index == 0;
    struct drive_setup setup = {
        .property = plan->properties[worker.index],
        .place = worker.is_control ? plain_place() : place_of(plan),
        .record = worker.record,
        .load = first && !worker.is_control ? board_load(plan->board) : NULL,
        .seed = seed_of(plan, plan->properties[worker.index]),
        .limit = worker.limit,
        .python_path = plan->python_path,
        .scratch = plan->scratch,
        .data_races = plan->data_races,
    };
    board_fence(plan->board, worker.index, first);
    if (worker.python_up)
        python_after_fork_child();
    memcheck_listen_again();
    drive_begin(&setup);
}

static _Noreturn void run_property(const struct property *property)
{
    if (property->fixture != FIXTURE_FRESH && property->fixture != FIXTURE_UNLOADED)
        drive_load_subject();
    if (property->fixture == FIXTURE_BARE && python_is_up())
        python_release();
    property->run();
    pass();
}

/* ---- in the worker ---------------------------------------------------------------------- */

static enum verdict judge_end(struct record *record, int status, enum given_up given_up)
{
    bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (given_up == NOT_GIVEN_UP && ended && atomic_load(&record->state) == RECORD_ENDED) {
        ending_make_sound(record);
        return record->reached;
    }
    record->signal = given_up == NOT_GIVEN_UP && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (given_up == OUT_OF_TIME) {
        record->expected[0] = '\0';
        snprintf(record->seen, sizeof record->seen,
                 "it got on, and the %g s of the whole run were over; give it more by --max-time",
                 worker.plan->max_time);
        return INCOMPLETE;
    }
    if (given_up == HANGS) {
        ending_describe(record, text("no end after %.3g s", worker.limit));
        atomic_fetch_add(&worker.plan->board->timeouts, 1);
        return TIMEOUT;
    }
    if (record->signal == 0 && ending_by_sanitizer(record))
        return FAIL;
    record->by_checker = sanitizer_is_running() && record->signal == 0 ? FOUND_ERROR : NO_CHECKER;
    ending_describe(record, record->signal != 0
                                ? child_signal_name(record->signal)
                                : text("the process exited with status %d", WEXITSTATUS(status)));
    return CRASH;
}

/* Takes what was printed out of the pipe; more than a pipe holds was refused to the writer.  A
 * process that the property left behind can still write to the record, so that nothing is read
 * there. */
static void keep_output(struct record *record)
{
    char buffer[4096];
    ssize_t length;
    size_t printed = 0;
    while ((length = read(worker.output[0], buffer, sizeof buffer)) > 0) {
        size_t room = printed < sizeof record->output ? sizeof record->output - printed : 0;
        memcpy(record->output + (sizeof record->output - room), buffer,
               (size_t)length < room ? (size_t)length : room);
        printed += (size_t)length;
    }
    record->output_length = printed;
    close(worker.output[0]);
    close(worker.output[1]);
}

/* On a machine that has become busy meanwhile, later. */
static bool time_of_run_is_over(const struct plan *plan)
{
    double taken = clock_since(atomic_load(&plan->board->begin));
    return plan->max_time > 0 && taken > plan->max_time &&
           (plan->max_time_is_given || taken > plan->max_time * clock_slowness());
}

/* How far a property has got, as its record shows. */
struct progress {
    uint64_t since[CALL_SLOTS]; /* when the thread's latest call began, or was first seen */
    unsigned calls[CALL_SLOTS];
    uint64_t any; /* when anything was last seen to happen */
    enum given_up given_up;
};

/* One call that does not come back hangs, whatever else goes on, and so does a property that makes
 * none.  Any other gets on, and has the time that the whole run has; so has Python while it starts
 * in there, which without a GIL and on a busy machine may take it a minute. */
static bool is_to_end(void *data)
{
    struct progress *progress = data;
    const struct record *record = worker.record;
    uint64_t now = clock_now(), limit = (uint64_t)(worker.limit * 1e9);
    for (size_t i = 0; i < CALL_SLOTS; i++) {
        unsigned made = record->made[i];
        if (made == 0)
            continue; /* nobody wrote there yet, and looking would have a page made */
        if (made != progress->calls[i])
            progress->since[i] = progress->any = now;
        else if (record->calls[i].function != OUTSIDE && now - progress->since[i] > limit)
            progress->given_up = HANGS;
        progress->calls[i] = made;
    }
    if (atomic_load(&record->python_starts) != 0)
        progress->any = now;
    if (now - progress->any > limit)
        progress->given_up = HANGS;
    else if (time_of_run_is_over(worker.plan))
        progress->given_up = OUT_OF_TIME;
    atomic_store(&worker.plan->board->workers[worker.number].until, progress->any + limit);
    return progress->given_up != NOT_GIVEN_UP;
}

/* Forks the property's process, between CPython's fences, and waits for its end.  Whatever it
 * leaves in its group ends with it. */
static void fork_and_wait(void)
{
    worker.ran = false;
    worker.given_up = NOT_GIVEN_UP;
    struct progress progress = {.any = clock_now()};
    if (worker.python_up)
        python_before_fork();
    pid_t pid = child_fork(true);
    if (pid == 0) {
        begin_in_child();
        run_property(drive_property());
    }
    worker.error = errno;
    if (worker.python_up)
        python_after_fork_parent();
    if (pid < 0)
        return;
    worker.ran = child_wait(pid, is_to_end, &progress, &worker.status) >= 0;
    worker.given_up = progress.given_up;
    kill(-pid, SIGKILL);
}

/* Runs the property in a process of its own, which fills in worker.record, and waits for it. */
static enum verdict run_in_process(void)
{
    struct record *record = worker.record;
    if (pipe2(worker.output, O_NONBLOCK | O_CLOEXEC) != 0) {
        snprintf(record->seen, sizeof record->seen, "no pipe: %s", strerror(errno));
        return BROK;
    }
    fork_and_wait();
    if (!worker.ran)
        snprintf(record->seen, sizeof record->seen, "no process for it: %s",
                 strerror(worker.error));
    keep_output(record);
    children_end(NULL, 0); /* what it left running outside its process group */
    return worker.ran ? judge_end(record, worker.status, worker.given_up) : BROK;
}

/* Runs the property on libc's allocator; for memcheck_judge. */
static const struct record *run_control(void)
{
    static struct board *board;
    struct record *kept = worker.record;
    if (board == NULL && (board = board_create(1)) == NULL)
        return NULL;
    board_clear(board);
    worker.record = board_record(board, 0);
    worker.is_control = true;
    worker.record->verdict = run_in_process();
    worker.record = kept;
    worker.is_control = false;
    return board_record(board, 0);
}

static enum verdict judge_memcheck(enum verdict verdict)
{
    struct memcheck_case property = {
        .folder = worker.plan->memcheck_folder,
        .run_control = run_control,
    };
    return property.folder != NULL ? memcheck_judge(&property, worker.record, verdict) : verdict;
}

static void run_property_once(size_t index)
{
    struct board *board = worker.plan->board;
    const struct property *property = worker.plan->properties[index];
    struct record *record = board_record(board, index);
    worker.index = index;
    worker.record = record;
    if (worker.python_up &&
        (property->fixture == FIXTURE_PYTHON || property->fixture == FIXTURE_UNLOADED))
        python_half_prepare(property->id, strcspn(property->id, "."));
    uint64_t begin = clock_now();
    enum verdict verdict = run_in_process();
    record->seconds = clock_since(begin);
    if (verdict == PASS)
        learn_limit(board, property->fixture, clock_now() - begin);
    record->verdict = judge_memcheck(verdict);
}

/* What there is no time left for is not begun. */
static bool is_too_late(const struct plan *plan, size_t index)
{
    struct record *record = board_record(plan->board, index);
    if (index == 0 || !time_of_run_is_over(plan))
        return false;
    snprintf(record->seen, sizeof record->seen,
             "not run: the %g s of the whole run were over; give it more by --max-time",
             plan->max_time);
    record->not_run = 1;
    record->verdict = INCOMPLETE;
    atomic_fetch_add(&plan->board->finished, 1);
    return true;
}

static void wake(void)
{
    if (write(worker.round.wakeup, "", 1) < 0 && errno == EPIPE)
        _exit(4); /* the coordinator is gone */
}

static void take(size_t index)
{
    struct board *board = worker.plan->board;
    size_t number = worker.number;
    uint64_t since = clock_now();
    if (is_too_late(worker.plan, index))
        return;
    atomic_store(&board->workers[number].since, since);
    worker.limit = worker_time_limit(worker.plan, worker.plan->properties[index]);
    atomic_store(&board->workers[number].until, since + (uint64_t)(worker.limit * 1e9));
    atomic_store(&board->workers[number].property, index + 1);
    run_property_once(index);
    atomic_store(&board->workers[number].property, 0);
    atomic_fetch_add(&board->finished, 1);
    if (worker.plan->shows_progress || index == 0)
        wake();
}

/* What Python prints when it does not start is a page of its configuration; the reason comes
 * back as one line. */
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
        snprintf(plan->board->python_error, sizeof plan->board->python_error, "%s", wrong);
        _exit(4);
    }
    worker.python_up = true;
    if (atomic_exchange(&plan->board->environment_known, 1) == 0)
        plan->board->environment = worker.python;
}

/* Waits until the first property has its verdict.  False where it shows a dead subject. */
static bool wait_for_first(struct board *board)
{
    while (board_record(board, 0)->verdict == VERDICT_NONE && atomic_load(&board->abandoned) == 0)
        nanosleep(&(struct timespec){0, 200000}, NULL);
    return worker_subject_lives(board);
}

/* The first worker sees to the first property.  Meanwhile the one that starts Python for each takes
 * one, and the others wait. */
static bool find_next(size_t *index)
{
    struct round *round = &worker.round;
    struct board *board = worker.plan->board;
    *index = 0;
    if (worker.number == 0 && board_record(board, 0)->verdict == VERDICT_NONE)
        return true;
    if ((round->has_taken_one || !round->is_fresh) && !wait_for_first(board))
        return false;
    size_t i = atomic_fetch_add(round->next, 1);
    round->has_taken_one = true;
    if (i < round->count)
        *index = round->queue[i];
    return i < round->count;
}

/* Check makes a small file for each test, in TEMP if that is set; it reads nothing else of the
 * environment, once forget_checks_variables is through.  In memory the file costs a third of what
 * it costs on a disk.  No test sees that TEMP. */
static void enter_check(void)
{
    static char temp[] = "TEMP=/dev/shm", *in_memory[] = {temp, NULL};
    worker.environment = environ;
    if (access("/dev/shm", W_OK | X_OK) == 0)
        environ = in_memory;
}

/* With what it changes as it was; the signals it changes once for a run. */
static void leave_check(bool is_first)
{
    for (size_t i = 0; i < CHECKS_SIGNALS && is_first; i++)
        sigaction(checks_signals[i], &worker.actions[i], NULL);
    environ = worker.environment;
}

/* The fork is in the test, and not the test in the process that is forked: there each page that
 * Check writes to would be copied.  It has as many turns as there are properties, and the other
 * workers take some. */
START_TEST(check_runs_property)
{
    size_t index;
    leave_check(_i == 0);
    worker.round.is_over = worker.round.is_over || !find_next(&index);
    if (!worker.round.is_over)
        take(index);
    enter_check();
}
END_TEST

static void make_runner(const struct plan *plan)
{
    /* What Check notes in that file is where the test is; it reads with twice as much room. */
    enum { FIRST = 1, NONE_IS_LEFT = 1, LONGEST_MESSAGE = 1024 };
    size_t most = FIRST + plan->python_count + plan->fresh_count + NONE_IS_LEFT;
    Suite *suite = suite_create("battery");
    TCase *tcase = tcase_create("property");
    tcase_add_loop_test(tcase, check_runs_property, 0, (int)most);
    suite_add_tcase(suite, tcase);
    worker.runner = srunner_create(suite);
    srunner_set_fork_status(worker.runner, CK_NOFORK); /* the test does it */
    check_set_max_msg_size(LONGEST_MESSAGE);
}

/* Check reads its own variables from the environment: some would leave properties out. */
static void forget_checks_variables(void)
{
    for (char **variable = environ; *variable != NULL;) {
        char name[64];
        if (strncmp(*variable, "CK_", 3) == 0 && sscanf(*variable, "%63[^=]", name) == 1 &&
            unsetenv(name) == 0)
            variable = environ;
        else
            variable++;
    }
}

/* Those that whoever started us ignores, and those of the coordinator.  SIGPIPE stays ignored. */
static void note_signals(void)
{
    sigemptyset(&worker.not_default);
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
            sigaddset(&worker.not_default, number);
    }
    sigdelset(&worker.not_default, SIGPIPE);
    for (size_t i = 0; i < CHECKS_SIGNALS; i++)
        sigaction(checks_signals[i], NULL, &worker.actions[i]);
}

static void prepare(const struct plan *plan)
{
    worker.plan = plan;
    note_signals();
    (void)is_instrumented(); /* asked here once, it need not be looked up in each process */
    forget_checks_variables();
    /* else OpenBLAS starts threads when NumPy is imported, and the worker could not fork */
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
}

/* valgrind takes it for a mistake where a process ends deaf. */
static _Noreturn void end_worker(int status)
{
    memcheck_listen_again();
    _exit(status);
}

static void run_round(const struct plan *plan, bool fresh, int wakeup)
{
    worker.round = (struct round){
        .queue = fresh ? plan->fresh : plan->python,
        .count = fresh ? plan->fresh_count : plan->python_count,
        .next = fresh ? &plan->board->next_fresh : &plan->board->next_python,
        .is_fresh = fresh,
        .wakeup = wakeup,
    };
    enter_check();
    srunner_run_all(worker.runner, CK_SILENT);
    environ = worker.environment;
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
static bool wait_for_round(struct board *board, size_t number, struct worker_pipes pipes)
{
    atomic_store(&board->rests[number], 1);
    return !(write(pipes.wakeup, "", 1) < 0 && errno == EPIPE) && wait_for_command(pipes);
}

/* Forks the workers that have pipes there.  The number of the one that it comes back in, or 0. */
static size_t fork_all(struct board *board, const struct worker_pipes *twins)
{
    for (size_t i = 1; i < WORKER_SLOTS; i++) {
        pid_t pid = twins[i].wakeup != 0 ? fork() : -1;
        if (pid == 0)
            return i;
        if (pid > 0)
            atomic_store(&board->twins[i], pid);
    }
    return 0;
}

/* Comes back in this worker, and in each of its twins when the coordinator tells that to begin:
 * number and pipes are its own there.  The process that forks them ends, which leaves them to the
 * coordinator. */
static void fork_twins(const struct worker_pipes *twins, size_t *number, struct worker_pipes *pipes)
{
    pid_t coordinator = getppid();
    size_t twin = 0;
    int status;
    children_adopt(false);
    if (worker.python_up)
        python_before_fork();
    pid_t between = child_fork(true);
    if (between == 0 && (twin = fork_all(worker.plan->board, twins)) == 0)
        end_worker(0);
    for (size_t i = 1; i < WORKER_SLOTS; i++) {
        if (twins[i].wakeup != 0 && i != twin)
            worker_close_pipes(&twins[i]);
    }
    if (between != 0) {
        if (worker.python_up)
            python_after_fork_parent();
        if (between > 0)
            child_wait(between, NULL, NULL, &status);
        return;
    }
    worker_close_pipes(pipes);
    *pipes = twins[twin];
    worker.number = *number = twin;
    setpgid(0, 0);
    child_prepare(); /* SIGCHLD was let through by child_fork */
    if (worker.python_up)
        python_after_fork_child();
    if (!wait_for_command(*pipes) || !child_is_adopted(coordinator))
        end_worker(0);
}

_Noreturn void worker_run(const struct plan *plan, size_t number, bool fresh,
                          struct worker_pipes pipes, const struct worker_pipes *twins)
{
    prepare(plan);
    memcheck_turn_deaf(); /* the worker is neither the handler's nor the property's */
    worker.number = number;
    child_prepare();
    children_adopt(true);
    signal(SIGPIPE, SIG_IGN);
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    worker.nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    make_runner(plan);
    if (!fresh && !plan->without_python)
        start_python(plan);
    if (twins != NULL)
        fork_twins(twins, &number, &pipes);
    children_adopt(true);
    do
        run_round(plan, fresh, pipes.wakeup);
    while (!fresh && wait_for_round(plan->board, number, pipes));
    end_worker(0);
}

_Noreturn void worker_run_here(const struct plan *plan, size_t index, void (*at_end)(void))
{
    prepare(plan);
    const struct property *property = plan->properties[index];
    struct drive_setup setup = {
        .property = property,
        .place = place_of(plan),
        .record = board_record(plan->board, index),
        .load = board_load(plan->board),
        .seed = seed_of(plan, property),
        .limit = 0, /* a debugger's user takes their time */
        .python_path = plan->python_path,
        .scratch = plan->scratch,
        .at_end = at_end,
    };
    if (property->fixture != FIXTURE_FRESH)
        start_python(plan);
    drive_begin(&setup);
    run_property(property);
}

_Noreturn void worker_run_logged(const struct plan *plan, size_t index, struct record *record,
                                 struct call_log *log)
{
    prepare(plan);
    const struct property *property = plan->properties[index];
    struct drive_setup setup = {
        .property = property,
        .place = place_of(plan),
        .record = record,
        .seed = seed_of(plan, property),
        .limit = plan->timeout,
        .python_path = plan->python_path,
        .scratch = plan->scratch,
        .log = log,
    };
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    reset_signals();
    if (property->fixture != FIXTURE_FRESH)
        start_python(plan);
    drive_begin(&setup);
    run_property(property);
}
