/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --bench: finds the handlers, and starts a process that measures them.
 */
#include "commands/commands.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/install_path.h"
#include "base/text.h"
#include "bench/bench.h"
#include "commands/launch.h"
#include "report/present.h"
#include "report/report_files.h"
#include "subject/subject.h"
#include "supervise/child.h"
#include "supervise/interrupt.h"

/* NumPy's default handler, libc, and the handlers that were given. */
enum { BENCH_DEFAULT, BENCH_LIBC, BENCH_GIVEN, MOST_BENCHED = BENCH_GIVEN + 6 };
static struct subject_place places[MOST_BENCHED];
static size_t count;

static void find_all(const struct options *options)
{
    if (options->handler_count > MOST_BENCHED - BENCH_GIVEN)
        die(EXIT_USAGE, "--bench takes up to %d handlers", MOST_BENCHED - BENCH_GIVEN);
    const char *wrong = subject_find("default", &places[BENCH_DEFAULT]);
    places[BENCH_LIBC] = *plain_place();
    count = BENCH_GIVEN;
    for (size_t i = 0; i < options->handler_count && wrong == NULL; i++)
        wrong = subject_find(options->handlers[i], &places[count++]);
    if (wrong != NULL)
        die(EXIT_CANNOT_LOAD, "%s", wrong);
}

enum exit_code bench_command(const struct options *options, char **argv)
{
    char profiles[PATH_MAX];
    const char *why;
    size_t length;
    int lost, state, status;
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
    json_t *labels = json_array(), *bench;
    for (size_t i = 0; i < count; i++)
        json_array_append_new(labels, json_string(i == BENCH_DEFAULT ? "NumPy's default"
                                                  : i == BENCH_LIBC  ? "libc"
                                                                     : escape(places[i].label)));
    place_find(SOURCE_PROFILES, INSTALLED_PROFILES, profiles);
    int made = present_memory();
    json_t *task =
        json_pack("{s:o, s:s, s:s, s:b, s:b, s:f, s:f, s:i}", "handlers", labels, "conform",
                  program_version, "profiles", escape(profiles), "quick", options->bench != NULL,
                  "time_is_given", options->max_time_is_given, "seconds", options->max_time,
                  "timeout", options->timeout, "answer", made);
    pid_t pid = child_fork(true);
    if (pid == 0)
        bench_run(places, python, task);
    if (pid < 0 || child_wait(pid, is_interrupted, NULL, &status) < 0)
        die(EXIT_HARNESS_BROKE, "no process: %s", strerror(errno));
    kill(-pid, SIGKILL);
    children_end(NULL, 0);
    if (interrupt_came() != 0)
        interrupt_die();
    if (WIFSIGNALED(status))
        die(EXIT_HARNESS_BROKE, "the bench died of %s", child_signal_name(WTERMSIG(status)));
    if (status != 0) /* it has reported why */
        return EXIT_HARNESS_BROKE;
    char *contents = present_read(made, &length);
    bench = json_loadb(contents, length, 0, NULL);
    if (json_unpack(bench, "{s:i, s:i, s:s}", "lost", &lost, "state", &state, "why", &why) == 0 &&
        lost >= BENCH_GIVEN) {
        launch_again(&how, state, why);
        loaded_or_leave(places[lost].argument, state, why);
    }
    present_with(python);
    bool quiet = options->quiet || report_files_take_stdout(options);
    int code = present((const char *[]){"--bench", quiet ? "--quiet" : NULL, NULL}, bench, true);
    if (code == EXIT_CONFORMANT)
        report_files_write(files, bench, (const char *const[]){"--bench", NULL});
    return (enum exit_code)code;
}
