/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --bench: starts a process for each handler, and conform_report/bench.py, which measures with
 * these processes.
 */
#include "commands/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/install_path.h"
#include "base/text.h"
#include "bench/bench.h"
#include "commands/launch.h"
#include "python/api.h"
#include "python/python.h"
#include "report/present.h"
#include "report/report_files.h"
#include "subject/subject.h"
#include "supervise/child.h"
#include "supervise/interrupt.h"

/* NumPy's default handler, libc, and the handlers that were given. */
enum { BENCH_DEFAULT, BENCH_LIBC, BENCH_GIVEN, MOST_BENCHED = BENCH_GIVEN + 6 };

/* The first message of a handler's process. */
struct hello {
    enum load_state state;
    char wrong[256];  /* why the handler is not installed, or "" */
    char python[160]; /* "Python 3.13.5, NumPy 2.4.6" */
};

static struct server {
    struct subject_place place;
    const char *label;
    pid_t pid;
    int to, from;
    struct hello hello;
} servers[MOST_BENCHED];
static size_t count;

/* ---- in the process of a handler --------------------------------------------------------------
 */

/* Returns NULL, or what is wrong. */
static const char *load(const struct subject_place *place, const char *python,
                        struct subject *subject, struct hello *hello)
{
    static char why[256];
    struct environment environment = {0};
    const char *wrong = python_start(python, &environment);
    if (wrong == NULL)
        wrong = bench_prepare();
    if (wrong == NULL)
        wrong = python_import_array();
    if (wrong != NULL)
        return wrong;
    snprintf(hello->python, sizeof hello->python, "Python %s, NumPy %s", environment.python,
             environment.numpy);
    hello->state = place->module != NULL ? python_subject_load(place, subject, why, sizeof why)
                                         : subject_load(place, subject, why, sizeof why);
    if (hello->state != LOAD_DONE)
        return why;
    if (place->is_default)
        return NULL;
    PyObject *capsule = PyCapsule_New(subject->handler, "mem_handler", NULL);
    return capsule == NULL || PyDataMem_SetHandler(capsule) == NULL ? python_error() : NULL;
}

/* Footprints are measured in a fork, because the blocks of one round would be free in the next;
 * this process ends as the fork does. */
static void do_apart(const struct task *task, PyDataMem_Handler *handler, int to)
{
    int status = 0;
    pid_t pid = child_fork(false);
    if (pid == 0) {
        struct answer answer;
        bench_do(task, handler, &answer);
        _exit(write(to, &answer, sizeof answer) == sizeof answer ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        _exit(EXIT_FAILURE);
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    if (status != 0)
        _exit(WEXITSTATUS(status));
}

static _Noreturn void serve(const struct subject_place *place, const char *python, int from, int to)
{
    struct subject subject = {0};
    struct hello hello = {.state = LOAD_UNKNOWN};
    struct task task;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char *wrong = load(place, python, &subject, &hello);
    snprintf(hello.wrong, sizeof hello.wrong, "%s", wrong != NULL ? wrong : "");
    if (write(to, &hello, sizeof hello) != sizeof hello || wrong != NULL)
        _exit(EXIT_FAILURE);
    while (read(from, &task, sizeof task) == sizeof task) {
        struct answer answer;
        if (task.work == WORK_FOOTPRINT || task.work == WORK_LONG_REPLAY) {
            do_apart(&task, subject.handler, to);
            continue;
        }
        bench_do(&task, subject.handler, &answer);
        if (write(to, &answer, sizeof answer) != sizeof answer)
            break;
    }
    _exit(EXIT_SUCCESS);
}

/* ---- in the process of conform ----------------------------------------------------------------
 */

static void find_all(const struct options *options)
{
    const char *wrong = subject_find("default", &servers[BENCH_DEFAULT].place);
    servers[BENCH_LIBC].place = *plain_place();
    servers[BENCH_DEFAULT].label = "NumPy's default";
    servers[BENCH_LIBC].label = "libc";
    count = BENCH_GIVEN;
    if (options->handler_count > MOST_BENCHED - BENCH_GIVEN)
        leave_with(EXIT_USAGE, "--bench takes up to %d handlers", MOST_BENCHED - BENCH_GIVEN);
    for (size_t i = 0; i < options->handler_count && wrong == NULL; i++, count++) {
        wrong = subject_find(options->handlers[i], &servers[count].place);
        servers[count].label = servers[count].place.label;
    }
    if (wrong != NULL)
        leave_with(EXIT_CANNOT_LOAD, "%s", wrong);
}

static void start(struct server *server, const char *python)
{
    int there[2], back[2];
    if (pipe2(there, O_CLOEXEC) != 0 || pipe2(back, O_CLOEXEC) != 0)
        leave_with(EXIT_HARNESS_BROKE, "no pipe: %s", strerror(errno));
    server->pid = child_fork(true);
    if (server->pid < 0)
        leave_with(EXIT_HARNESS_BROKE, "no process: %s", strerror(errno));
    if (server->pid == 0) {
        close(there[1]);
        close(back[0]);
        serve(&server->place, python, there[0], back[1]);
    }
    close(there[0]);
    close(back[1]);
    server->to = dup(there[1]); /* without close-on-exec */
    server->from = dup(back[0]);
    close(there[1]);
    close(back[0]);
}

static void end_all(void)
{
    for (size_t i = 0; i < count; i++) {
        if (servers[i].pid > 0)
            kill(-servers[i].pid, SIGKILL);
    }
    children_end(NULL, 0);
}

static _Noreturn void end_and_die(void)
{
    end_all();
    interrupt_die();
}

/* A handler that is lost has broken its contract.  Without `why`, its process has ended. */
static enum exit_code report_loss(size_t lost, const char *loss, const char *why, const char *when)
{
    struct server *server = &servers[lost];
    int status = 0;
    if (interrupt_came() != 0)
        end_and_die();
    if (*why == '\0')
        why = waitpid(server->pid, &status, 0) != server->pid ? "it is gone"
              : WIFSIGNALED(status)                           ? child_signal_name(WTERMSIG(status))
                                    : text("the process exits with %d", WEXITSTATUS(status));
    end_all();
    printf("%-7s %s: %s%s%s; there are no figures\n", loss, text_safe(server->place.label),
           text_safe(why), *when != '\0' ? ", " : "", when);
    return lost < BENCH_GIVEN ? EXIT_HARNESS_BROKE : EXIT_NOT_CONFORMANT;
}

/* Seconds: NumPy's default handler and libc may take longer on a slow machine. */
static double limit_of(const struct options *options, size_t subject)
{
    static const double least = 10;
    return subject < BENCH_GIVEN ? MAX(options->timeout, least * clock_slowness())
                                 : options->timeout;
}

/* Waits until all are loaded.  Returns true, or false with the exit code in *code. */
static bool greet_all(const struct options *options, const struct launch *launch,
                      enum exit_code *code)
{
    for (size_t i = 0; i < count; i++) {
        struct server *server = &servers[i];
        struct pollfd answers = {server->from, POLLIN, 0};
        double limit = limit_of(options, BENCH_DEFAULT);
        uint64_t begun = clock_now();
        while (poll(&answers, 1, 50) <= 0 && interrupt_came() == 0 && clock_since(begun) <= limit)
            continue;
        if (interrupt_came() != 0 || answers.revents == 0) {
            *code = report_loss(i, "TIMEOUT", text("no end after %.3g s", limit), "loading it");
            return false;
        }
        if (read(server->from, &server->hello, sizeof server->hello) != sizeof server->hello) {
            *code = report_loss(i, "CRASH", "", "loading it");
            return false;
        }
        if (*server->hello.wrong == '\0')
            continue;
        if (i >= BENCH_GIVEN && server->hello.state != LOAD_DONE) {
            end_all();
            launch_again(launch, (int)server->hello.state, server->hello.wrong);
            loaded_or_leave(server->place.argument, (int)server->hello.state, server->hello.wrong);
        }
        *code = report_loss(i, "CRASH", server->hello.wrong, "");
        return false;
    }
    return true;
}

/* What bench.py needs to know. */
static json_t *describe(const struct options *options)
{
    bool quick = options->bench != NULL, given = options->max_time_is_given;
    json_t *processes = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(processes, json_pack("{s:s, s:i, s:i, s:i, s:f}", "label",
                                                   text_safe(servers[i].label), "pid",
                                                   (int)servers[i].pid, "to", servers[i].to, "from",
                                                   servers[i].from, "limit", limit_of(options, i)));
    json_t *value =
        json_pack("{s:o, s:s, s:s, s:b, s:b, s:f, s:f}", "processes", processes, "conform",
                  program_version, "python", text_safe(servers[BENCH_DEFAULT].hello.python),
                  "quick", quick, "quiet", options->quiet || report_files_take_stdout(options),
                  "seconds", quick && !given ? 9.0 : options->max_time, "limit",
                  given   ? 0.0
                  : quick ? 9.8
                          : 59.0);
    if (value == NULL)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    return value;
}

enum exit_code bench_command(const struct options *options, char **argv)
{
    enum exit_code code;
    child_prepare();
    interrupt_catch();
    find_all(options);
    struct subject_place places[MOST_BENCHED];
    for (size_t i = BENCH_GIVEN; i < count; i++)
        places[i - BENCH_GIVEN] = servers[i].place;
    struct launch how = {.options = options,
                         .argv = argv,
                         .places = places,
                         .count = count - BENCH_GIVEN,
                         .python = WITH_NUMPY};
    const char *python = launch(&how);
    struct report_files *files = report_files_open(options);
    children_adopt(true);
    for (size_t i = 0; i < count; i++)
        start(&servers[i], python);
    if (!greet_all(options, &how, &code))
        return code;
    struct present_file made = present_file_open();
    size_t length;
    present_with(python);
    const char *const words[] = {"--bench", made.name, NULL};
    int status = present(words, describe(options), true);
    if (interrupt_came() != 0)
        end_and_die();
    if (status != 0)
        leave_with(EXIT_HARNESS_BROKE, "the bench has failed");
    char *contents = present_file_take(&made, &length);
    json_t *bench = json_loadb(contents, length, 0, NULL);
    int lost = -1;
    const char *verdict, *why, *when;
    if (json_unpack(bench, "{s:i, s:s, s:s, s:s}", "lost", &lost, "verdict", &verdict, "why", &why,
                    "when", &when) == 0)
        return report_loss((size_t)lost, verdict, why, when);
    end_all();
    report_files_write(files, bench, (const char *const[]){"--benched", NULL});
    json_decref(bench);
    return EXIT_CONFORMANT;
}
