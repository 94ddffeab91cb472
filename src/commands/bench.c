/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --bench: starts a process for each handler, and conform_report/bench.py, which measures with
 * these processes.
 */
#include "commands/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
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
static struct subject_place places[MOST_BENCHED];
static pid_t pids[MOST_BENCHED];
static size_t count;

/* ---- in the process of a handler --------------------------------------------------------- */

/* Loads the handler and installs it.  Returns NULL, or what is wrong. */
static const char *load(const struct subject_place *place, const char *python,
                        struct environment *environment, struct subject *subject,
                        enum load_state *state)
{
    static char why[256];
    const char *wrong = python_start(python, environment);
    if (wrong == NULL)
        wrong = python_import_array();
    if (wrong != NULL)
        return wrong;
    *state = place->module != NULL ? python_subject_load(place, subject, why, sizeof why)
                                   : subject_load(place, subject, why, sizeof why);
    if (*state != LOAD_DONE)
        return why;
    if (place->is_default)
        return NULL;
    PyObject *capsule = PyCapsule_New(subject->handler, "mem_handler", NULL);
    return capsule == NULL || PyDataMem_SetHandler(capsule) == NULL ? python_error() : NULL;
}

static _Noreturn void serve(const struct subject_place *place, const char *python, int from, int to)
{
    struct environment environment = {0};
    struct subject subject = {0};
    enum load_state state = LOAD_UNKNOWN;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char *wrong = load(place, python, &environment, &subject, &state);
    json_t *hello = json_pack("{s:i, s:s, s:s}", "state", (int)state, "wrong",
                              wrong != NULL ? text_safe(wrong) : "", "python",
                              text("Python %s, NumPy %s", environment.python, environment.numpy));
    if (dprintf(to, "%s\n", json_dumps(hello, 0)) > 0 && wrong == NULL)
        wrong = bench_serve(subject.handler, from, to);
    _exit(wrong == NULL ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* ---- in the process of conform ----------------------------------------------------------- */

static void find_all(const struct options *options)
{
    const char *wrong = subject_find("default", &places[BENCH_DEFAULT]);
    places[BENCH_LIBC] = *plain_place();
    count = BENCH_GIVEN;
    if (options->handler_count > MOST_BENCHED - BENCH_GIVEN)
        leave_with(EXIT_USAGE, "--bench takes up to %d handlers", MOST_BENCHED - BENCH_GIVEN);
    for (size_t i = 0; i < options->handler_count && wrong == NULL; i++)
        wrong = subject_find(options->handlers[i], &places[count++]);
    if (wrong != NULL)
        leave_with(EXIT_CANNOT_LOAD, "%s", wrong);
}

/* Starts the process of a handler.  Returns what bench.py needs to know of it. */
static json_t *start(size_t which, const char *python, const struct options *options)
{
    int there[2], back[2];
    double limit = options->timeout;
    const char *label = which == BENCH_DEFAULT ? "NumPy's default"
                        : which == BENCH_LIBC  ? "libc"
                                               : text_safe(places[which].label);
    if (pipe2(there, O_CLOEXEC) != 0 || pipe2(back, O_CLOEXEC) != 0)
        leave_with(EXIT_HARNESS_BROKE, "no pipe: %s", strerror(errno));
    pids[which] = child_fork(true);
    if (pids[which] < 0)
        leave_with(EXIT_HARNESS_BROKE, "no process: %s", strerror(errno));
    if (pids[which] == 0) {
        close(there[1]);
        close(back[0]);
        serve(&places[which], python, there[0], back[1]);
    }
    close(there[0]);
    close(back[1]);
    if (which < BENCH_GIVEN) /* which may take longer on a slow machine */
        limit = MAX(limit, 10 * clock_slowness());
    json_t *process = json_pack("{s:s, s:i, s:i, s:i, s:f}", "label", label, "pid", pids[which],
                                "to", dup(there[1]), "from", dup(back[0]), "limit", limit);
    close(there[1]); /* its copy is without close-on-exec */
    close(back[0]);
    return process;
}

static void end_all(void)
{
    for (size_t i = 0; i < count; i++) {
        if (pids[i] > 0)
            kill(-pids[i], SIGKILL);
    }
    children_end(NULL, 0);
    if (interrupt_came() != 0)
        interrupt_die();
}

/* A handler that is lost has broken its contract.  Without `why`, its process has ended. */
static enum exit_code report_loss(size_t lost, const char *loss, const char *why, const char *when)
{
    int status = 0;
    if (*why == '\0')
        why = waitpid(pids[lost], &status, 0) != pids[lost] ? "it is gone"
              : WIFSIGNALED(status)                         ? child_signal_name(WTERMSIG(status))
                                    : text("the process exits with %d", WEXITSTATUS(status));
    end_all();
    printf("%-7s %s: %s%s%s; there are no figures\n", loss, text_safe(places[lost].label),
           text_safe(why), *when != '\0' ? ", " : "", when);
    return lost < BENCH_GIVEN ? EXIT_HARNESS_BROKE : EXIT_NOT_CONFORMANT;
}

enum exit_code bench_command(const struct options *options, char **argv)
{
    char profiles[PATH_MAX];
    child_prepare();
    interrupt_catch();
    find_all(options);
    struct launch how = {.options = options,
                         .argv = argv,
                         .places = places + BENCH_GIVEN,
                         .count = count - BENCH_GIVEN,
                         .python = WITH_NUMPY};
    const char *python = launch(&how);
    struct report_files *files = report_files_open(options);
    children_adopt(true);
    json_t *processes = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(processes, start(i, python, options));
    place_find(SOURCE_PROFILES, INSTALLED_PROFILES, profiles);
    bool quiet = options->quiet || report_files_take_stdout(options);
    json_t *task = json_pack("{s:o, s:s, s:s, s:b, s:b, s:b, s:f}", "processes", processes,
                             "conform", program_version, "profiles", text_safe(profiles), "quiet",
                             quiet, "quick", options->bench != NULL, "time_is_given",
                             options->max_time_is_given, "seconds", options->max_time);
    int made = present_memory();
    present_with(python);
    int status = present((const char *[]){"--bench", text("/dev/fd/%d", made), NULL}, task, true);
    int lost, state = LOAD_DONE;
    if (interrupt_came() != 0)
        end_all();
    if (status != 0)
        leave_with(EXIT_HARNESS_BROKE, "the bench has failed");
    size_t length;
    char *contents = present_read(made, &length);
    json_t *bench = json_loadb(contents, length, 0, NULL);
    const char *verdict, *why, *when;
    if (json_unpack(bench, "{s:i, s:s, s:s, s:s, s?i}", "lost", &lost, "verdict", &verdict, "why",
                    &why, "when", &when, "state", &state) == 0) {
        if (lost < BENCH_GIVEN || state == LOAD_DONE)
            return report_loss((size_t)lost, verdict, why, when);
        end_all();
        launch_again(&how, state, why);
        loaded_or_leave(places[lost].argument, state, why);
    }
    end_all();
    report_files_write(files, bench, (const char *const[]){"--benched", NULL});
    json_decref(bench);
    return EXIT_CONFORMANT;
}
