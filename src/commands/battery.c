/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Starting workers, watching them, and completing what they leave behind.
 */
#include "commands/battery.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/instrumented.h"
#include "base/random.h"
#include "base/text.h"
#include "model/attribution.h"
#include "python/python_path.h"
#include "report/report.h"
#include "runner/memcheck.h"
#include "runner/worker.h"
#include "subject/static_tls.h"
#include "supervise/child.h"
#include "supervise/children.h"
#include "supervise/interrupt.h"
#include "supervise/loaded.h"

/* The first property, which the others wait for. */
#define FIRST_PROPERTY "abi.loads"

/* Tells the program that valgrind runs where the reports go. */
#define MEMCHECK_FOLDER "CONFORM_MEMCHECK_FOLDER"

static const double usual_timeout = 10, memcheck_timeout = 120;

/* Seconds for a whole round, of which a sound handler on a quiet machine takes one or two. */
static const double usual_time = 60, memcheck_time = 1200;

struct one_worker {
    pid_t pid; /* 0: not running */
    int wakeup;
    uint64_t since; /* when it was started */
    bool hung;      /* it has been killed for that */
};

struct coordinator {
    const struct options *options;
    char **argv;
    struct subject_place place;
    struct plan plan;
    struct run run;
    const struct property **properties; /* the first one is FIRST_PROPERTY */
    bool first_is_implied;              /* it was not asked for */
    struct report_files *files;
    struct one_worker workers[MOST_WORKERS];
    size_t jobs, restarts;
    struct record *kept; /* of --repeat: for each property, the worst so far */
    size_t rounds;
    uint64_t begin;
};

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (memory == NULL)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    return memory;
}

/* ---- what to run ------------------------------------------------------------------------ */

static void choose_properties(struct coordinator *c)
{
    size_t all;
    const struct property *const *properties = property_all(&all);
    c->properties = allocate(all + 1, sizeof *c->properties);
    const struct property *first = property_find(FIRST_PROPERTY);
    size_t count = 0;
    if (first == NULL)
        leave_with(EXIT_HARNESS_BROKE, "the property %s is missing", FIRST_PROPERTY);
    c->first_is_implied = !options_take(c->options, FIRST_PROPERTY);
    c->properties[count++] = first;
    for (size_t i = 0; i < all; i++) {
        if (properties[i] != first && options_take(c->options, properties[i]->id))
            c->properties[count++] = properties[i];
    }
    if (count == 1 && c->first_is_implied)
        leave_with(EXIT_USAGE, "no property is left by --run and --skip; see conform --list");
    c->plan.properties = c->properties;
    c->plan.count = count;
}

static void make_queues(struct plan *plan)
{
    plan->fresh = allocate(plan->count, sizeof *plan->fresh);
    plan->python = allocate(plan->count, sizeof *plan->python);
    for (size_t i = 1; i < plan->count; i++) {
        if (plan->properties[i]->fixture == FIXTURE_FRESH)
            plan->fresh[plan->fresh_count++] = i;
        else
            plan->python[plan->python_count++] = i;
    }
}

static void shuffle(size_t *queue, size_t count, struct random *random)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = random_below(random, i), kept = queue[i - 1];
        queue[i - 1] = queue[other];
        queue[other] = kept;
    }
}

static const char *checked_python(const char *path)
{
    char *absolute;
    const char *wrong = python_path_check(path, &absolute);
    if (wrong != NULL && interrupt_came() != 0)
        interrupt_die(); /* that may be why */
    if (wrong != NULL)
        leave_with(EXIT_USAGE, "--python=%s: %s", text_safe(path), wrong);
    return absolute;
}

static size_t cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
}

/* A worker costs a start of Python, about as much as thirty properties. */
static size_t choose_jobs(const struct coordinator *c)
{
    size_t jobs = c->options->jobs != 0 ? c->options->jobs : cores();
    size_t useful = 1 + c->plan.python_count / 8;
    if (useful == 1 && c->plan.fresh_count > 0 && c->plan.python_count > 0)
        useful = 2;
    jobs = jobs < useful ? jobs : useful;
    return jobs < MOST_WORKERS ? jobs : MOST_WORKERS;
}

/* ---- workers ---------------------------------------------------------------------------- */

static void start_worker(struct coordinator *c, size_t number, bool fresh)
{
    int wakeup[2];
    if (pipe2(wakeup, O_CLOEXEC | O_NONBLOCK) != 0)
        leave_with(EXIT_HARNESS_BROKE, "no pipe for a worker: %s", strerror(errno));
    pid_t pid = child_fork(true);
    if (pid < 0)
        leave_with(EXIT_HARNESS_BROKE, "no process for a worker: %s", strerror(errno));
    if (pid == 0) {
        close(wakeup[0]);
        worker_run(&c->plan, number, fresh, wakeup[1]);
    }
    close(wakeup[1]);
    c->workers[number] = (struct one_worker){.pid = pid, .wakeup = wakeup[0], .since = clock_now()};
}

/* What a worker had in hand when it died, or when it had to be killed, gets its verdict here. */
static void complete(struct coordinator *c, size_t number, const char *how, enum verdict verdict)
{
    struct board *board = c->plan.board;
    size_t index = atomic_exchange(&board->workers[number].property, 0);
    if (index == 0)
        return;
    struct record *record = board_record(board, index - 1);
    if (record->verdict != VERDICT_NONE)
        return;
    record->signal = 0;
    worker_describe_crash(record, how);
    record->seconds = clock_since(atomic_load(&board->workers[number].since));
    record->verdict = verdict;
    atomic_fetch_add(&board->finished, 1);
}

/* Ends what dead workers have left to this process: properties, and what those have left. */
static void end_orphans(const struct coordinator *c)
{
    pid_t workers[MOST_WORKERS];
    for (size_t i = 0; i < c->jobs; i++)
        workers[i] = c->workers[i].pid;
    children_end(workers, c->jobs);
}

static void worker_ended(struct coordinator *c, size_t number, int status)
{
    struct board *board = c->plan.board;
    bool hung = c->workers[number].hung;
    close(c->workers[number].wakeup);
    c->workers[number] = (struct one_worker){0};
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    end_orphans(c);
    bool in_hand = atomic_load(&board->workers[number].property) != 0;
    if (hung && !in_hand && atomic_load(&board->environment_known) == 0)
        snprintf(board->python_error, sizeof board->python_error,
                 "it does not come back from its start");
    if (board->python_error[0] != '\0') {
        atomic_store(&board->abandoned, 1);
        return;
    }
    const char *how =
        hung ? "the worker did not come back"
        : WIFSIGNALED(status)
            ? text("it took the worker down with it (%s)", child_signal_name(WTERMSIG(status)))
            : text("it took the worker down with it (status %d)", WEXITSTATUS(status));
    if (hung)
        atomic_fetch_add(&board->timeouts, 1);
    complete(c, number, how, hung ? TIMEOUT : CRASH);
    if (in_hand || ++c->restarts < 3)
        start_worker(c, number, false);
    else
        atomic_store(&board->abandoned, 1);
}

/* Whether a worker has not ended its property in time, or, where it is starting Python or waiting
 * for the first verdict, has not got on when the whole run was to be over. */
static bool is_hung(const struct coordinator *c, size_t number)
{
    struct board *board = c->plan.board;
    double grace = 2 + c->plan.timeout / 10; /* memcheck makes all slow */
    if (atomic_load(&board->workers[number].property) != 0)
        return clock_now() > atomic_load(&board->workers[number].until) + (uint64_t)(grace * 1e9);
    double most = c->plan.max_time * (c->plan.max_time_is_given ? 1 : worker_slowness());
    return clock_since(c->workers[number].since) > c->plan.timeout + grace &&
           clock_since(c->plan.begin) > most + grace;
}

/* A worker ends a property that takes too long; this is for a worker that does not come back. */
static void end_hung_workers(struct coordinator *c)
{
    for (size_t i = 0; i < c->jobs; i++) {
        struct one_worker *worker = &c->workers[i];
        if (worker->pid == 0 || worker->hung || !is_hung(c, i))
            continue;
        worker->hung = true;
        kill(worker->pid, SIGKILL);
    }
}

static bool is_smart_terminal(int fd)
{
    const char *term = getenv("TERM");
    return isatty(fd) && term != NULL && strcmp(term, "dumb") != 0;
}

static void show_progress(const struct coordinator *c)
{
    struct board *board = c->plan.board;
    if (!c->plan.shows_progress)
        return;
    const char *id = "starting Python";
    for (size_t i = 0; i < c->jobs; i++) {
        size_t property = atomic_load(&board->workers[i].property);
        if (property != 0)
            id = c->properties[property - 1]->id;
    }
    fprintf(stderr, "\r\033[K[%zu/%zu] %s", atomic_load(&board->finished), c->plan.count, id);
}

static void clear_progress(const struct coordinator *c)
{
    if (c->plan.shows_progress)
        fputs("\r\033[K", stderr);
}

/* One round: waits until something has happened, and looks after all workers.  The number of
 * those that still run. */
static size_t watch(struct coordinator *c)
{
    struct pollfd bells[MOST_WORKERS];
    size_t count = 0;
    for (size_t i = 0; i < c->jobs; i++) {
        if (c->workers[i].pid != 0)
            bells[count++] = (struct pollfd){.fd = c->workers[i].wakeup, .events = POLLIN};
    }
    poll(bells, count, 200);
    show_progress(c);
    size_t running = 0;
    for (size_t i = 0; i < c->jobs; i++) {
        char rung[64];
        int status;
        if (c->workers[i].pid == 0)
            continue;
        while (read(c->workers[i].wakeup, rung, sizeof rung) > 0)
            continue;
        if (waitpid(c->workers[i].pid, &status, WNOHANG) == c->workers[i].pid)
            worker_ended(c, i, status);
        running += c->workers[i].pid != 0;
    }
    end_hung_workers(c);
    return running;
}

/* What was known when the signal came is reported, and marked as a part. */
static void end_all(struct coordinator *c)
{
    for (size_t i = 0; i < c->jobs; i++) {
        if (c->workers[i].pid == 0)
            continue;
        kill(c->workers[i].pid, SIGKILL);
        waitpid(c->workers[i].pid, NULL, 0);
        close(c->workers[i].wakeup);
        c->workers[i] = (struct one_worker){0};
        complete(c, i, "interrupted", INCOMPLETE);
    }
    end_orphans(c);
    c->run.interrupted = true;
}

static void run_workers(struct coordinator *c)
{
    struct board *board = c->plan.board;
    children_adopt();
    c->plan.begin = clock_now();
    for (size_t i = 0; i < c->jobs; i++)
        start_worker(c, i, i > 0 && i == c->jobs - 1);
    for (;;) {
        size_t running = watch(c);
        if (interrupt_came() != 0) {
            end_all(c);
            break;
        }
        if (running > 0)
            continue;
        if (atomic_load(&board->next_fresh) >= c->plan.fresh_count ||
            !worker_subject_lives(board) || board->python_error[0] != '\0')
            break;
        start_worker(c, 0, true); /* a lone worker has Python running already */
    }
    clear_progress(c);
}

/* ---- the end ---------------------------------------------------------------------------- */

/* Every property has a verdict, also those that no worker came to. */
static void complete_all(struct coordinator *c)
{
    bool lives = worker_subject_lives(c->plan.board) || c->run.interrupted ||
                 board_record(c->plan.board, 0)->verdict == VERDICT_NONE; /* nobody looked */
    for (size_t i = 0; i < c->plan.count; i++) {
        struct record *record = board_record(c->plan.board, i);
        if (record->verdict != VERDICT_NONE)
            continue;
        record->verdict = c->run.interrupted ? INCOMPLETE : lives || i == 0 ? BROK : SKIP;
        snprintf(record->seen, sizeof record->seen, "%s",
                 c->run.interrupted ? "not run: interrupted"
                 : lives || i == 0  ? "no worker was left to run it"
                                    : "not run: the handler did not survive " FIRST_PROPERTY);
    }
}

static void fill_run(struct coordinator *c)
{
    struct board *board = c->plan.board;
    /* asked for or not, a first property that did not pass is in the report */
    const struct record *first = c->kept != NULL ? &c->kept[0] : board_record(board, 0);
    size_t from = c->first_is_implied && first->verdict == PASS ? 1 : 0;
    struct run *run = &c->run;
    run->options = c->options;
    run->place = &c->place;
    load_make_sound(board_load(board));
    run->load = board_load(board);
    run->environment = &board->environment;
    run->python = c->plan.python_path;
    run->tunables = static_tls_is_wide() ? STATIC_TLS_TUNABLE : NULL;
    run->properties = c->properties + from;
    run->count = c->plan.count - from;
    run->records = allocate(run->count, sizeof *run->records);
    for (size_t i = 0; i < run->count; i++)
        run->records[i] = c->kept != NULL ? &c->kept[from + i] : board_record(board, from + i);
    run->rounds = c->rounds;
    run->seconds = clock_since(c->begin);
}

static bool wants_color(const struct options *options)
{
    const char *no_color = getenv("NO_COLOR");
    if (options->color != COLOR_AUTO)
        return options->color == COLOR_ALWAYS;
    return is_smart_terminal(STDOUT_FILENO) && (no_color == NULL || *no_color == '\0');
}

static enum exit_code report(struct coordinator *c)
{
    const struct load *load = c->run.load;
    enum exit_code code = run_exit_code(&c->run);
    report_files_write(c->files, &c->run);
    loaded_or_leave(c->place.argument, atomic_load(&load->state), load->why);
    bool told = report_files_take_stdout(c->options) ||
                report_text(stdout, &c->run, wants_color(c->options)) == 0;
    bool interrupted = c->run.interrupted || (!told && interrupt_came() != 0);
    if (interrupted && c->plan.memcheck_folder != NULL)
        interrupt_die_silently(); /* run_under_memcheck says it */
    if (interrupted)
        interrupt_die();
    if (!told)
        leave_with(EXIT_HARNESS_BROKE, "stdout cannot be written: %s", strerror(errno));
    return code;
}

static void start_memcheck_again(char **argv, void *data)
{
    const char *folder = data;
    setenv(MEMCHECK_FOLDER, folder, 1);
    leave_with(EXIT_HARNESS_BROKE, "--memcheck: %s", memcheck_start(argv, folder));
}

/* Does not come back where that lets the subject load. */
static void start_again_for_static_tls(struct coordinator *c)
{
    struct load *load = board_load(c->plan.board);
    int state = atomic_load(&load->state);
    load_make_sound(load);
    if ((state != LOAD_FAILED && state != LOAD_UNFIT) || !static_tls_was_short(load->why) ||
        interrupt_came() != 0)
        return;
    report_files_pass_on(c->files);
    if (c->plan.memcheck_folder != NULL)
        static_tls_start_again(c->argv, start_memcheck_again, (void *)c->plan.memcheck_folder);
    else
        static_tls_start_again(c->argv, NULL, NULL);
}

static struct coordinator *here; /* of --no-fork: for at_end, which gets no argument */

static void end_here(void)
{
    struct record *record = board_record(here->plan.board, 0);
    start_again_for_static_tls(here);
    record->verdict = record->reached;
    here->first_is_implied = false;
    here->rounds = 1;
    fill_run(here);
    fflush(stdout);
    enum exit_code code = report(here);
    fflush(NULL);
    _exit(code);
}

static _Noreturn void run_here(struct coordinator *c)
{
    size_t first = c->first_is_implied ? 1 : 0;
    if (c->plan.count - first != 1)
        leave_with(EXIT_USAGE, "--no-fork runs one property, and %zu are chosen; say --run=ID",
                   c->plan.count - first);
    c->properties += first;
    c->plan.properties = c->properties;
    c->plan.count = 1;
    here = c;
    interrupt_reset();
    if (interrupt_came() != 0)
        interrupt_die();
    worker_run_here(&c->plan, 0, end_here);
}

/* What interrupts this process goes on to the one under valgrind, again and again: it may come when
 * nobody there listens yet. */
static bool pass_interrupt_on(void *data)
{
    if (interrupt_came() != 0)
        kill(*(pid_t *)data, interrupt_came());
    return false;
}

/* Runs this program again, under valgrind, and leaves as it does.  This process stays to clear up
 * behind it: valgrind takes a second before there is anybody in it who could. */
static _Noreturn void run_under_memcheck(char **argv)
{
    char folder[PATH_MAX];
    int status = 0;
    if (memcheck_make_folder(folder, sizeof folder) != 0)
        leave_with(EXIT_HARNESS_BROKE, "--memcheck: %s: %s; set TMPDIR", folder, strerror(errno));
    pid_t pid = child_fork(false);
    if (pid == 0) {
        setenv(MEMCHECK_FOLDER, folder, 1);
        leave_with(EXIT_HARNESS_BROKE, "--memcheck: %s", memcheck_start(argv, folder));
    }
    if (pid > 0)
        child_wait(pid, pass_interrupt_on, &pid, &status);
    const char *refusal = memcheck_refusal(folder, pid);
    memcheck_remove_folder(folder);
    if (pid < 0)
        leave_with(EXIT_HARNESS_BROKE, "--memcheck: no process for it: %s", strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 1 && refusal != NULL)
        leave_with(EXIT_HARNESS_BROKE, "--memcheck: valgrind did not start: %s",
                   *refusal != '\0' ? text_safe(refusal) : "it says why above");
    if (WIFEXITED(status))
        exit(WEXITSTATUS(status));
    if (interrupt_came() == 0)
        leave_with(EXIT_HARNESS_BROKE, "--memcheck: valgrind died of %s",
                   child_signal_name(WTERMSIG(status)));
    interrupt_die();
}

/* Comes back in the process that valgrind runs. */
static void enter_memcheck(struct coordinator *c, char **argv)
{
    const char *folder = getenv(MEMCHECK_FOLDER);
    if (!memcheck_is_running() || folder == NULL)
        run_under_memcheck(argv);
    memcheck_note_begun(folder);
    c->plan.memcheck_folder = strdup(folder);
    if (c->plan.memcheck_folder == NULL)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    unsetenv(MEMCHECK_FOLDER);
}

static void set_up(struct coordinator *c, char **argv)
{
    const char *wrong = subject_find(c->options->handler, &c->place);
    if (wrong != NULL)
        leave_with(EXIT_CANNOT_LOAD, "%s", wrong);
    choose_properties(c);
    make_queues(&c->plan);
    c->plan.python_path =
        c->options->python != NULL ? checked_python(c->options->python) : DEFAULT_PYTHON;
    if (c->options->memcheck)
        enter_memcheck(c, argv);
    c->plan.shows_progress = is_smart_terminal(STDERR_FILENO) && !c->options->quiet;
    c->plan.timeout_is_given = c->options->timeout != 0;
    c->plan.timeout = c->options->timeout != 0 ? c->options->timeout
                      : memcheck_is_running()  ? memcheck_timeout
                                               : usual_timeout;
    c->plan.max_time = c->options->max_time != 0 ? c->options->max_time
                       : memcheck_is_running()   ? memcheck_time
                                                 : usual_time;
    c->plan.max_time_is_given = c->options->max_time != 0;
    c->plan.seed = c->options->seed;
    c->plan.place = &c->place;
    if (c->place.module == NULL && object_file_sha256(c->place.path, c->run.sha256) != 0)
        leave_with(EXIT_CANNOT_LOAD, "%s: %s", text_safe(c->place.argument), strerror(errno));
    c->plan.board = board_create(c->plan.count);
    if (c->plan.board == NULL)
        leave_with(EXIT_HARNESS_BROKE, "no memory to share with the workers: %s", strerror(errno));
    c->files = report_files_open(c->options);
    c->jobs = choose_jobs(c);
}

/* How much a verdict says against the handler: of all rounds, the worst one is told. */
static int weight(enum verdict verdict)
{
    static const int weights[VERDICT_COUNT] = {
        [SKIP] = 1, [WARN] = 2,    [INCOMPLETE] = 3, [BROK] = 4,
        [FAIL] = 5, [TIMEOUT] = 6, [CRASH] = 7};
    return weights[verdict];
}

/* Adds the round on the board to what is kept of the earlier ones.  True where it was bad. */
static bool keep_round(struct coordinator *c)
{
    bool bad = false;
    if (c->kept == NULL)
        c->kept = allocate(c->plan.count, sizeof *c->kept);
    for (size_t i = 0; i < c->plan.count; i++) {
        const struct record *record = board_record(c->plan.board, i);
        size_t bad_rounds =
            c->kept[i].bad_rounds + (record->verdict != PASS && record->verdict != SKIP);
        size_t skipped_rounds = c->kept[i].skipped_rounds + (record->verdict == SKIP);
        bad = bad || (verdict_is_bad(record->verdict) &&
                      (c->properties[i]->target == TARGET_HANDLER || record->verdict == BROK));
        if (c->rounds == 0 || weight(record->verdict) > weight(c->kept[i].verdict))
            c->kept[i] = *record;
        c->kept[i].bad_rounds = bad_rounds;
        c->kept[i].skipped_rounds = skipped_rounds;
    }
    c->rounds++;
    return bad;
}

/* What was skipped now and then has to say so: elsewhere it passed. */
static void tell_rare_skips(struct coordinator *c)
{
    for (size_t i = 0; c->kept != NULL && i < c->plan.count; i++) {
        struct record *record = &c->kept[i];
        size_t used = strnlen(record->seen, sizeof record->seen - 1);
        if (record->verdict == SKIP && record->skipped_rounds < c->rounds)
            snprintf(record->seen + used, sizeof record->seen - used, " (in %zu of %zu rounds)",
                     record->skipped_rounds, c->rounds);
    }
}

/* Attributes what is not a property's own matter, and makes sure that nobody was let off. */
static void settle(struct coordinator *c)
{
    struct board *board = c->plan.board;
    if (attribution_settle(c->properties, c->plan.count, board) != 0)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    const char *id = attribution_unsettled(c->properties, c->plan.count, board);
    for (size_t i = 0; id != NULL && i < c->plan.count; i++) {
        struct record *record = board_record(board, i);
        if (strcmp(c->properties[i]->id, id) != 0)
            continue;
        record->verdict = BROK;
        snprintf(record->seen, sizeof record->seen, "nobody answers for what ended it");
    }
}

/* All rounds that were asked for.  The load report and the environment are those of the last. */
static void run_rounds(struct coordinator *c)
{
    const struct options *options = c->options;
    size_t most = options->repeat != 0 ? options->repeat : options->until_fail ? SIZE_MAX : 1;
    struct random random = random_for(options->seed, "shuffle");
    for (;;) {
        if (options->shuffle) {
            shuffle(c->plan.fresh, c->plan.fresh_count, &random);
            shuffle(c->plan.python, c->plan.python_count, &random);
        }
        run_workers(c);
        if (c->plan.board->python_error[0] != '\0')
            return;
        complete_all(c);
        settle(c);
        bool bad = keep_round(c);
        if (c->rounds >= most || (bad && options->until_fail) || c->run.interrupted ||
            atomic_load(&board_load(c->plan.board)->state) != LOAD_DONE)
            return;
        board_clear(c->plan.board);
    }
}

enum exit_code battery_run(const struct options *options, char **argv)
{
    static struct coordinator coordinator;
    struct coordinator *c = &coordinator;
    c->options = options;
    c->argv = argv;
    c->begin = clock_now();
    child_prepare();
    interrupt_catch();
    signal(SIGPIPE, SIG_IGN); /* whoever closes stdout is told, and the other reports are written */
    set_up(c, argv);
    if (options->command == COMMAND_NO_FORK)
        run_here(c);
    run_rounds(c);
    if (c->plan.board->python_error[0] != '\0')
        leave_with(EXIT_HARNESS_BROKE, "%s cannot be embedded: %s; name another by --python",
                   text_safe(c->plan.python_path), c->plan.board->python_error);
    start_again_for_static_tls(c);
    tell_rare_skips(c);
    fill_run(c);
    return report(c);
}
